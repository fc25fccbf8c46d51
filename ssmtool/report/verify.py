"""A verification for people: progress while it runs, a table of kernels, what explains a mismatch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ssmtool.report.table import print_table
from ssmtool.verify.result import Outcome, Result, RunResult, Status, result_json
from ssmtool.wording import folded, plural

if TYPE_CHECKING:
    from rich.progress import Progress

COLUMNS = ("kernel", "cases", "NMSE", "max-abs/RMS", "ulp", "NaN/Inf", "relations", "verdict")
# Seconds between lines of progress off a terminal.
_EVERY = 10.0
_WORDS = {"compile": "compiling kernels", "verify": "verifying"}


# ------------------------------------------------------------------------------------------------------ progress


class ProgressLines:
    """Off a terminal: a line when something fails, and one every ten seconds.

    Cases whose kernel the PTX lacks are told once, at the end.
    """

    def __init__(self, say: Callable[[str], None] | None) -> None:
        self._say = say
        self._last = time.monotonic()

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *_exception: object) -> None:
        return None

    def __call__(self, phase: str, done: int, total: int, result: Result | None) -> None:
        """One piece of work is done."""
        if self._say is None:
            return
        if result is not None and result.status in (Status.WRONG, Status.UNCHECKED) and not result.missing:
            self._say(f"{result.status.value}: {result.kind} {result.name} on {result.device}")
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            self._say(f"{_WORDS[phase]}: {done} of {total}")


class ProgressBar:
    """On a terminal: a bar of rich, and failures above it as they come."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        from ssmtool.report.console import console

        self._console = console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress: Progress = Progress(*columns, console=self._console, transient=True)
        self._phase = ""
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._progress.stop()

    def __call__(self, phase: str, done: int, total: int, result: Result | None) -> None:
        """One piece of work is done."""
        if phase != self._phase:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._phase, self._task = phase, self._progress.add_task(_WORDS[phase], total=total)
        self._progress.update(self._task, completed=done, total=total)
        if result is not None and result.status in (Status.WRONG, Status.UNCHECKED) and not result.missing:
            from rich.text import Text

            style = "bold red" if result.status is Status.WRONG else "bold yellow"
            self._console.print(
                Text.assemble((result.status.value, style), f": {result.kind} {result.name} on {result.device}")
            )  # fmt: skip


def progress(*, quiet: bool) -> ProgressLines | ProgressBar:
    """What a verification tells of itself on stderr."""
    if quiet or sys.stderr is None:
        return ProgressLines(None)
    if sys.stderr.isatty():
        return ProgressBar()
    return ProgressLines(lambda line: print(line, file=sys.stderr, flush=True))


# -------------------------------------------------------------------------------------------------------- tables


def tables(outcome: Outcome) -> list[dict[str, Any]]:
    """One table of kernels for each device, as report formats take it."""
    devices = list(dict.fromkeys(result.device for result in outcome if result.kind != "file"))
    return [
        {"title": f"Kernels on {device}", "columns": list(COLUMNS), "rows": _rows(outcome, device)}
        for device in devices
        if _rows(outcome, device)
    ]


def _rows(outcome: Outcome, device: str) -> list[list[str]]:
    results = [result for result in outcome if result.device == device]
    # Of a kernel that the PTX does not have there is nothing to tabulate.
    here = set(outcome.kernels)
    named = {kernel for result in results for kernel in result.kernels if not here or kernel in here}
    kernels = sorted(named, key=_order)
    return [_row(kernel, [result for result in results if kernel in result.kernels]) for kernel in kernels]


def _order(kernel: str) -> tuple[int, str]:
    """The product's kernels in the loader's order, others by name behind them."""
    from ssmtool.verify.contract import ENTRIES

    return (ENTRIES.index(kernel) if kernel in ENTRIES else len(ENTRIES), kernel)


def _row(kernel: str, results: Sequence[Result]) -> list[str]:
    cases = [result for result in results if result.kind == "case"]
    rounds = [result for result in results if result.kind == "relation"]
    arrays = [array for case in cases for run in case.runs if kernel in run.entries for array in run.arrays]
    checked = [case for case in cases if case.status in (Status.OK, Status.WRONG)]
    return [
        kernel,
        str(len(checked)),
        _scientific(max((array.nmse for array in arrays), default=None)),
        _scientific(max((array.max_rms for array in arrays), default=None)),
        str(max((array.max_ulp for array in arrays), default="-")),
        str(sum(array.nonfinite for array in arrays)),
        str(sum(each.status in (Status.OK, Status.WRONG) for each in rounds)),
        _verdict(kernel, results),
    ]


