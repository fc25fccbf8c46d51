"""`ssmtool doctor`: what this machine has, what of it does not fit together, and what mends it."""

from __future__ import annotations

import os
import sys

import click

from ssmtool.cli.context import AppContext, exits_with_code, print_json, print_report

FORMATS = ("console", "json", "markdown", "github")


@click.command(
    "doctor",
    epilog="Exit codes: 0 nothing that the project needs here is broken; 1 something is; 2 bad usage.",
)
@click.option(
    "--require",
    "required",
    metavar="WORD,...",
    multiple=True,
    help="Fail unless this is here: gpu, sm_37, sm_37:2 (two devices), driver-470, nvcc-11.4, nvrtc-11.4, ptxas,"
    " executor, cuda-bindings, pycuda.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="console",
    show_default=True,
    help="Report for people, or for machines.",
)
@click.pass_obj
@exits_with_code
def command(app: AppContext, required: tuple[str, ...], output_format: str) -> int:
    """Examine this machine: compilers, drivers, cards, versions, and what mends them.

    Nothing is changed, nothing is sent anywhere, and no GPU, no CUDA and no optional package is needed. A part that
    the project can do without here is no problem unless --require names it. `python -m ssmtool.doctor` is the same for
    an installation in which ssmtool itself does not start.

    \b
    Examples:
      ssmtool doctor
      ssmtool doctor --format json
      ssmtool doctor --require gpu,sm_37:2,driver-470,nvcc-11.4     on a K80 runner
    """
    from ssmtool.doctor.require import parse
    from ssmtool.doctor.run import examine
    from ssmtool.errors import SsmtoolError

    if not app.project_dir.is_dir():
        raise SsmtoolError("no such folder", path=app.project_dir)
    words = tuple(dict.fromkeys(word for text in required for word in parse(text)))
    report = examine(app.project_dir, words)
    if output_format == "console":
        from ssmtool.report.doctor import print_doctor

        colour = (sys.stdout.isatty() or "FORCE_COLOR" in os.environ) and "NO_COLOR" not in os.environ
        print_doctor(report, quiet=app.quiet, colour=colour)
    elif output_format == "json":
        print_json(report.to_json())
    else:
        from ssmtool.report.doctor import doctor_extra, doctor_outcome

        outcome = doctor_outcome(report)
        print_report(outcome, output_format, command="doctor", extra=doctor_extra(report))
    return report.exit_code
