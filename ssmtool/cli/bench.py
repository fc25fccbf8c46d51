"""`ssmtool bench`: how long the kernels take on a card, or what they cost by the executor's count."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING

import click

from ssmtool.cli.context import AppContext, exits_with_code, report_format_option
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.bench.beside.load import Adapter
    from ssmtool.bench.cases import Group
    from ssmtool.bench.result import BenchReport
    from ssmtool.device.interface import Device
    from ssmtool.header import Header
    from ssmtool.project import Project

# What the executor counts: at most so many heads, positions and users. The rest do the same work.
_COUNTED_HEADS, _COUNTED_POSITIONS, _COUNTED_USERS = 2, 128, 2
_MOST = 65_535


@click.command(
    "bench", epilog="Exit codes: 0 timed; 1 kernels of one group differ in their bits; 2 it could not be timed."
)
@click.argument("cases", nargs=-1, metavar="[KERNEL|PATTERN]...")
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

    \b
    Examples:
      ssmtool bench                                     everything, on every card
      ssmtool bench --users 256 'fc_ssm_recurrence_slots*'
      ssmtool bench --device cpu --positions 33 --users 1
      ssmtool bench --beside fla                        flash-linear-attention in the same run
    """
    from ssmtool.bench.beside.load import load
    from ssmtool.bench.cases import groups_of
    from ssmtool.device.select import open_devices
    from ssmtool.execute import require_libraries
    from ssmtool.header import read_header

    require_libraries()
    project = app.load_project()
    counts = _numbers("--positions", positions), _numbers("--users", users)
    header = read_header(project.header_path)
    entries = [name for held in header.modules for name in held.entry_names]
    groups = groups_of(cases, *counts, heads, entries, snapshots)
    reports = []
    with open_devices(device) as devices:
        if others and not all(each.real for each in devices):
            raise SsmtoolError("--beside is for cards: on the CPU executor nothing is timed", hint="--device cuda")
        adapters = [load(words) for words in dict.fromkeys(others)]
        for each in devices:
            if each.real:
                reports.append(_timed(each, groups, header, repeat, warmup, adapters))
            else:
                less = (
                    [min(each, _COUNTED_POSITIONS) for each in counts[0]],
                    [min(each, _COUNTED_USERS) for each in counts[1]],
                )
                fewer = groups_of(cases, *less, min(heads, _COUNTED_HEADS), entries, snapshots)
                reports.append(_counted(each, groups, fewer, header))
    return _report(app, reports, project, device, output_format)


def _numbers(option: str, text: str) -> list[int]:
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*|", text, re.ASCII):
        raise SsmtoolError(f"{option} {text}: expected numbers with commas, such as 1,64")
    found = [int(word) for word in text.split(",") if word]
    wrong = next((each for each in found if not 1 <= each <= _MOST), None)
    if wrong is not None:
        raise SsmtoolError(f"{option} {wrong}: it may be 1 to {_MOST}")
    return found


def _names(header: Header, index: int) -> dict[str, tuple[str, ...]]:
    """Kernel -> its parameters' names in C."""
    entries = header.modules[index].record.entries
    return {entry.name: tuple(each.split()[-1] for each in entry.parameters.split(", ")) for entry in entries}


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
    device: Device, groups: list[Group], header: Header, repeat: int, warmup: int, adapters: list[Adapter]
) -> BenchReport:
    from ssmtool import ptx
    from ssmtool.bench.card import CardBench, clocks
    from ssmtool.device.cuda import CudaDevice

    assert isinstance(device, CudaDevice)
    bench = CardBench(device, [(ptx.parse(held.ptx), _names(header, i)) for i, held in enumerate(header.modules)])
    report = _blank(device)
    try:
        bench.prepare()
        report.copy_bytes_per_second = bench.copy_bytes_per_second
        for group in groups:
            timings, beside = bench.time(group, repeat, warmup, adapters)
            report.timings += timings
            report.beside += beside
        report.clocks = clocks(device.index)
    finally:
        bench.close()
    return report


def _counted(device: Device, groups: list[Group], fewer: list[Group], header: Header) -> BenchReport:
    from ssmtool.bench.slots import count
    from ssmtool.execute import Module

    modules = {
        name: module
        for index, held in enumerate(header.modules)
        for module in [Module(held.ptx, parameters=_names(header, index))]
        for name in held.entry_names
    }
    report = _blank(device)
    for small, whole in zip(fewer, groups, strict=True):
        report.slots += count(small, whole, modules)
    return report


def _report(app: AppContext, reports: list[BenchReport], project: Project, device: str, output_format: str) -> int:
    from ssmtool.cli.context import print_report
    from ssmtool.findings import Finding, Outcome, Severity, Skip
    from ssmtool.report.bench import print_bench, summary

    different = [(report.device, each) for report in reports for each in report.cases if each.same_bits is False]
    outcome = Outcome(
        findings=[
            Finding(
                rule="bench/bits-differ",
                severity=Severity.ERROR,
                kernel=each.case,
                message=f"{each.group} on {name}: not the bits of the first kernel of its group",
                path=project.show(project.header_path),
                effect="a faster kernel with other results",
                fix="ssmtool verify",
            )
            for name, each in different
        ],
        required_skips=[
            Skip(f"bench of {each.peer} on {report.device}", each.problem, each.mend)
            for report in reports
            for each in report.beside
            if each.problem is not None
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
