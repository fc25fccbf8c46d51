"""`ssmtool ci`: build --check, registry, audit-ptx and verify in one run, one report, one exit code."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssmtool.cli.context import (
    AppContext,
    exits_with_code,
    print_report,
    report_format_option,
    scheduler_option,
)
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.ci.model import Options, Run, Step

# Those of ssmtool.ci.model, which is not imported for a list of words.
STEPS = ("build", "registry", "audit-ptx", "verify")


@click.command(
    "ci",
    epilog="Exit codes: 0 all is well; 1 the product is wrong or a required part missing; 2 it could not be checked.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Verify every kernel in seconds: fewer cases, one round, bounds only.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(STEPS),
    help="Run this step alone; may be repeated.",
)
@click.option(
    "--skip",
    multiple=True,
    type=click.Choice(STEPS),
    help="Leave this step out; may be repeated.",
)
@click.option(
    "--require",
    multiple=True,
    metavar="WORD,...",
    help="Fail unless this is here: gpu, sm_37, sm_37:2, driver-470, nvcc-11.4, nvrtc-11.4, ptxas, executor, ...",
)
@click.option(
    "--device",
    metavar="WORDS",
    help="Of verify: cpu, cuda[:N], all, ... (default: the GPUs, else cpu).",
)
@scheduler_option
@click.option(
    "--base",
    metavar="REV",
    help="Say what changed for the better or worse since this git revision.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Write the report as one page that needs no network.",
)
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    quick: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    require: tuple[str, ...],
    device: str | None,
    scheduler: str | None,
    base: str | None,
    html: Path | None,
    output_format: str,
) -> int:
    """Check every link: source, header, loader, resources, numbers.

    The steps are build --check, registry, audit-ptx --resources and verify, quick ones first. A step that fails or
    crashes does not keep the others from running; what did not run is counted and shown, and is never a pass. The first
    line names the first broken link and the command that mends it.

    \b
    Examples:
      ssmtool ci
      ssmtool ci --quick --html report.html
      ssmtool ci --require gpu,sm_37,nvcc-11.4 --device all      on a K80 runner
      ssmtool ci --base origin/main --format markdown            for a pull request
      ssmtool ci --skip verify
    """
    from ssmtool.ci.document import document
    from ssmtool.ci.model import STEPS as KNOWN
    from ssmtool.ci.model import Context, Options
    from ssmtool.ci.run import run
    from ssmtool.report.verify import progress

    project = app.load_project()
    steps = tuple(step for step in KNOWN if (not only or step in only) and step not in skip)
    if not steps:
        raise SsmtoolError("--only and --skip leave no step to run", hint=f"steps: {', '.join(STEPS)}")
    words = _required(require)
    if base is not None:
        from ssmtool.ci.base import resolve

        resolve(project, base)
    if html is not None:
        _writable(html)
    options = Options(
        steps,
        quick,
        device,
        words,
        base,
        graphs=html is not None or output_format == "json",
        scheduler=scheduler,
    )
    with progress(quiet=app.quiet or output_format != "console") as listener:
        whole = run(Context(project, options, listener), tell=_teller(app, output_format))
    data = document(whole, command=_command(options))
    if html is not None:
        from ssmtool.files import write_atomic
        from ssmtool.report.html import render_html

        write_atomic(html, render_html(data).encode())
        if not app.quiet:
            print(f"wrote {html}", file=sys.stderr)
    _report(app, whole, data, output_format)
    return 130 if whole.partial else int(whole.outcome.verdict)


def _required(given: tuple[str, ...]) -> tuple[str, ...]:
    if not given:
        return ()
    from ssmtool.doctor.require import parse

    return tuple(dict.fromkeys(word for text in given for word in parse(text)))


def _writable(path: Path) -> None:
    """Raise SsmtoolError for a report that could not be written: before the work, not after it."""
    from ssmtool.files import read_bytes

    folder = path.parent
    if not folder.is_dir():
        raise SsmtoolError(
            "there is no such folder for the report",
            path=folder,
            hint=f"mkdir -p {folder}",
        )
    if not os.access(folder, os.W_OK):
        raise SsmtoolError(
            "this folder may not be written to",
            path=folder,
            hint="give --html another file",
        )
    if path.exists() and b"<html" not in read_bytes(path)[:1000].lower():
        raise SsmtoolError(
            "is there and is no HTML; it is left as it is",
            path=path,
            hint="give --html another file",
        )
    from ssmtool.report.html import require_jinja

    require_jinja()


def _teller(app: AppContext, output_format: str) -> Callable[[Step], None] | None:
    """A line on stderr for each step that ended."""
    if app.quiet or output_format != "console":
        return None
    from ssmtool.report.ci import step_line

    return lambda step: print(step_line(step), file=sys.stderr, flush=True)


def _command(options: Options) -> str:
    """The command that repeats the run, without what says where the report goes."""
    words = ["ci"]
    words += ["--quick"] if options.quick else []
    if set(options.steps) != set(STEPS):
        words += [word for step in options.steps for word in ("--only", step)]
    words += ["--require", ",".join(options.require)] if options.require else []
    words += ["--device", shlex.quote(options.device)] if options.device else []
    words += ["--scheduler", shlex.quote(options.scheduler)] if options.scheduler else []
    words += ["--base", shlex.quote(options.base)] if options.base else []
    return " ".join(words)


def _report(app: AppContext, whole: Run, data: dict[str, Any], output_format: str) -> None:
    if output_format == "console":
        from ssmtool.report.ci import print_ci

        print_ci(whole, data, quiet=app.quiet)
    elif output_format == "json":
        from ssmtool.report.formats.json import dump

        click.echo(dump(data), nl=False)
    elif output_format == "markdown":
        from ssmtool.report.pull_request import render_pull_request

        click.echo(render_pull_request(data), nl=False)
    else:
        # SARIF carries it all; JUnit takes scalars, so the time of each step stands by itself.
        seconds = {f"seconds of {step['name']}": step["seconds"] for step in data["steps"]}
        extra = {
            **seconds,
            "headline": data["headline"],
            "partial": data["partial"],
            "steps": data["steps"],
        }
        print_report(whole.outcome, output_format, command=data["command"], extra=extra)
