"""What a verification found: one result for each case and relation on each device, and the verdict of all."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ssmtool.findings import Finding, Severity, Skip, Verdict
from ssmtool.findings import Outcome as Findings
from ssmtool.verify.gaps import missing_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ssmtool.golden import ArrayResult, GoldenCase


class InterruptedRunError(KeyboardInterrupt):
    """Ctrl-C, with what was found until then. Who does not know of it sees a KeyboardInterrupt as ever."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


EFFECT = "a program that runs on these kernels computes other numbers, without an error"


class Status(enum.Enum):
    """`NOT_HERE`: the case is too large for this device, which is no fault of anybody; never a pass."""

    OK = "ok"
    WRONG = "wrong"
    UNCHECKED = "not checked"
    NOT_HERE = "too large here"


@dataclass
class RunResult:
    """One run of a case: every buffer compared. `faults` are what the checks caught; `looks_like` explains in words."""

    name: str
    entries: tuple[str, ...]
    arrays: list[ArrayResult] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    looks_like: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults and all(each.ok for each in self.arrays)


@dataclass
class Result:
    """One case, or one round of a relation, on one device.

    `check` is what stood guard: `all`, `bounds`, or `canaries` on a card. `reason` and `fix` say why it is not OK,
    where no run does. `arrays` are what a failed one left, by `run.buffer`, for `--save-failure`. `place` is the worker
    of a cluster that ran it, "" for this machine. `missing` is the kernel that the PTX does not have.
    """

    kind: str
    name: str
    title: str
    kernels: tuple[str, ...]
    device: str
    status: Status = Status.OK
    check: str = ""
    runs: list[RunResult] = field(default_factory=list)
    reason: str | None = None
    fix: str | None = None
    seconds: float = 0.0
    path: str | None = None
    case: GoldenCase | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    place: str = ""
    missing: str = ""

    @property
    def problem(self) -> str:
        """Why it is not OK, in a sentence or a few."""
        if self.reason:
            return self.reason
        for run in self.runs:
            if run.faults:
                return run.faults[0]
            for array in run.arrays:
                if not array.ok:
                    return describe(run, array, alone=len(self.runs) == 1)
        return ""


def describe(run: RunResult, array: ArrayResult, *, alone: bool) -> str:
    """One wrong buffer: where, how far, which groups, and what it looks like."""
    where = "" if alone else f"run {run.name}: "
    parts = ["; ".join(array.reasons)]
    bad = [group.label for group in array.bad_groups if group.label]
    if bad:
        few = ", ".join(bad[:4]) + (f" and {len(bad) - 4} more" if len(bad) > 4 else "")
        parts.append(f"in {few} of {len(array.groups)}" if len(bad) < len(array.groups) else "in every group")
    if array.first:
        parts.append(f"first {array.first}")
    if array.worst and array.worst != array.first:
        parts.append(f"worst {array.worst}")
    return f"{where}{array.name}: {'; '.join(parts)}"


