"""A whole run: batches of all targets in turn, until a limit; every distinct failure once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ssmtool.fuzz.batch import Batch, BatchResult, Subject, close, run_batch
from ssmtool.fuzz.engine import Limits
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.warm import warm

# (result of a batch, everything so far)
Listener = Callable[[BatchResult, "Fuzzed"], None]

# Rounds of a batch: some tenths of a second.
BATCH = 20
# Rounds of a target's first batch. All targets have had one when the first has its second: a short run sees them all.
FIRST = 10


@dataclass(frozen=True)
class Plan:
    """What to run. `rounds` of each target, `seconds` in all; at least one of them. `most` failures end it.

    With `first_whole` every target has its first batch, whatever the time. Several `devices` each run everything, or
    share the targets' batches.
    """

    subject: Subject
    targets: tuple[str, ...]
    seed: int
    devices: tuple[str, ...] = ("cpu",)
    rounds: int | None = None
    seconds: float | None = None
    share: bool = True
    most: int = 20
    first_whole: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass
class Found:
    """A distinct failure: where it was found first, and the other targets that it shows in."""

    failure: Failure
    device: str
    batch: int
    round: int
    also: list[str] = field(default_factory=list)


@dataclass
class Fuzzed:
    """What a run found so far. `rounds` by target; `problems` are (target, why, what mends it).

    `ended` is `rounds`, `time`, `failures`, or `interrupted`.
    """

    plan: Plan
    rounds: dict[str, int] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)
    problems: list[tuple[str, str, str | None]] = field(default_factory=list)
    seconds: float = 0.0
    ended: str = "rounds"

    @property
    def total(self) -> int:
        """Rounds of all targets."""
        return sum(self.rounds.values())

    def closed(self, target: str, device: str) -> bool:
        """Whether nothing more is to be run of a target: it has failed, or cannot be judged."""
        return any(each.failure.target == target and each.device == device for each in self.found) or any(
            name == target for name, _, _ in self.problems
        )


def batches(plan: Plan, closed: Callable[[str, str], bool] = lambda _target, _device: False) -> Iterator[Batch]:
    """The batches in order, without end where only the time is limited. Targets that are closed are left out."""
    done, index = 0, 0
    while plan.rounds is None or done < plan.rounds:
        size = FIRST if index == 0 else BATCH
        size = size if plan.rounds is None else min(size, plan.rounds - done)
        given = False
        for number, target in enumerate(plan.targets):
            devices = plan.devices
            if plan.share:
                devices = (devices[(index + number) % len(devices)],)
            for device in devices:
                if not closed(target, device):
                    given = True
                    yield Batch(plan.subject, target, index, plan.seed, size, device, plan.limits)
        if not given:
            return
        done, index = done + size, index + 1


def fuzz(plan: Plan, listener: Listener | None = None) -> Fuzzed:
    """Run it in this process. Ctrl-C ends it early: what was found is kept, and `ended` says so."""
    found = Fuzzed(plan)
    started = time.monotonic()
    collected = Collector(found)
    try:
        if "cpu" in plan.devices:
            half = None if plan.seconds is None or plan.first_whole else started + plan.seconds / 2
            warm(plan.subject, plan.targets, half)
        for batch in batches(plan, found.closed):
            timed = plan.seconds is not None and not (plan.first_whole and batch.index == 0)
            left = plan.seconds - (time.monotonic() - started) if timed and plan.seconds is not None else None
            if left is not None and left <= 0:
                found.ended = "time"
                break
            result = run_batch(replace(batch, seconds=left))
            collected.add(result)
            if cut_short(result, batch.rounds, left):
                found.ended = "time"
            found.seconds = time.monotonic() - started
            if listener is not None:
                listener(result, found)
            if result.interrupted:
                raise KeyboardInterrupt
            if len(found.found) >= plan.most:
                found.ended = "failures"
                break
    except KeyboardInterrupt:
        found.ended = "interrupted"
    finally:
        close()
    found.seconds = time.monotonic() - started
    return found


def cut_short(result: BatchResult, rounds: int, seconds: float | None) -> bool:
    """Whether a batch of so many rounds ended because its time was up, maybe before the first of them."""
    late = seconds is not None and result.seconds >= seconds and result.rounds < rounds
    return late and result.failure is None and result.problem is None


class Collector:
    """Puts the results of batches together; the order in which they come does not matter.

    Of a target, the failing batch of the lowest index counts, and no batch after it. A failure that another has already
    shown (the same kernel, kind and buffer) is that one seen again.
    """

    def __init__(self, found: Fuzzed) -> None:
        self._found = found
        self._rounds: dict[tuple[str, str], dict[int, int]] = {}
        self._last: dict[tuple[str, str], BatchResult] = {}

    def add(self, result: BatchResult) -> None:
        """One more result."""
        key = (result.target, result.device)
        last = self._last.get(key)
        if last is not None and last.index <= result.index:
            return
        rounds = self._rounds.setdefault(key, {})
        rounds[result.index] = result.rounds
        if result.failure is not None or result.problem is not None:
            self._last[key] = result
            self._rounds[key] = {index: count for index, count in rounds.items() if index <= result.index}
        if key in self._last:
            self._put_together()
        total = sum(sum(counts.values()) for (name, _), counts in self._rounds.items() if name == result.target)
        self._found.rounds[result.target] = total

    def _put_together(self) -> None:
        place = {name: number for number, name in enumerate(self._found.plan.targets)}
        self._found.found, self._found.problems = [], []
        for key in sorted(self._last, key=lambda each: (place.get(each[0], 0), each[1])):
            result = self._last[key]
            if result.problem is not None:
                self._found.problems.append((result.target, result.problem, result.fix))
            if result.failure is not None:
                before = sum(count for index, count in self._rounds[key].items() if index < result.index)
                self._failed(Found(result.failure, result.device, result.index, before + (result.at or 0)))

    def _failed(self, new: Found) -> None:
        for each in self._found.found:
            if _same(each.failure, new.failure):
                other = "" if new.device == each.device else f" on {new.device}"
                each.also.append(f"{new.failure.target}{other}")
                return
        self._found.found.append(new)


def _same(one: Failure, other: Failure) -> bool:
    """Whether two failures are taken for one.

    They are of the same kernel, and of the same kind, whichever of value and bits is wrong; or what a relation shows is
    a kernel that has failed by itself.
    """

    def what(failure: Failure) -> tuple[str, str]:
        return ("value" if failure.kind.what == "bits" else failure.kind.what), failure.kind.where

    related = "/" in other.target and other.target not in one.kernels
    return one.kernels == other.kernels and (related or what(one) == what(other))
