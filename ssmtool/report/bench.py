"""A benchmark for people: one table a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ssmtool.bench.result import KEPLER
from ssmtool.report.table import print_table
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.bench.result import BenchReport, Beside, Slots, Timing

# Of the outputs and of the states, against the first case of the group: NMSE, and the largest error over their RMS.
_DISTANCES = ("NMSE y", "max y", "NMSE s", "max s")
_BITS = {None: "reference", True: "same", False: "DIFFERENT"}
# A vector's runs are held to its tolerances: other bits than those of the first run are none of its business.
_WITHIN = {None: "right", True: "right, same", False: "right, others"}


def print_bench(report: BenchReport) -> None:
    """Times on a card, or slots and floors on the executor."""
    driver = f", driver of CUDA {report.driver}" if report.driver else ""
    print(f"{report.device}: {report.model}{driver}; {report.date}")
    if report.copy_bytes_per_second is not None:
        clocks = f"; {report.clocks}" if report.clocks else ""
        rate = _tera(report.copy_bytes_per_second)
        print(f"copy bandwidth, 512 MiB within the card, bytes read and written: {rate}{clocks}")
    print()
    for title in dict.fromkeys(each.group for each in report.cases):
        timed = [each for each in report.timings if each.group == title]
        counted = [each for each in report.slots if each.group == title]
        if timed:
            columns = ("case", "launches", "us", "fastest", "slowest", "bandwidth", "of copy", "Gop/s", "bits")
            print_table(title, columns, [_timing(each) for each in timed])
        beside = [each for each in report.beside if each.group == title and each.problem is None]
        if beside:
            best = min(each.median for each in timed)
            heads = ("from outside, in the same run", "us", "fastest", "slowest", "host us", "bandwidth", "of copy")
            print_table("", (*heads, "over our best", *_DISTANCES), [_beside(each, best) for each in beside])
        if counted:
            heads = ("case", "launches", "slots", f"per {counted[0].unit}", "issue us", "bandwidth us", "bits")
            print_table(f"{title}; floors of {KEPLER}", heads, [_slots(each) for each in counted])
    for note in dict.fromkeys(each.note for each in report.beside if each.note):
        print(f"note: {note}\n")


def summary(reports: Sequence[BenchReport]) -> str:
    """The last line."""
    compared = [each.same_bits for report in reports for each in report.cases]
    told = []
    if more := len(compared) - compared.count(None):
        told.append(f"{compared.count(True)} of {more} compared have the first's bits")
    judged = [each.right for report in reports for each in report.cases if each.right is not None]
    if judged:
        told.append(f"{judged.count(True)} of {plural(len(judged), 'run')} within the vectors' tolerances")
    where = ", ".join(report.device for report in reports)
    return "; ".join([f"{plural(len(compared), 'case')} on {where}", *told])


def _timing(each: Timing) -> tuple[str, ...]:
    return (
        each.case,
        str(each.launches),
        f"{each.median * 1e6:.2f}",
        f"{min(each.seconds) * 1e6:.2f}",
        f"{max(each.seconds) * 1e6:.2f}",
        _tera(each.bytes_per_second),
        f"{each.bytes_per_second / each.copy_bytes_per_second:.1%}",
        f"{each.operations / each.median / 1e9:.0f}" if each.operations else "-",
        _bits(each),
    )


def _beside(each: Beside, best: float) -> tuple[str, ...]:
    found = {("y" if one.output == "gated" else one.output): one for one in each.differences}
    distances: list[str] = []
    for name in ("y", "s"):
        one = found.get(name)
        distances += ["-", "-"] if one is None else [f"{one.nmse:.1e}", f"{one.max_abs / (one.rms or 1.0):.1e}"]
    return (
        each.peer,
        f"{each.median * 1e6:.2f}",
        f"{min(each.seconds) * 1e6:.2f}",
        f"{max(each.seconds) * 1e6:.2f}",
        f"{each.host_seconds * 1e6:.1f}",
        _tera(each.bytes_per_second),
        f"{each.bytes_per_second / each.copy_bytes_per_second:.1%}",
        f"{each.median / best:.2f}",
        *distances,
    )


def _slots(each: Slots) -> tuple[str, ...]:
    return (
        each.case,
        str(each.launches),
        f"{each.slots:.0f}",
        f"{each.per_row:.1f}",
        f"{_floor(each.issue_us[1])} to {_floor(each.issue_us[0])}",
        _floor(each.bandwidth_us),
        _bits(each),
    )


def _bits(each: Timing | Slots) -> str:
    if each.right is None:
        return _BITS[each.same_bits]
    return _WITHIN[each.same_bits] if each.right else "WRONG"


def _floor(microseconds: float) -> str:
    return f"{microseconds:.{1 if microseconds >= 1 else 3}f}"


def _tera(bytes_per_second: float) -> str:
    return f"{bytes_per_second / 1e12:.3f} TB/s"
