"""`ssmtool probe`: is a card's arithmetic the executor's? One command, one small file to send in."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ssmtool.cli.context import AppContext, exits_with_code, print_report, report_format_option
from ssmtool.errors import SsmtoolError
from ssmtool.files import write_atomic

if TYPE_CHECKING:
    from ssmtool.device.interface import Device
    from ssmtool.findings import Outcome
    from ssmtool.probe.result import Result


@click.command(
    "probe",
    epilog="Exit codes: 0 every bit is the executor's; 1 some differ; 2 the device could not be probed to the end.",
)
@click.option(
    "--device",
    default="cuda",
    show_default=True,
    metavar="WORDS",
    help="cuda[:N], cuda-bindings[:N], ctypes[:N], pycuda[:N], all; cpu is a self-test and no evidence about a card.",
)
@click.option("--require", metavar="sm_NN", help="Fail unless there is a card of this compute capability.")
@click.option("--quick", is_flag=True, help="Every eighth form, every 64th input: seconds instead of minutes.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The result file (default: probe-MODEL-DATE.json in this folder).",
)
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext, device: str, require: str | None, quick: bool, out: Path | None, output_format: str
) -> int:
    """Compare a card's arithmetic with the executor's, bit by bit.

    Runs every instruction form that the executor knows on edge inputs, float forms on special values and at the
    format's edges, and the approximation units (ex2, rcp, rsqrt, sqrt, lg2, sin, cos) on whole binades, through PTX on
    the card. Says which differ and in which way, and writes one small JSON file. Any card that takes sm_37 PTX will do.

    \b
    Examples:
      ssmtool probe --require sm_37          all dies of the K80 of this machine
      ssmtool probe --device cuda:0 --quick  a first look
      ssmtool probe --device cpu             the executor against its own arithmetic
    """
    from ssmtool.device.cpu import CpuDevice
    from ssmtool.device.select import open_devices
    from ssmtool.execute import require_libraries
    from ssmtool.probe.run import probe
    from ssmtool.probe.trials import trials

    require_libraries()
    with open_devices(device, require=require) as devices:
        # The probe's own kernels stay inside their buffers, and checks would triple the time to compile them.
        chosen: list[Device] = [CpuDevice(check="none") if not each.real else each for each in devices]
        if out is not None and len(chosen) > 1:
            raise SsmtoolError(f"--out {out}: {len(chosen)} devices have a file each", hint="name one: --device cuda:0")
        say = _progress(app, output_format)
        for each in chosen:
            say(f"probing {each}")
        results = probe(chosen, trials(quick=quick), quick=quick, progress=_meter(say))
    files = [out or _file_name(result, results) for result in results]
    for result, path in zip(results, files, strict=True):
        write_atomic(path, result.file())
    outcome = _outcome(results)
    if output_format == "console":
        from ssmtool.report.console import print_outcome
        from ssmtool.report.probe import print_probe, summary

        if not app.quiet:
            for result in results:
                print_probe(result)
        print_outcome(outcome, summary=summary(results, files), quiet=app.quiet)
    else:
        extra = {"results": [{**result.to_json(), "digests": None} for result in results]}
        print_report(outcome, output_format, command=f"probe --device {device}", extra=extra)
    return int(outcome.verdict)


def _outcome(results: Sequence[Result]) -> Outcome:
    """Differences as findings, ends before time as checks that did not run."""
    from ssmtool.findings import Finding, Outcome, Severity, Skip

    outcome = Outcome()
    for result in results:
        for form in result.different:
            first = form.examples[0]
            causes = ", ".join(f"{count} x {cause}" for cause, count in form.causes.items())
            shown = f"{', '.join(first.operands)} gives {first.device}, executor {first.executor}"
            outcome.findings.append(
                Finding(
                    "probe/different",
                    Severity.ERROR,
                    f"{result.device}: {form.name} ({form.label}), {form.trial}: {form.different} of {form.cases}"
                    f" differ ({causes}); first: {shown}",
                    effect=f"what the executor computes with it is not what {result.model} computes",
                )
            )
        for name, words in result.failed.items():
            outcome.findings.append(
                Finding("probe/not-run", Severity.ERROR, f"{result.device}: {name} could not be run: {words}")
            )
        if result.problem is not None:
            outcome.required_skips.append(Skip(f"the rest of the probe of {result.device}", result.problem))
    return outcome


def _file_name(result: Result, results: Sequence[Result]) -> Path:
    """`probe-tesla-k80-2022-11-30.json`, with the device's word when there are several."""
    words = [result.model if result.binding != "cpu" else "self-test", result.date]
    if len(results) > 1:
        words.insert(1, result.device)
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")
    return Path(f"probe-{name}.json")


def _progress(app: AppContext, output_format: str) -> Callable[[str], None]:
    if app.quiet or output_format != "console":
        return lambda _line: None
    return lambda line: click.echo(line, err=True)


def _meter(say: Callable[[str], None]) -> Callable[[int, int, str], None]:
    """A line that is written over on a terminal; elsewhere one line for every tenth."""
    shown = [-1]
    live = sys.stderr is not None and sys.stderr.isatty()

    def progress(done: int, total: int, title: str) -> None:
        percent = 100 * done // max(total, 1)
        if live and percent != shown[0]:
            say(f"\x1b[1A\x1b[2K{percent:3d} %  {title}" if shown[0] >= 0 else f"{percent:3d} %  {title}")
            shown[0] = percent
        elif not live and percent // 10 != shown[0]:
            say(f"{percent:3d} %  {title}")
            shown[0] = percent // 10

    return progress
