"""Runs cases and relations on devices: the heart of `ssmtool verify`, and what programs call.

from ssmtool.verify import run
outcome = run(ptx_text, cases, device)         # cases: GoldenCase objects; device: from ssmtool.device
assert not outcome.caught, outcome.findings()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from ssmtool import ptx
from ssmtool.device import Device
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Skip
from ssmtool.golden import GoldenCase
from ssmtool.verify.agreement import compare_ends
from ssmtool.verify.casework import run_case
from ssmtool.verify.contract import SPECIAL_ENTRIES, SPECIAL_SIZE, Dims, block_of
from ssmtool.verify.diagnosis import Purse
from ssmtool.verify.gaps import product_kernels
from ssmtool.verify.loaded import Check, Loaded, Text, named
from ssmtool.verify.plan import ALL_WORK, CPU_BYTES, capped_check, case_work, run_check, too_large
from ssmtool.verify.relating import run_relation
from ssmtool.verify.relations import Relation, all_relations
from ssmtool.verify.relations.draw import SMALL_SIZES
from ssmtool.verify.result import InterruptedRunError, Outcome, Result, Status
from ssmtool.verify.team import LostError, Team
from ssmtool.verify.warm import Wanted, compile_ahead

Ptx = str | bytes | ptx.Module | Text | Sequence[Text]
Listener = Callable[[str, int, int, Result | None], None]


@dataclass(frozen=True)
class Options:
    """How to verify. `all_work`: thread-positions of a run up to which the executor checks everything.

    `check` bounds what the executor looks for; `rounds` and `seed` are those of the relations, `names` the relations to
    run (all). `diagnose` is how many seconds may go into explaining mismatches. `stop_at_first` ends with the first
    result that is wrong. `jobs` cases run at once on the CPU, whose kernels use all processors themselves.
    """

    check: Check = "all"
    all_work: int = ALL_WORK
    seed: int = 0
    rounds: int = 3
    names: frozenset[str] | None = None
    diagnose: float = 10.0
    keep: bool = False
    stop_at_first: bool = False
    jobs: int = 1


def run(
    ptx_text: Ptx,
    cases: Iterable[GoldenCase],
    device: Device | Sequence[Device],
    *,
    relations: bool = True,
    options: Options | None = None,
    listener: Listener | None = None,
    share: bool = False,
    warm: bool = False,
) -> Outcome:
    """Verify PTX: every case on every device, then the relations on each.

    With `share` several devices share the cases, each running some; else each runs all, and the bits are compared.
    `listener(phase, done, total, result)` is called after each piece of work, in this thread. Relations whose
    kernels the PTX does not have are told as skips. `warm` compiles on two processors first.

    A case that cannot run is a result of its own. Raises PtxSyntaxError for text that is no PTX; DeviceError when no
    device is given; InterruptedRunError, a KeyboardInterrupt, with what there is.
    """
    chosen = options or Options()
    devices = [device] if isinstance(device, Device) else list(device)
    if not devices:
        raise SsmtoolError("no device to verify on")
    work = prepare(ptx_text, cases, chosen, relations=relations)
    outcome = Outcome(tuple(str(each) for each in devices), skips=list(work.skips))
    outcome.kernels = work.entries
    started = time.perf_counter()
    tell = listener or silent
    loaded: list[Loaded] = []
    try:
        if warm and any(not each.real for each in devices):
            compile_ahead(work.texts, work.kernels(chosen), lambda done, total: tell("compile", done, total, None))
            outcome.compile_seconds = time.perf_counter() - started
        loaded = _load(devices, work.texts, chosen, outcome)
        teams = _teams(loaded, chosen, share=share)
        if teams:
            _work(teams, work.cases, work.relations, chosen, outcome, tell)
    except KeyboardInterrupt:
        outcome.unreached = outcome.unreached or (work.total, work.total)
        raise InterruptedRunError(outcome) from None
    finally:
        for each in loaded:
            each.close()
        outcome.seconds = time.perf_counter() - started
    return outcome


@dataclass(frozen=True)
class Work:
    """What a verification consists of: cases by their work, rounds of relations, and what does not apply."""

    texts: list[Text]
    cases: list[GoldenCase]
    relations: list[tuple[Relation, int]]
    skips: list[Skip]

    @property
    def entries(self) -> tuple[str, ...]:
        """Kernels of the PTX."""
        return tuple(dict.fromkeys(entry.name for text in self.texts for entry in text.module.entries))

    @property
    def total(self) -> int:
        """Cases and rounds."""
        return len(self.cases) + len(self.relations)

    def kernels(self, options: Options) -> list[Wanted]:
        """What is to be compiled for the CPU."""
        return wanted_kernels(self.cases, self.relations, options)


def prepare(ptx_text: Ptx, cases: Iterable[GoldenCase], options: Options, *, relations: bool) -> Work:
    """What is to be done, before it is known on what. Raises PtxSyntaxError."""
    work = sorted(cases, key=case_work)
    texts = [named(text, work) for text in _texts(ptx_text)]
    related = applicable(texts, options) if relations else []
    return Work(texts, work, related, _not_applicable(texts, options) if relations else [])


def wanted_kernels(
    cases: Sequence[GoldenCase], relations: Sequence[tuple[Relation, int]], options: Options
) -> list[Wanted]:
    """(entry, block, check) of every launch on the CPU, each once."""
    found: dict[Wanted, None] = {}
    for entry, threads in relation_kernels(relations):
        found[(entry, (threads, 1, 1), options.check)] = None
    for case in cases:
        if case.device_bytes > CPU_BYTES:
            continue
        for each in case.meta.runs:
            check = capped_check(run_check(each.launches, options.all_work), options.check)
            for launch in each.launches:
                found[(launch.entry, launch.block, check)] = None
    return list(found)


def relation_kernels(relations: Sequence[tuple[Relation, int]]) -> set[tuple[str, int]]:
    """(entry, threads of a block) that the relations launch."""
    sizes = (SPECIAL_SIZE, *(SMALL_SIZES if any(number for _, number in relations) else ()))
    entries = {entry for relation, _ in relations for entry in relation.entries}
    return {
        (entry, block_of(entry, Dims(size=size)))
        for entry in entries
        for size in sizes
        if size == SPECIAL_SIZE or entry not in SPECIAL_ENTRIES
    }


def _texts(given: Ptx) -> list[Text]:
    if isinstance(given, Text):
        return [given]
    if isinstance(given, (str, bytes)):
        return [Text(ptx.parse(given))]
    if isinstance(given, ptx.Module):
        return [Text(given)]
    return list(given)


def silent(_phase: str, _done: int, _total: int, _result: Result | None) -> None:
    """Nobody listens."""


def applicable(texts: Sequence[Text], options: Options) -> list[tuple[Relation, int]]:
    """Relations whose kernels the PTX has, each with the numbers of its rounds."""
    entries = {entry.name for text in texts for entry in text.module.entries}
    return [
        (relation, number)
        for relation in _asked(options)
        if set(relation.entries) <= entries
        for number in range(options.rounds)
    ]


def _asked(options: Options) -> list[Relation]:
    return [each for each in all_relations() if options.names is None or each.name in options.names]


def _not_applicable(texts: Sequence[Text], options: Options) -> list[Skip]:
    """Relations that speak of kernels that are not there: told and counted, and no pass."""
    entries = {entry.name for text in texts for entry in text.module.entries}
    every = _asked(options)
    missing = [each.name for each in every if not set(each.entries) <= entries]
    if not missing or not product_kernels(entries):
        return []  # of another's kernels the relations say nothing, and nobody waits for them
    return [Skip(f"relations {', '.join(missing)}", "not applicable: this PTX lacks a kernel of each")]


def _load(devices: Sequence[Device], texts: Sequence[Text], options: Options, outcome: Outcome) -> list[Loaded]:
    """The PTX on every device; a device that does not take it is a result."""
    loaded = []
    for device in devices:
        try:
            loaded.append(Loaded(device, texts, check=options.check))
        except SsmtoolError as error:  # noqa: PERF203 - each device has its own verdict
            status = Status.WRONG if error.exit_code == 1 else Status.UNCHECKED
            entries = tuple(entry.name for text in texts for entry in text.module.entries)
            outcome.results.append(
                Result("loading", "the PTX", "the driver takes it", entries, device.name, status,
                       reason=str(error), fix=error.hint)
            )  # fmt: skip
    return loaded


def _teams(loaded: Sequence[Loaded], options: Options, *, share: bool) -> list[Team]:
    if share:
        return [Team(loaded, options.jobs)] if loaded else []
    return [Team([each], options.jobs) for each in loaded]


def _work(
    teams: Sequence[Team],
    cases: Sequence[GoldenCase],
    relations: Sequence[tuple[Relation, int]],
    options: Options,
    outcome: Outcome,
    tell: Listener,
) -> None:
    purse = Purse(options.diagnose)
    # By work: what is quick fails first. Relations need no expectation and are small: they go in front.
    tasks: list[Callable[[], list[Result]]] = [
        *(lambda each=each: _relation(teams, each[0], each[1], options) for each in relations),
        *(lambda each=each: _case(teams, each, options, purse) for each in cases),
    ]
    total, done = len(tasks), 0
    workers = max(team.slots for team in teams)
    left = iter(tasks)
    with ThreadPoolExecutor(workers, thread_name_prefix="ssmtool-verify") as pool:
        running: set[Future[list[Result]]] = set()
        try:
            stopped = False
            while True:
                # No more are handed out than run, so that stopping leaves nothing behind.
                while not stopped and len(running) < workers and (task := next(left, None)) is not None:
                    running.add(pool.submit(task))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    done += 1
                    for result in future.result():
                        outcome.results.append(result)
                        tell("verify", done, total, result)
                        stopped |= options.stop_at_first and result.status is Status.WRONG
        except BaseException:
            outcome.unreached = (total - done, total)
            for future in running:
                future.cancel()
            raise


def _relation(teams: Sequence[Team], relation: Relation, number: int, options: Options) -> list[Result]:
    found = []
    for team in teams:
        try:
            with team.borrow() as loaded:
                found.append(
                    run_relation(relation, loaded, seed=options.seed, number=number, keep=options.keep)
                )  # fmt: skip
        except LostError as error:  # noqa: PERF203 - each team has its own verdict
            found.append(
                Result("relation", relation.name, relation.title, relation.entries, team.name, Status.UNCHECKED,
                       reason=str(error), fix=error.hint)
            )  # fmt: skip
    return found


def _case(teams: Sequence[Team], case: GoldenCase, options: Options, purse: Purse) -> list[Result]:
    """The case on every team, and where there are several, whether their bits are equal."""
    found = []
    ends: dict[str, dict[str, Any]] = {}
    for team in teams:
        name = team.name
        ran: dict[str, Any] | None = None if len(teams) == 1 else {}
        try:
            with team.borrow() as loaded:
                name = loaded.device.name
                found.append(
                    run_case(case, loaded, all_work=options.all_work, purse=purse, keep=options.keep,
                             stop_at_first=options.stop_at_first, ends=ran)
                )  # fmt: skip
        except LostError as error:
            found.append(
                Result("case", case.meta.name, case.meta.title, case.kernels, name, Status.UNCHECKED,
                       reason=str(error), fix=error.hint)
            )  # fmt: skip
        if ran:
            ends[name] = ran
    if len(ends) > 1 and all(too_large(case, each.device) is None for team in teams for each in team.members):
        found += compare_ends(case, ends, list(ends))
    return found
