"""The command line: one module per command, imported only when that command runs.

`ssmtool --help` must stay within a small factor of importing click, so this module imports nothing heavier and names
each command with its one-line help here; `tests/cli/test_main.py` holds that every line equals the command's own.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from ssmtool import __version__
from ssmtool.cli.context import AppContext

# command -> (module under ssmtool.cli, one-line help); listed in the order of the chain they check.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Look at the tree and write a commented [tool.ssmtool] table."),
    "toolchain": ("toolchain", "Show the compilers in reach, or install the embedded one."),
    "build": ("build", "Compile the kernels, regenerate the PTX header, sync the loader."),
    "registry": ("registry", "Check that source, PTX, header and loader agree on the kernels."),
    "audit-ptx": ("audit_ptx", "Find local memory by path, and what each kernel costs."),
    "golden": ("golden", "Make, check and show the vectors that kernels are verified by."),
    "probe": ("probe", "Compare a card's arithmetic with the executor's, bit by bit."),
    "run": ("run", "Run a kernel on the CPU, bit for bit, with bounds checked."),
    "bench": ("bench", "Time the kernels on a card, or count their issue slots on the CPU."),
    "verify": ("verify", "Verify the PTX in the header against golden vectors and relations."),
    "fuzz": ("fuzz", "Launch kernels at random, and shrink what fails to the smallest."),
    "ci": ("ci", "Check every link: source, header, loader, resources, numbers."),
    "doctor": ("doctor", "Examine this machine: compilers, drivers, cards, versions, and what mends them."),
}


class LazyGroup(click.Group):
    """A click group that imports a command's module only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order of the chain, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now, with the options that all commands share."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ssmtool.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        _add_common_options(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command list, from the table above, so that `--help` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any
    ) -> NoReturn:
        """Run and exit. A usage error is in the format asked for on stdout, as every other error is."""
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(words, prog_name or "ssmtool", standalone_mode=False)
        except click.ClickException as error:
            from ssmtool.cli.context import report_usage

            code = report_usage(error, words)
        except click.Abort:
            click.echo("interrupted", err=True)
            code = 130
        sys.exit(code if isinstance(code, int) else 0)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    try:
        main(list(arguments))
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
    return 0


def _add_common_options(command: click.Command) -> None:
    """The group's options, understood after the command's name as well as before it."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _add_common_options(each)
    elif not any(option.name == "quiet" for option in command.params):
        quiet = click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            expose_value=False,
            callback=_set_quiet,
            help="Print findings and errors only.",
        )
        folder = click.Option(
            ["--project", "-C", "project_dir"],
            type=click.Path(path_type=Path),
            expose_value=False,
            callback=_set_folder,
            help="Folder of the project.",
        )
        command.params += [quiet, folder]


def _set_quiet(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    app = ctx.find_object(AppContext)
    if value and app is not None:
        app.quiet = True


def _set_folder(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    app = ctx.find_object(AppContext)
    if value is not None and app is not None:
        app.project_dir = value


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """`--version`: ssmtool's own release and every toolchain it sees."""
    if not value or ctx.resilient_parsing:
        return
    from ssmtool.cli.toolchain import version_lines

    click.echo(f"ssmtool {__version__}")
    for line in version_lines():
        click.echo(line)
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all is well; 1 the product is wrong; 2 it could not be checked.",
)
@click.option(
    "--project",
    "-C",
    "project_dir",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder of the project, or a folder inside it (default: the current one).",
)
@click.option("--quiet", "-q", is_flag=True, help="Print findings and errors only.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show versions.",
)
@click.pass_context
def main(ctx: click.Context, project_dir: Path, quiet: bool) -> None:
    """Build, audit and verify CUDA kernels that are kept as checked-in PTX.

    \b
    Examples:
      ssmtool build              compile, regenerate the header, sync the loader
      ssmtool build --check      is the checked-in header what the source makes?
      ssmtool registry           where would the loader stop, and which kernels are lost?
    """
    ctx.obj = AppContext(project_dir=project_dir, quiet=quiet)
