"""What every command shares: the project, the output format, and one way for an error to become an exit code."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

import click

from ssmtool.errors import SsmtoolError
from ssmtool.project import Project, find_project

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class AppContext:
    """Options of the `ssmtool` group."""

    project_dir: Path
    quiet: bool = False

    def load_project(self) -> Project:
        """The project the command works on. Raises SsmtoolError when there is none."""
        return find_project(self.project_dir)


def format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format console|json`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["console", "json"]),
        default="console",
        show_default=True,
        help="Report for people on the console, or JSON for machines.",
    )(function)


def exits_with_code(function: Callable[P, int]) -> Callable[P, None]:
    """Turn a command that returns its exit code, or raises SsmtoolError, into a click callback.

    With `output_format="json"` an error is JSON on stdout too, so that a machine reader never meets an empty stream.
    """

    @functools.wraps(function)
    def callback(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = function(*args, **kwargs)
        except SsmtoolError as error:
            if kwargs.get("output_format") == "json":
                click.echo(json.dumps(error_json(error), indent=2))
            print_error(error)
            code = error.exit_code
        except (OSError, ValueError, RecursionError) as error:
            # What no room foresaw (a folder without permission, a full pipe, nesting without end) is still one error.
            unforeseen = SsmtoolError(f"{type(error).__name__}: {error}")
            if kwargs.get("output_format") == "json":
                with contextlib.suppress(OSError):
                    click.echo(json.dumps(error_json(unforeseen), indent=2))
            print_error(unforeseen)
            code = unforeseen.exit_code
        except KeyboardInterrupt:
            click.echo("interrupted; no file was left half-written", err=True)
            code = 130
        sys.exit(code)

    return callback


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


def print_error(error: SsmtoolError) -> None:
    """One error on stderr: where, what, and the command that mends it."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(str(error), err=True)
    if error.hint:
        click.echo(f"  mend it: {error.hint}", err=True)
