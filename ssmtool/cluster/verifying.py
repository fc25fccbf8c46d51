"""A verification on a cluster: the same results, in the same order, as `ssmtool.verify.run` has on one machine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ssmtool.cluster.batches import Batches, Sized
from ssmtool.cluster.crew import Crew, Patience
from ssmtool.cluster.resources import CPU, Wanted
from ssmtool.cluster.sweep import Answer, Lane, Piece, Sweep
from ssmtool.cluster.verification import Case, Compile, Round, Verification
from ssmtool.golden import GoldenCase, case_bytes
from ssmtool.verify.agreement import compare_ends
from ssmtool.verify.engine import Listener, Options, Ptx, Work, prepare, silent
from ssmtool.verify.plan import case_work
from ssmtool.verify.result import InterruptedRunError, Outcome, Result, Status
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.cluster.link import Link

# Seconds of a round, and positions a second of a case, before any is known. Only the size of tasks depends on them.
_ROUND_S = 0.1
_CASE_S = 0.01
_RATE = 2e7
# Kernels of one task.
_COMPILED = 2


def run_on_cluster(
    link: Link,
    ptx_text: Ptx,
    cases: Iterable[GoldenCase],
    wanted: Sequence[Wanted],
    *,
    relations: bool = True,
    options: Options | None = None,
    listener: Listener | None = None,
    patience: Patience | None = None,
    notes: list[str] | None = None,
) -> Outcome:
    """Verify on the workers that have what is `wanted`. `notes` receives sentences about what became of workers.

    Several wanted devices run everything each, and their bits are compared. What no worker could do is a result that
    says so. Raises NoWorkerError when there is none to begin with, LinkError for a scheduler that is gone,
    PtxSyntaxError, and InterruptedRunError, a KeyboardInterrupt, with what there is.
    """
    chosen, patience = options or Options(), patience or Patience()
    work = prepare(ptx_text, cases, chosen, relations=relations)
    run = _Run(work, wanted, chosen, listener or silent)
    crew = Crew(link, Verification(work.texts, chosen, wanted), [each.resource for each in wanted], notes)
    started = time.perf_counter()
    try:
        crew.gather(patience)
        run.compile(crew, patience)
        run.compiled = time.perf_counter() - started
        run.sweep(crew, patience)
    except KeyboardInterrupt:
        outcome = run.outcome(crew)
        outcome.unreached = (work.total - run.done, work.total)
        outcome.seconds = time.perf_counter() - started
        raise InterruptedRunError(outcome) from None
    finally:
        crew.dismiss()
    outcome = run.outcome(crew)
    outcome.seconds = time.perf_counter() - started
    return outcome


class _Run:
    """One verification. Items are rounds, then cases; a piece is an item on one of the wanted devices."""

    def __init__(self, work: Work, wanted: Sequence[Wanted], options: Options, tell: Listener) -> None:
        self._work = work
        self._wanted = list(wanted)
        self._options = options
        self._tell = tell
        self._results: dict[tuple[int, int], Result] = {}
        self._ends: dict[tuple[int, int], dict[str, Any]] = {}
        self._undone: dict[tuple[int, int], str] = {}
        self._told: set[tuple[str, str, str | None]] = set()
        self._waiting: Counter[int] = Counter()
        self._models: dict[str, dict[str, str]] = {each.resource: {} for each in wanted}
        self.done = 0
        self.compiled = 0.0

    def compile(self, crew: Crew, patience: Patience) -> None:
        """Every kernel in every cache that workers share. Workers that join later compile what they need."""
        if all(each.resource != CPU for each in self._wanted):
            return
        kernels = self._work.kernels(self._options)
        caches: dict[str, set[str]] = {}
        for address, opened in crew.opened(CPU).items():
            caches.setdefault(opened.cache, set()).add(address)
        tasks = [
            [Piece(at, Compile(kernel)) for at, kernel in enumerate(kernels)][first : first + _COMPILED]
            for first in range(0, len(kernels), _COMPILED)
        ]
        lanes = [Lane(CPU, iter(tasks), frozenset(addresses)) for addresses in caches.values()]
        total = len(kernels) * len(lanes)
        for done, _ in enumerate(Sweep(crew, lanes, patience), 1):
            self._tell("compile", done, total, None)

    def sweep(self, crew: Crew, patience: Patience) -> None:
        """Every item on every wanted device."""
        live = [lane for lane, each in enumerate(self._wanted) if crew.ready(each.resource)]
        self._waiting = Counter({item: len(live) for item in range(self._work.total)})
        batches = {lane: self._batches(crew, self._wanted[lane].resource) for lane in live}
        lanes = [Lane(self._wanted[lane].resource, batch) for lane, batch in batches.items()]
        sweep = Sweep(crew, lanes, patience)
        for answer in sweep:
            lane = live[answer.lane]
            self._see(crew)
            if answer.error is None:
                batches[lane].learn(answer.piece.number, answer.seconds)
            result = self._take(lane, answer)
            if result.status is Status.WRONG and self._options.stop_at_first:
                sweep.stop()

    def _batches(self, crew: Crew, resource: str) -> Batches:
        return Batches(
            self._sized(), self._load, lambda: sum(each.slots(resource) for each in crew.ready(resource)),
            self._work.total,
        )  # fmt: skip

    def _see(self, crew: Crew) -> None:
        """Who takes part: workers that leave are still told of in the end."""
        for resource, models in self._models.items():
            models.update({address: each.model for address, each in crew.opened(resource).items()})

    def _sized(self) -> list[Sized]:
        rounds = [Sized(at, relation.name, _ROUND_S) for at, (relation, _) in enumerate(self._work.relations)]
        first = len(rounds)
        return rounds + [
            Sized(first + at, case.meta.name, _CASE_S + case_work(case) / _RATE, _bytes(case))
            for at, case in enumerate(self._work.cases)
        ]  # fmt: skip

    def _load(self, item: int) -> Round | Case:
        relation, case = self._item(item)
        if relation is not None:
            return Round(relation[0].name, relation[1])
        return Case(case_bytes(case), ends=len(self._wanted) > 1)

    def _item(self, item: int) -> tuple[Any, Any]:
        """The round, or the case."""
        rounds = len(self._work.relations)
        return (self._work.relations[item], None) if item < rounds else (None, self._work.cases[item - rounds])

    def _take(self, lane: int, answer: Answer) -> Result:
        item = answer.piece.number
        relation, case = self._item(item)
        device = self._wanted[lane].word
        if answer.error is not None:
            result = _undone(relation, case, device, answer.error, self._options)
            self._undone[item, lane] = answer.error
        elif relation is not None:
            result = answer.value
        else:
            result, ends = answer.value
            result.case, result.path = case, str(case.path) if case.path else None
            if ends:
                self._ends[item, lane] = ends
        result.device = device
        if result.status is not Status.OK and answer.worker:
            result.place = f"worker {answer.worker}"
        self._results[item, lane] = result
        self._waiting[item] -= 1
        self.done += not self._waiting[item]
        # Thousands of rounds may be left by one worker that has gone: told once for each relation.
        key = (result.name, result.device, answer.error)
        again = relation is not None and answer.error is not None and key in self._told
        self._told.add(key)
        self._tell("verify", self.done, self._work.total, None if again else result)
        return result

    # ------------------------------------------------------------------------------------------------- the outcome

    def outcome(self, crew: Crew) -> Outcome:
        """The results in the order of the items; rounds of a relation that were not done are told as one."""
        self._see(crew)
        outcome = Outcome(self._devices(), skips=list(self._work.skips), compile_seconds=self.compiled)
        for lane, wanted in enumerate(self._wanted):
            outcome.results += [_refused(each, wanted, self._work) for each in crew.faults[wanted.resource][:1]]
            self._fold(lane)
        for item in range(self._work.total):
            found = [(lane, self._results[item, lane]) for lane in range(len(self._wanted))
                     if (item, lane) in self._results]  # fmt: skip
            outcome.results += [result for _, result in found]
            ends = {self._wanted[lane].word: self._ends[item, lane] for lane, _ in found if (item, lane) in self._ends}
            if len(ends) > 1:
                outcome.results += compare_ends(self._item(item)[1], ends, list(ends))
        return outcome

    def _fold(self, lane: int) -> None:
        """Rounds of a relation that were not done for one reason become one result."""
        rounds = [
            (item, self._work.relations[item][0].name, why)
            for (item, at), why in sorted(self._undone.items())
            if at == lane and item < len(self._work.relations)
        ]
        counts = Counter((name, why) for _, name, why in rounds)
        for item, name, why in rounds:
            count = counts.pop((name, why), 0)
            if not count:
                del self._results[item, lane]
            elif count > 1:
                result = self._results[item, lane]
                result.reason = f"{count} of its {self._options.rounds} rounds did not run: {why}"
                result.fix = _again(name, self._options, self._options.rounds)
            else:
                self._results[item, lane].reason = f"1 of its rounds did not run: {why}"

    def _devices(self) -> tuple[str, ...]:
        """`cpu (CPU executor on ...; 8 workers)`, one for each kind of device that took part."""
        return tuple(
            f"{wanted.word} ({model}; {plural(count, 'worker')})"
            for wanted in self._wanted
            for model, count in Counter(self._models[wanted.resource].values()).items()
        )


def _bytes(case: GoldenCase) -> int:
    return sum(array.nbytes for arrays in (case.before, case.after) for array in arrays.values())


def _again(relation: str, options: Options, rounds: int) -> str:
    return f"ssmtool verify --relations only --only {relation} --seed {options.seed} --rounds {rounds}"


def _undone(relation: Any, case: Any, device: str, why: str, options: Options) -> Result:
    if relation is not None:
        each, number = relation
        again = _again(each.name, options, number + 1)
        return Result("relation", each.name, each.title, each.entries, device, Status.UNCHECKED, reason=why, fix=again)
    return Result("case", case.meta.name, case.meta.title, case.kernels, device, Status.UNCHECKED, reason=why,
                  path=str(case.path) if case.path else None, case=case,
                  fix=f"ssmtool verify --only {case.meta.name}")  # fmt: skip


def _refused(fault: Any, wanted: Wanted, work: Work) -> Result:
    """As on one machine: PTX that the driver does not take is a result of its own."""
    entries = tuple(entry.name for text in work.texts for entry in text.module.entries)
    return Result("loading", "the PTX", "the driver takes it", entries, wanted.word, Status.WRONG,
                  reason=fault.message, fix=fault.fix)  # fmt: skip
