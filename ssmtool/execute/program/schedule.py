"""Which blocks may have lanes waiting while another block runs.

Lanes that wait at a block keep their registers as they were when they got there. So a write in block b must keep the
old value in lanes outside b's mask exactly if some block that may have lanes waiting then needs that register: all
other writes are plain, all other branches are plain jumps. The same sets say where every lane that has not exited is
together again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ssmtool.ptx.cfg import Block, ControlFlowGraph


@dataclass(frozen=True, slots=True)
class Schedule:
    """`rank[block]` is its place in the order; `waiting[block]` the blocks that may have lanes while it runs."""

    rank: dict[int, int]
    order: tuple[int, ...]
    waiting: dict[int, frozenset[int]]

    def together(self, block: int) -> bool:
        """Whether every lane that has not exited runs `block` together."""
        return not self.waiting[block]

    def sorted(self, blocks: Iterable[int]) -> list[int]:
        """Blocks in the order in which they are tried."""
        return sorted(blocks, key=self.rank.__getitem__)


def schedule(graph: ControlFlowGraph, order: list[int], divergent: Collection[int]) -> Schedule:
    """The least sets that hold when the branches at the ends of the blocks `divergent` may split the lanes.

    Any other branch takes all lanes of its block one way.
    """
    rank = {block: place for place, block in enumerate(order)}
    waiting: dict[int, set[int]] = {0: set()}
    work = [0]
    while work:
        block = graph.blocks[work.pop()]
        for following, left in _steps(block, waiting[block.index], rank, block.index in divergent):
            known = waiting.get(following)
            if known is None:
                waiting[following] = set(left)
                work.append(following)
            elif not left <= known:
                known |= left
                work.append(following)
    return Schedule(rank, tuple(order), {block: frozenset(blocks) for block, blocks in waiting.items()})


def _steps(block: Block, before: set[int], rank: dict[int, int], divergent: bool) -> list[tuple[int, set[int]]]:
    """(next block, blocks then waiting) for everything that may happen at the end of `block`."""
    ways: list[tuple[set[int], int | None]] = []
    if divergent:
        goals = set(block.successors)
        # Someone goes on at one of the goals, so no block after the last of them can be next, unless all may exit.
        last = None if block.exits or not goals else max(rank[each] for each in goals)
        ways.append((goals, last))
    else:
        ways.extend(({successor}, rank[successor]) for successor in block.successors)
        if block.exits:
            ways.append((set(), None))
    steps: list[tuple[int, set[int]]] = []
    for goals, last in ways:
        candidates = before | goals
        steps.extend(
            (following, {each for each in candidates if rank[each] > rank[following]})
            for following in candidates
            if last is None or rank[following] <= last
        )
    return steps
