"""What every command shares: the project, the output format, and one way for an error to become an exit code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.findings import Outcome
    from ssmtool.project import Project

P = ParamSpec("P")

# Reports for people, then those of ssmtool.report.formats, which is not imported for a list of words.
FORMATS = ("console", "json", "sarif", "junit", "markdown", "github")


class AppContext:
    """Options of the `ssmtool` group, and what they lead to."""

    def __init__(self, project_dir: Path, *, quiet: bool = False) -> None:
        self.project_dir = project_dir
        self.quiet = quiet
        # Folder that reports count paths from: the project's, as soon as it is known.
        self.root: Path | None = None

    def load_project(self) -> Project:
        """The project the command works on. Raises SsmtoolError when there is none."""
        from ssmtool.project import find_project

        project = find_project(self.project_dir)
        self.root = project.root
        return project


def built_header(project: Project) -> Path:
    """The project's header. Raises SsmtoolError when it was never built."""
    if not project.header_path.exists():
        raise SsmtoolError("there is no generated header", path=project.settings.header, hint="ssmtool build")
    return project.header_path


def format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format console|json`, for commands that have no findings."""
    return _format_option(("console", "json"))(function)


def report_format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format` with every format a report of findings has."""
    return _format_option(FORMATS)(function)


def scheduler_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--scheduler`, whose words `ssmtool.cluster` reads."""
    return click.option(
        "--scheduler",
        metavar="WHERE",
        help="Run on the workers of dask.distributed: tcp://HOST:PORT, tls://..., a scheduler file, or local[:N].",
    )(function)


def _format_option(formats: tuple[str, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default="console",
        show_default=True,
        help="Report for people on the console, or for machines.",
    )


def exits_with_code(function: Callable[P, int]) -> Callable[P, None]:
    """Turn a command that returns its exit code, or raises SsmtoolError, into a click callback.

    With another `output_format` than the console's an error is on stdout in that format too, so that a machine reader
    never meets an empty stream.
    """

    @functools.wraps(function)
    def callback(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = function(*args, **kwargs)
        except SsmtoolError as error:
            code = _fail(error, args, kwargs)
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            # What no room foresaw (a folder without permission, a full disk, nesting without end) is still one error.
            unforeseen = SsmtoolError(f"{type(error).__name__}: {error}")
            if _here() is None:
                unforeseen = SsmtoolError("the current folder was removed", hint="cd to another one")
            code = _fail(unforeseen, args, kwargs)
        except KeyboardInterrupt:
            words = "interrupted; no file was left half-written"
            if kwargs.get("output_format", "console") == "console":
                click.echo(words, err=True)
            else:
                _fail(SsmtoolError(words), args, kwargs)
            code = 130
        sys.exit(code)

    return callback


def _fail(error: SsmtoolError, args: tuple[object, ...], kwargs: Mapping[str, object]) -> int:
    app = next((value for value in args if isinstance(value, AppContext)), None)
    error.path = _shown(error.path, app.root if app else None)
    context = click.get_current_context(silent=True)
    command = context.info_name if context else None
    return report_error(error, str(kwargs.get("output_format", "console")), command=command or "ssmtool")


def _here() -> Path | None:
    """The current folder; None when somebody has removed it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _shown(path: str | None, root: Path | None) -> str | None:
    """An absolute path inside the project, or inside the current folder, as one relative to it."""
    if path is None or not path.startswith(os.sep):
        return path
    for folder in (root, _here()):
        if folder is not None and path.startswith(f"{folder}{os.sep}"):
            return Path(path).relative_to(folder).as_posix()
    return path


def report_error(error: SsmtoolError, output_format: str, *, command: str) -> int:
    """The error on stderr for people, and on stdout in the format asked for; its exit code."""
    if output_format == "json":
        print_json(error_json(error))
    elif output_format != "console":
        print_report(error_outcome(error), output_format, command=command)
    print_error(error)
    return error.exit_code


def report_usage(error: click.ClickException, words: Sequence[str]) -> int:
    """A usage error of click: its own words on stderr; on stdout what `--format` in `words` asks for. The exit code."""
    asked = [word for before, word in zip(["", *words], words, strict=False) if before == "--format"]
    asked += [word.partition("=")[2] for word in words if word.startswith("--format=")]
    output_format = next((word for word in reversed(asked) if word in FORMATS), "console")
    wrong = SsmtoolError(error.format_message(), hint="ssmtool --help")
    context = getattr(error, "ctx", None)
    if context is not None:
        wrong.hint = f"{context.command_path} --help"
    if output_format == "json":
        print_json(error_json(wrong))
    elif output_format != "console":
        print_report(error_outcome(wrong), output_format, command=context.info_name if context else "ssmtool")
    error.show()
    return error.exit_code


def print_json(data: Mapping[str, Any]) -> None:
    """JSON on stdout."""
    import json

    click.echo(json.dumps(data, indent=2))


def print_report(outcome: Outcome, output_format: str, *, command: str, extra: Mapping[str, Any] | None = None) -> None:
    """An outcome on stdout in one of the formats for machines."""
    from ssmtool import __version__
    from ssmtool.report.formats import render

    click.echo(render(outcome, output_format, command=command, tool_version=__version__, extra=extra), nl=False)


def error_json(error: SsmtoolError) -> dict[str, Any]:
    """An error as the JSON a report would have been."""
    fields = {
        "message": error.message,
        "path": error.path,
        "line": error.line,
        "column": error.column,
        "fix": error.hint,
    }
    return {
        "verdict": "wrong" if error.exit_code == 1 else "unchecked",
        "exit_code": error.exit_code,
        "error": {key: value for key, value in fields.items() if value is not None},
    }


def error_outcome(error: SsmtoolError) -> Outcome:
    """An error as an outcome of the same verdict: a finding if the product is wrong, else a check that did not run."""
    from ssmtool.findings import Finding, Outcome, Severity, Skip

    if error.exit_code != 1:
        return Outcome(required_skips=[Skip("the whole check", str(error), error.hint)])
    finding = Finding(
        rule="error/product",
        severity=Severity.ERROR,
        message=error.message,
        path=error.path,
        line=error.line,
        column=error.column,
        fix=error.hint,
    )
    return Outcome(findings=[finding])


def print_error(error: SsmtoolError) -> None:
    """One error on stderr: where, what, and the command that mends it."""
    from ssmtool.wording import capped, folded

    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo("\n".join(folded(line) for line in capped(str(error).splitlines())), err=True)
    if error.hint:
        click.echo(folded(f"  mend it: {error.hint}"), err=True)
