"""`ssmtool bench`: how long the kernels take on a card, or what they cost by the executor's count."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ssmtool.cli.context import AppContext, built_header, exits_with_code, report_format_option
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Finding, Outcome, Skip

if TYPE_CHECKING:
    from ssmtool.bench.beside.load import Adapter
    from ssmtool.bench.cases import Group
    from ssmtool.bench.result import BenchReport
    from ssmtool.device.interface import Device
    from ssmtool.project import Project
    from ssmtool.verify.loaded import Text

# What the executor counts: at most so many heads, positions and users. The rest do the same work.
_COUNTED_HEADS, _COUNTED_POSITIONS, _COUNTED_USERS = 2, 128, 2
_MOST = 65_535


@click.command(
    "bench",
    epilog="Exit codes: 0 timed; 1 bits of one group differ, or a vector's numbers are wrong; 2 it could not be timed.",
)
@click.argument("cases", nargs=-1, metavar="[KERNEL|PATTERN|VECTOR.npz]...")
@click.option(
    "--ptx", metavar="FILE", help="Time this: .ptx, or a C file with PTX in it (default: the project's header)."
)
@click.option("--positions", default="128,1024", show_default=True, metavar="N,...", help="Prefills, in positions.")
@click.option("--users", default="1,64,256", show_default=True, metavar="K,...", help="Decode steps, in users (slots).")
@click.option(
    "--heads", type=click.IntRange(1, 1024), default=32, show_default=True, help="V-heads; the state size is 128."
)
@click.option(
    "--repeat", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="Timed runs of each."
)
@click.option("--warmup", type=click.IntRange(0), default=5, show_default=True, metavar="N", help="Runs before them.")
@click.option(
    "--device",
    default="cuda",
    show_default=True,
    metavar="WORDS",
    help="cuda[:N], cuda-bindings[:N], ctypes[:N], pycuda[:N]; cpu counts issue slots instead.",
)
@click.option("--snapshots", is_flag=True, help="Prefills also with the state after every position stored.")
@click.option(
    "--beside",
    "others",
    multiple=True,
    metavar="FILE.py[:NAME]|fla",
    help="Time somebody else's work in the same run: what this function of a file makes of each task.",
)
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    cases: tuple[str, ...],
    ptx: str | None,
    positions: str,
    users: str,
    heads: int,
    repeat: int,
    warmup: int,
    device: str,
    snapshots: bool,
    others: tuple[str, ...],
    output_format: str,
) -> int:
    """Time the kernels on a card, or count their issue slots on the CPU.

    On a card: CUDA events around each run, which waits in the queue behind a long copy; the median, the fastest and the
    slowest; what must be moved over the time, and its share of the copy bandwidth of the same run. Each group's kernels
    do the same work, and their bits are compared. On the CPU: warp instructions executed, and the floors of a K80 die.

    Kernels of your own are timed by the launches of your golden vectors: by file, by name, or all of them.

    \b
    Examples:
      ssmtool bench                                     everything, on every card
      ssmtool bench --users 256 'fc_ssm_recurrence_slots*'
      ssmtool bench --device cpu --positions 33 --users 1
      ssmtool bench my_kernel                           every golden vector that launches it
      ssmtool bench golden/my_kernel/small.npz          the launches of one vector
      ssmtool bench --beside fla                        flash-linear-attention in the same run
    """
    from ssmtool.bench.beside.load import load
    from ssmtool.bench.cases import groups_of
    from ssmtool.bench.choose import choose
    from ssmtool.device.select import open_devices
    from ssmtool.execute import require_libraries
    from ssmtool.verify.plan import too_large
    from ssmtool.verify.sources import read_ptx

    require_libraries()
    counts = _numbers("--positions", positions), _numbers("--users", users)
    project = _project(app) if ptx is not None else app.load_project()
    source = ptx if ptx is not None or project is None else str(built_header(project))
    assert source is not None
    show = project.show if project is not None else str
    texts = read_ptx(source, show)
    parameters = {name: given for text in texts for name, given in _parameters(text).items()}
    chosen = choose(
        cases, parameters, lambda: None if project is None else project.path(project.settings.golden), show
    )  # fmt: skip

    def ours(positions: list[int], users: list[int], heads: int) -> list[Group]:
        return (
            [] if chosen.ours is None else groups_of(chosen.ours, positions, users, heads, list(parameters), snapshots)
        )

    groups = ours(*counts, heads)
    if not groups and not chosen.vectors and not chosen.skips:
        raise SsmtoolError(
            "nothing to time: no position and no user is asked for", hint="--positions 128, or --users 1"
        )
    reports = []
    with open_devices(device) as devices:
        if others and not all(each.real for each in devices):
            raise SsmtoolError("--beside is for cards: on the CPU executor nothing is timed", hint="--device cuda")
        if others and not groups:
            raise SsmtoolError("--beside is for prefills and decode steps of the product's kernels; none is timed here")
        adapters = [load(words) for words in dict.fromkeys(others)]
        for each in devices:
            fitting = []
            for group in chosen.vectors:
                assert group.vector is not None
                large = too_large(group.vector, each)
                if large is None:
                    fitting.append(group)
                else:
                    mend = None if each.real else "ssmtool bench --device cuda"
                    chosen.skips.append(Skip(f"vector {group.vector.meta.name} on {each.name}", large, mend))
            if each.real:
                reports.append(_timed(each, groups, fitting, texts, repeat, warmup, adapters))
            else:
                fewer = ours(
                    [min(each, _COUNTED_POSITIONS) for each in counts[0]],
                    [min(each, _COUNTED_USERS) for each in counts[1]],
                    min(heads, _COUNTED_HEADS),
                )
                reports.append(_counted(each, [*groups, *fitting], [*fewer, *fitting], texts))
    return _report(app, reports, chosen.skips, show(Path(source)), device, output_format)


def _project(app: AppContext) -> Project | None:
    """The project around, where there is one: with --ptx none is needed."""
    try:
        return app.load_project()
    except SsmtoolError:
        return None


def _parameters(text: Text) -> dict[str, tuple[str, ...]]:
    """Kernel -> its parameters' names: of the header, of the product's contract, or their numbers."""
    from ssmtool.golden.reference import KERNELS

    found = {}
    for entry in text.module.entries:
        count = len(entry.params)
        known = text.parameters.get(entry.name) or (KERNELS[entry.name][1] if entry.name in KERNELS else ())
        found[entry.name] = tuple(known) if len(known) == count else tuple(f"p{number}" for number in range(count))
    return found


def _numbers(option: str, text: str) -> list[int]:
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*|", text, re.ASCII):
        raise SsmtoolError(f"{option} {text}: expected numbers with commas, such as 1,64")
    found = [int(word) for word in text.split(",") if word]
    wrong = next((each for each in found if not 1 <= each <= _MOST), None)
    if wrong is not None:
        raise SsmtoolError(f"{option} {wrong}: it may be 1 to {_MOST}")
    return found


def _blank(device: Device) -> BenchReport:
    from ssmtool.bench.result import BenchReport

    driver = device.properties.driver
    return BenchReport(
        device.name,
        device.properties.model,
        f"{driver[0]}.{driver[1]}" if driver else None,
        datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    )


def _timed(
    device: Device, groups: list[Group], vectors: list[Group], texts: list[Text], repeat: int, warmup: int,
    adapters: list[Adapter],
) -> BenchReport:  # fmt: skip
    from ssmtool.bench.card import CardBench, clocks
    from ssmtool.device.cuda import CudaDevice

    assert isinstance(device, CudaDevice)
    bench = CardBench(device, [(text.module, _parameters(text)) for text in texts])
    report = _blank(device)
    try:
        bench.prepare()
        report.copy_bytes_per_second = bench.copy_bytes_per_second
        for group in groups:
            timings, beside = bench.time(group, repeat, warmup, adapters)
            report.timings += timings
            report.beside += beside
        for group in vectors:
            try:
                report.timings += bench.time(group, repeat, warmup)[0]
            except SsmtoolError as error:  # noqa: PERF203 - the other vectors are timed all the same
                if device.problem is not None:
                    raise
                report.failed.append((group, error))
        report.clocks = clocks(device.index)
    finally:
        bench.close()
    return report


def _counted(device: Device, groups: list[Group], fewer: list[Group], texts: list[Text]) -> BenchReport:
    from ssmtool.bench.slots import count
    from ssmtool.execute import Module

    modules = {
        entry.name: module
        for text in texts
        for module in [Module(text.module, parameters=_parameters(text))]
        for entry in text.module.entries
    }
    report = _blank(device)
    for small, whole in zip(fewer, groups, strict=True):
        try:
            report.slots += count(small, whole, modules)
        except SsmtoolError as error:  # noqa: PERF203 - the other vectors are counted all the same
            if whole.vector is None:
                raise
            report.failed.append((whole, error))
    return report


def _findings(report: BenchReport, path: str) -> Iterator[Finding]:
    """What is wrong: bits that differ, numbers beyond a vector's tolerances, launches that leave their buffers."""
    from ssmtool.findings import Severity

    effect = "a faster kernel with other results"
    for each in report.cases:
        if each.right is False:
            message = f"{each.group} on {report.device}: its numbers are not within the vector's tolerances"
            yield Finding("bench/wrong-numbers", Severity.ERROR, message, kernel=each.case, path=path, effect=effect,
                          fix="ssmtool verify")  # fmt: skip
        elif each.right is None and each.same_bits is False:
            message = f"{each.group} on {report.device}: not the bits of the first kernel of its group"
            yield Finding("bench/bits-differ", Severity.ERROR, message, kernel=each.case, path=path, effect=effect,
                          fix="ssmtool verify")  # fmt: skip
    for group, error in report.failed:
        if error.exit_code == 1:
            message = f"{group.title} on {report.device}: {error.message}"
            effect = "what it leaves is not defined, so its time means nothing"
            yield Finding("bench/fault", Severity.ERROR, message, path=path, effect=effect,
                          fix=error.hint or "ssmtool verify")  # fmt: skip


def _report(
    app: AppContext, reports: list[BenchReport], skips: list[Skip], path: str, device: str, output_format: str
) -> int:
    from ssmtool.cli.context import print_report
    from ssmtool.report.bench import print_bench, summary

    outcome = Outcome(
        findings=[finding for report in reports for finding in _findings(report, path)],
        required_skips=[
            *skips,
            *(
                Skip(f"bench of {each.peer} on {report.device}", each.problem, each.mend)
                for report in reports
                for each in report.beside
                if each.problem is not None
            ),
            *(
                Skip(f"{group.title} on {report.device}", str(error), error.hint)
                for report in reports
                for group, error in report.failed
                if error.exit_code != 1
            ),
        ],
    )
    if output_format == "console":
        from ssmtool.report.console import print_outcome

        if not app.quiet:
            for report in reports:
                print_bench(report)
        print_outcome(outcome, summary=summary(reports), quiet=app.quiet)
    else:
        extra = {"bench": [report.to_json() for report in reports]}
        print_report(outcome, output_format, command=f"bench --device {device}", extra=extra)
    return int(outcome.verdict)
