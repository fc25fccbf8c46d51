"""A fuzzing run for people: progress while it runs, a table, the last line; and all of it as JSON data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ssmtool.fuzz.batch import BatchResult
from ssmtool.fuzz.run import Fuzzed
from ssmtool.report.table import print_table
from ssmtool.wording import plural

if TYPE_CHECKING:
    from rich.progress import Progress

    from ssmtool.fuzz.saving import Saved

# Seconds between lines of progress off a terminal.
_EVERY = 10.0
_ENDED = {
    "rounds": "",
    "time": "the time was up",
    "failures": "so many failures ended it",
    "interrupted": "INTERRUPTED: this is what was found by then",
}


# ------------------------------------------------------------------------------------------------------ progress


class ProgressLines:
    """Off a terminal: a line when something fails, and one every ten seconds."""

    def __init__(self, say: Callable[[str], None] | None) -> None:
        self._say = say
        self._last = time.monotonic()

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, *_exception: object) -> None:
        return None

    def __call__(self, result: BatchResult, found: Fuzzed) -> None:
        """One batch is done."""
        if self._say is None:
            return
        for line in _news(result):
            self._say(line)
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            self._say(_sofar(found))


class ProgressBar:
    """On a terminal: one line that is written over, and failures above it as they come."""

    def __init__(self) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from ssmtool.report.console import console

        self._console = console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress: Progress = Progress(*columns, console=self._console, transient=True)
        self._task = self._progress.add_task("fuzzing", total=None)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._progress.stop()

    def __call__(self, result: BatchResult, found: Fuzzed) -> None:
        """One batch is done."""
        from rich.text import Text

        self._progress.update(self._task, description=f"{_sofar(found)}, {result.target}")
        for line in _news(result):
            self._console.print(Text(line, style="bold red" if result.failure else "bold yellow"))


def progress(*, quiet: bool) -> ProgressLines | ProgressBar:
    """What a run tells of itself on stderr."""
    if quiet or sys.stderr is None:
        return ProgressLines(None)
    if sys.stderr.isatty():
        return ProgressBar()
    return ProgressLines(lambda line: print(line, file=sys.stderr, flush=True))


def _news(result: BatchResult) -> list[str]:
    if result.failure is not None:
        return [f"wrong: {result.target} ({result.failure.kind}) on {result.device}, {result.failure.shape}"]
    return [f"not checked: {result.target}: {result.problem}"] if result.problem else []


def _sofar(found: Fuzzed) -> str:
    return f"fuzzing: {plural(found.total, 'round')}, {plural(len(found.found), 'failure')}"


# -------------------------------------------------------------------------------------------------------- tables


def table(found: Fuzzed, targets: Sequence[tuple[str, tuple[str, ...]]]) -> dict[str, Any]:
    """Rounds by kernel, as report formats take it; of vectors, by vector. `targets` are (name, kernels)."""
    names = {name for name, _ in targets}
    kernels = list(dict.fromkeys(kernel for _, entries in targets for kernel in entries))
    if not any(kernel in names for kernel in kernels) and not any(name.startswith("R") for name in names):
        rows = [[name, str(found.rounds.get(name, 0)), _verdict(found, {name}, entries)] for name, entries in targets]
        return {"title": "Vectors", "columns": ["vector", "rounds", "verdict"], "rows": rows}
    rows = []
    for kernel in kernels:
        related = {name for name, entries in targets if kernel in entries and name != kernel}
        own = str(found.rounds.get(kernel, 0)) if kernel in names else "-"
        count = sum(found.rounds.get(name, 0) for name in related)
        rows.append([kernel, own, str(count) if related else "-", _verdict(found, {kernel, *related}, (kernel,))])
    return {"title": "Kernels", "columns": ["kernel", "rounds", "of relations", "verdict"], "rows": rows}


def _verdict(found: Fuzzed, targets: set[str], kernels: Sequence[str]) -> str:
    """`WRONG` for the kernels of what failed."""
    failed = [each.failure for each in found.found if set(each.failure.kernels) & set(kernels)]
    if any(each.target in targets for each in failed):
        return "WRONG"
    if any(name in targets for name, _, _ in found.problems):
        return "not checked"
    return "ok" if any(found.rounds.get(name, 0) for name in targets) else "not checked"


def print_fuzz(found: Fuzzed, targets: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    """The table."""
    made = table(found, targets)
    print_table("", made["columns"], made["rows"], styles=_style)


def _style(_row: int, _column: int, cell: str) -> str:
    return {"WRONG": "bold red", "not checked": "bold yellow", "ok": "green"}.get(cell, "")


def summary(found: Fuzzed, devices: Sequence[str]) -> str:
    """The last line: how much, on what, how fast, by which seed, and why it ended."""
    speed = found.total / found.seconds if found.seconds else 0.0
    parts = [
        f"{plural(found.total, 'round')} of {plural(len([n for n in found.rounds.values() if n]), 'target')} on "
        f"{', '.join(devices)}",
        f"seed {found.plan.seed}",
        f"{found.seconds:.1f} s, {speed:.0f} rounds/s",
    ]
    return "; ".join([*parts, _ENDED[found.ended]] if _ENDED[found.ended] else parts)


def fuzz_json(
    found: Fuzzed, saved: Sequence[Saved], targets: Sequence[tuple[str, tuple[str, ...]]], devices: Sequence[str],
    release: str,
) -> dict[str, Any]:  # fmt: skip
    """Everything beside the findings."""
    return {
        "seed": found.plan.seed,
        "hypothesis": release,
        "devices": list(devices),
        "rounds": dict(found.rounds),
        "total_rounds": found.total,
        "seconds": round(found.seconds, 3),
        "rounds_per_second": round(found.total / found.seconds, 1) if found.seconds else 0.0,
        "ended": found.ended,
        "partial": found.ended == "interrupted",
        "failures": [_failure_json(each) for each in saved],
        "tables": [table(found, targets)],
    }


def _failure_json(saved: Saved) -> dict[str, Any]:
    found, failure = saved.found, saved.found.failure
    return {
        "target": failure.target,
        "kernels": list(failure.kernels),
        "kind": failure.kind.what,
        "where": failure.kind.where,
        "shape": failure.shape,
        "message": failure.message,
        "looks_like": saved.looks_like,
        "device": found.device,
        "round": found.round,
        "batch": found.batch,
        "choices": dict(failure.choices),
        "values": dict(failure.values),
        "also": found.also,
        "files": [str(path) for path in saved.paths],
        "vector": str(saved.vector) if saved.vector else None,
        "verify_fails_it": saved.shown,
        "command": saved.command,
    }