def _verdict(kernel: str, results: Sequence[Result]) -> str:
    """`WRONG` only for the kernels of the runs that are."""
    wrong = [run for result in results if result.status is Status.WRONG for run in result.runs if not run.ok]
    if any(kernel in run.entries for run in wrong):
        return "WRONG"
    statuses = {result.status for result in results}
    if Status.UNCHECKED in statuses:
        return "not checked"
    return "ok" if Status.OK in statuses or Status.WRONG in statuses else "not checked"


def _scientific(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:.1e}"


def verify_json(outcome: Outcome) -> dict[str, Any]:
    """Everything beside the findings."""
    return {
        "devices": list(outcome.devices),
        "seconds": round(outcome.seconds, 3),
        "compile_seconds": round(outcome.compile_seconds, 3),
        "results": [result_json(result) for result in outcome],
        "tables": tables(outcome),
    }


def print_verify(outcome: Outcome) -> None:
    """The tables, then what explains each mismatch, one line each."""
    found = tables(outcome)
    for table in found:
        title = table["title"] if len(found) > 1 else ""
        print_table(title, table["columns"], table["rows"], styles=_style)


def _style(_row: int, _column: int, cell: str) -> str:
    return {"WRONG": "bold red", "not checked": "bold yellow", "ok": "green"}.get(cell, "")


def print_details(outcome: Outcome) -> None:
    """Every wrong buffer of every wrong run but the first, which its finding tells."""
    for result in outcome.failed:
        wrong = [run for run in result.runs if not run.ok]
        # The first is in the finding.
        lines = [line for run in wrong for line in _lines(run)][1:]
        if lines:
            print(f"{result.kind} {result.name} on {result.device}, besides what is said below:")
            for line in lines[:_MOST_LINES]:
                print(folded(f"  {line}"))
            if len(lines) > _MOST_LINES:
                print(f"  ... and {len(lines) - _MOST_LINES} more; --format json has all")


_MOST_LINES = 12


def _lines(run: RunResult) -> list[str]:
    from ssmtool.verify.result import describe

    return [*(f"{run.name}: {fault}" for fault in run.faults),
            *(describe(run, array, alone=False) for array in run.arrays if not array.ok)]  # fmt: skip


def summary(outcome: Outcome) -> str:
    """The last line: how much was verified, on what, how closely watched, how long it took."""
    cases = [each for each in outcome if each.kind == "case" and each.status in (Status.OK, Status.WRONG)]
    rounds = [each for each in outcome if each.kind == "relation" and each.status in (Status.OK, Status.WRONG)]
    kernels = {kernel for each in (*cases, *rounds) for kernel in each.kernels}
    relations = {each.name for each in rounds}
    parts = [plural(len(cases), "case")]
    if rounds:
        parts.append(f"{plural(len(relations), 'relation')} in {plural(len(rounds), 'round')}")
    words = f"{' and '.join(parts)} of {plural(len(kernels), 'kernel')} on {', '.join(outcome.devices)}"
    watched = _watched(cases)
    compared = [each for each in outcome if each.kind == "devices"]
    if compared:
        runs = sum(len(each.runs) for each in compared)
        equal = sum(run.ok and not run.notes for each in compared for run in each.runs)
        watched += f"; {equal} of {plural(runs, 'run')} with equal bits on every device"
    time_words = f"{outcome.seconds:.1f} s"
    if outcome.compile_seconds >= 0.1:
        time_words += f", {outcome.compile_seconds:.1f} s of it compiling"
    return f"{words}{watched}; {time_words}"


def _watched(cases: Sequence[Result]) -> str:
    """How many cases were watched for what."""
    full = sum(each.check == "all" for each in cases)
    bounds = sum("bounds" in each.check for each in cases)
    guards = sum(each.check == "canaries" for each in cases)
    words = []
    if full:
        words.append(f"{full} checked for races, unwritten memory and bounds")
    if bounds:
        words.append(f"{bounds} (with large runs) for bounds" if full else f"{bounds} checked for bounds")
    if guards:
        words.append(f"{guards} with canaries around every buffer")
    return f"; {', '.join(words)}" if words else ""
