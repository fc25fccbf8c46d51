"""Random accesses to shared memory: checked mode against an oracle that knows only epochs, not orders."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

import pytest
from execute.checked import WARPS, WIDE, run

from ssmtool.execute.faults import Recorder
from ssmtool.execute.layout import Fault

Report = tuple[Fault, int, int, int, bool]
"""(kind, word, thread, other thread or -1, whether the other wrote)."""


@dataclass(frozen=True)
class Step:
    """One instruction: `load`, `store`, `atom`, `bar` or `warp`. Thread t of `lanes` accesses word `word[t]`."""

    kind: str
    ptx: str
    lanes: frozenset[int] = frozenset()
    word: tuple[int, ...] = ()
    value: tuple[int, ...] = ()


def _step(random: Random, threads: int, warps: bool) -> Step:
    kind = random.choice(("load", "load", "store", "store", "atom", "bar", "bar", "warp" if warps else "bar"))
    if kind == "bar":
        return Step(kind, "bar.sync 0")
    if kind == "warp":
        return Step(kind, "bar.warp.sync -1")
    constant = random.randrange(threads)
    warp = constant // 32
    guard, lanes = random.choice(
        (
            ("", range(threads)),
            (f"setp.eq.u32 %p3, %r1, {constant}", [constant]),
            (f"setp.lt.u32 %p3, %r1, {constant}", range(constant)),
            (f"shr.u32 %r8, %r1, 5; setp.eq.u32 %p3, %r8, {warp}", [t for t in range(threads) if t // 32 == warp]),
        )
    )  # fmt: skip
    offset, factor, mask = random.randrange(32), random.choice((2, 3, 5)), random.choice((7, 31, 127))
    address, word = random.choice(
        (
            ("mov.u32 %r5, %r3", list(range(threads))),
            (f"add.u32 %r5, %r3, {4 * offset}", [t + offset for t in range(threads)]),
            (f"mov.u32 %r5, s; add.u32 %r5, %r5, {4 * offset}", [offset] * threads),
            (
                f"mul.lo.u32 %r5, %r1, {factor}; and.b32 %r5, %r5, {mask}; shl.b32 %r5, %r5, 2; "
                "mov.u32 %r6, s; add.u32 %r5, %r5, %r6",
                [t * factor & mask for t in range(threads)],
            ),
        )
    )  # fmt: skip
    shared_value = random.random() < 0.5
    access = {
        "load": "ld.shared.u32 %r4, [%r5]",
        "store": f"st.shared.u32 [%r5], {7 if shared_value else '%r1'}",
        "atom": "red.shared.add.u32 [%r5], 1",
    }[kind]
    ptx = f"{address}; {guard}; {'@%p3 ' if guard else ''}{access}"
    value = tuple(7 if shared_value else t for t in range(threads))
    return Step(kind, ptx, frozenset(lanes), tuple(word), value)


@dataclass
class Oracle:
    """What an order of threads cannot change."""

    races: set[int]
    """Words with a race between warps."""
    pairs: set[tuple[int, int, int]]
    """(word, thread, thread) that conflict, whatever their warps."""
    notes: bool
    """Whether threads of one warp conflict with no barrier of any kind between."""
    unwritten: set[int]
    """Words that are read although nothing writes them before the barrier after."""
    perhaps: set[int]
    """Words that are read and written for the first time between the same two barriers."""


def _meets_itself(step: Step, thread: int, other: int) -> bool:
    """Whether a store's lanes `thread` and `other` write one value to one place: then no note is asked for."""
    both = step.kind == "store" and other in step.lanes and step.word[thread] == step.word[other]
    return both and step.value[thread] == step.value[other]


def _judge(steps: list[Step]) -> Oracle:
    oracle = Oracle(set(), set(), False, set(), set())
    written: set[int] = set()
    epochs: list[list[tuple[int, Step]]] = [[]]
    part = 0
    for step in steps:
        part += step.kind in ("bar", "warp")
        if step.kind == "bar":
            epochs.append([])
        elif step.kind != "warp":
            epochs[-1].append((part, step))
    for epoch in epochs:
        by_word = defaultdict(list)
        for part, step in epoch:
            for thread in step.lanes:
                by_word[step.word[thread]].append((part, step, thread))
        now = {word for word, accesses in by_word.items() if any(step.kind != "load" for _, step, _ in accesses)}
        for word, accesses in by_word.items():
            if word not in written and any(step.kind != "store" for _, step, _ in accesses):
                surely = all(step.kind != "store" for _, step, _ in accesses)
                (oracle.unwritten if surely else oracle.perhaps).add(word)
            for k, (part, step, thread) in enumerate(accesses):
                for part2, step2, thread2 in accesses[:k]:
                    kinds = {step.kind, step2.kind}
                    if thread == thread2 or kinds == {"load"} or kinds == {"atom"}:
                        continue
                    if thread // 32 != thread2 // 32:
                        oracle.races.add(word)
                    elif step is step2 and step.value[thread] == step.value[thread2]:
                        continue
                    elif _meets_itself(step, thread, thread2):
                        pass
                    elif part == part2:
                        oracle.notes = True
                    oracle.pairs |= {(word, thread, thread2), (word, thread2, thread)}
        written |= now
    return oracle


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """Every report, not only the first of each place."""
    found: list[Report] = []
    take = Recorder._take

    def listen(self: Recorder, kind: int, site: int, what: list[int]) -> None:
        _, thread, address, extra = what
        wrote = extra >= (1 << 32) - 1
        found.append((Fault(kind), address // 4, thread, extra - (1 << 32) if wrote else extra, wrote))
        take(self, kind, site, what)

    monkeypatch.setattr(Recorder, "_take", listen)
    return found


@pytest.mark.parametrize("mode", [WIDE, WARPS], ids=["block-wide", "by-warps"])
@pytest.mark.parametrize("seed", range(12))
def test_against_the_oracle(mode: str, seed: int, reports: list[Report]) -> None:
    random = Random(seed)
    threads = random.choice((64, 96, 70))
    steps = [_step(random, threads, mode == WARPS) for _ in range(random.randint(4, 14))]
    if random.random() < 0.5:
        # One warp fills all words.
        fill = [f"@%p2 st.shared.u32 [%r3+{128 * k}], {k}" for k in range(4)]
        lanes = frozenset(range(32))
        first = [
            Step("store", fill[k], lanes, tuple(range(32 * k, 32 * k + threads)), (k,) * threads) for k in range(4)
        ]
        steps = [*first, Step("bar", "bar.sync 0"), *steps]
    oracle = _judge(steps)
    result = run(f"{mode} " + "; ".join(step.ptx for step in steps), threads)
    assert not result.stopped
    by_kind = defaultdict(set)
    for kind, word, thread, other, _ in reports:
        by_kind[kind].add(word)
        if kind in (Fault.RACE, Fault.WARP_RACE) and other >= 0:
            assert (word, thread, other) in oracle.pairs
            assert (thread // 32 == other // 32) == (kind == Fault.WARP_RACE)
    assert by_kind[Fault.RACE] == oracle.races
    if not oracle.races:
        assert bool(by_kind[Fault.WARP_RACE]) == oracle.notes
    assert oracle.unwritten <= by_kind[Fault.UNWRITTEN_SHARED] <= oracle.unwritten | oracle.perhaps
