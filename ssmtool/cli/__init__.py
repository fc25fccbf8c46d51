"""The command line: one module per command, imported only when that command runs.

`ssmtool --help` must stay within a small factor of importing click, so this module imports nothing heavier and names
each command with its one-line help here; `tests/cli/test_main.py` holds that every line equals the command's own.
"""

from __future__ import annotations

import importlib
from pathlib import Path

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
}


class LazyGroup(click.Group):
    """A click group that imports a command's module only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order of the chain, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ssmtool.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command list, from the table above, so that `--help` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


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