@dataclass
class Outcome:
    """Everything a verification found. `devices` say what it ran on; `extra` are findings about the PTX itself.

    `again` is the command that repeats it, to which `--only` can be added. `unreached` of a run that was interrupted is
    how many of how many cases and rounds it did not come to; what it has is then partial. `kernels` are the PTX's.
    """

    devices: tuple[str, ...]
    results: list[Result] = field(default_factory=list)
    extra: list[Finding] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    again: str = "ssmtool verify"
    unreached: tuple[int, int] | None = None
    kernels: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether it was interrupted."""
        return self.unreached is not None

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def with_status(self, status: Status) -> list[Result]:
        """The results of one status."""
        return [each for each in self.results if each.status is status]

    @property
    def failed(self) -> list[Result]:
        """What is wrong."""
        return self.with_status(Status.WRONG)

    @property
    def caught(self) -> bool:
        """Whether anything is wrong: a mutant is caught."""
        return bool(self.failed)

    @property
    def verdict(self) -> Verdict:
        """WRONG, UNCHECKED or OK; nothing checked at all is UNCHECKED."""
        return self.findings().verdict

    def findings(self) -> Findings:
        """As every command reports: errors, skips, notes."""
        found = Findings(findings=list(self.extra), skips=list(self.skips))
        # One kernel that is not there may leave a hundred cases unchecked.
        missing = [each for each in self.results if each.missing and each.status is Status.UNCHECKED]
        told = {id(each) for each in missing} if len(missing) > 1 else set()
        if told:
            found.required_skips += missing_kernels(self.results, self.kernels)
        for result in self.results:
            if id(result) in told:
                continue
            if result.status is Status.WRONG:
                found.findings.append(_finding(result, self.again))
            elif result.status is Status.UNCHECKED:
                found.required_skips.append(Skip(_title(result), result.problem, result.fix))
            elif result.status is Status.NOT_HERE:
                found.skips.append(Skip(_title(result), result.problem, result.fix))
            if result.kind == "devices" and (notes := [note for run in result.runs for note in run.notes]):
                more = f" (and {len(notes) - 1} more of this case)" if len(notes) > 1 else ""
                message = f"{result.name}: {notes[0]}{more}"
                found.findings.append(
                    Finding("verify/unit-differs", Severity.NOTE, message, fix="ssmtool probe --device cuda")
                )
        if self.unreached is not None:
            what = f"{self.unreached[0]} of {self.unreached[1]} cases and rounds"
            found.required_skips.append(Skip(what, "the run was interrupted before it ended", self.again))
        if not any(each.status in (Status.OK, Status.WRONG) for each in self.results) and not found.required_skips:
            found.required_skips.append(Skip("the PTX", "no case and no relation ran", "ssmtool verify --only '*'"))
        return found


def _title(result: Result) -> str:
    place = f" ({result.place})" if result.place else ""
    return f"{result.kind} {result.name} on {result.device}{place}"


def _finding(result: Result, again: str) -> Finding:
    run = next((run for run in result.runs if not run.ok), None)
    rule = "relation" if result.kind == "relation" else "mismatch"
    if run is not None and run.faults:
        rule = "fault"
    elif run is not None and any(array.unwritten for array in run.arrays):
        rule = "unwritten"
    elif result.kind == "devices":
        rule = "devices-differ"
    message = f"{_title(result)}: {result.problem}"
    looks = list(dict.fromkeys(words for each in result.runs for words in each.looks_like))
    if looks:
        message += f". {'. '.join(looks)}"
    wrong = [each for each in result.runs if not each.ok]
    if len(wrong) > 1:
        message += f" ({len(wrong)} of {len(result.runs)} runs are wrong)"
    return Finding(
        rule=f"verify/{rule}",
        severity=Severity.ERROR,
        message=message,
        kernel=", ".join(run.entries) if run is not None and run.entries else ", ".join(result.kernels),
        path=result.path,
        effect=EFFECT,
        fix=result.fix or f"{again} --only {result.name} --save-failure failures",
    )


def result_json(result: Result) -> Mapping[str, Any]:
    """One result as JSON data; NaN and infinities as words."""
    return {
        "kind": result.kind,
        "name": result.name,
        "title": result.title,
        "kernels": list(result.kernels),
        "device": result.device,
        "status": result.status.value,
        "check": result.check,
        "seconds": round(result.seconds, 6),
        "reason": result.problem or None,
        "runs": [_run_json(run) for run in result.runs],
        **({"place": result.place} if result.place else {}),
    }


def _run_json(run: RunResult) -> dict[str, Any]:
    return {
        "name": run.name,
        "ok": run.ok,
        "faults": run.faults,
        "notes": run.notes,
        "looks_like": run.looks_like,
        "buffers": [_array_json(array) for array in run.arrays],
    }


def _array_json(array: ArrayResult) -> dict[str, Any]:
    return {
        "name": array.name,
        "ok": array.ok,
        "policy": str(array.policy),
        "nmse": finite(array.nmse),
        "max_abs_over_rms": finite(array.max_rms),
        "max_ulp": array.max_ulp,
        "wrong": array.wrong,
        "unwritten": array.unwritten,
        "overwritten": array.overwritten,
        "nonfinite": array.nonfinite,
        "first": array.first,
        "worst": array.worst,
        "bad_groups": [group.label for group in array.bad_groups],
        "reasons": list(array.reasons),
    }


def finite(value: float) -> float | str:
    """JSON has no NaN and no infinity: they become words."""
    return value if abs(value) < float("inf") else str(value)
