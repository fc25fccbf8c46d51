"""Which blocks may have lanes waiting: the sets hold in every run of the rule, tried lane by lane."""

from __future__ import annotations

from random import Random

from execute.graphs import graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from ssmtool.execute.program.order import weak_topological_order
from ssmtool.execute.program.schedule import Schedule, schedule
from ssmtool.ptx.cfg import Block


class Graph:
    """As much of a graph as the schedule looks at."""

    def __init__(self, edges: dict[int, list[int]], exits: set[int]) -> None:
        self.blocks = [Block(each, 0, 0, list(to), exits=each in exits or not to) for each, to in edges.items()]


def solved(edges: dict[int, list[int]], divergent: set[int], exits: set[int]) -> tuple[Graph, Schedule]:
    graph = Graph(edges, exits)
    order = weak_topological_order(0, lambda each: edges[each])
    return graph, schedule(graph, order, divergent & set(order))  # type: ignore[arg-type]


@settings(max_examples=300)
@given(graphs(), st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)), st.integers(0, 1 << 30))
def test_a_run_meets_only_what_was_foreseen(
    edges: dict[int, list[int]], divergent: set[int], exits: set[int], seed: int
) -> None:
    graph, found = solved(edges, divergent, exits)
    random = Random(seed)
    where = dict.fromkeys(range(6), 0)
    for _ in range(60):
        if not where:
            break
        at = min(set(where.values()), key=found.rank.__getitem__)
        others = {block for block in where.values() if block != at}
        assert others <= found.waiting[at]
        if found.together(at):
            assert not others
        block = graph.blocks[at]
        ways: list[int | None] = [*block.successors, *([None] if block.exits else [])]
        same = random.choice(ways)
        for lane in [lane for lane, its in where.items() if its == at]:
            way = random.choice(ways) if at in divergent else same
            if way is None:
                del where[lane]
            else:
                where[lane] = way


def test_without_divergence_nobody_ever_waits() -> None:
    _, found = solved({0: [1, 2], 1: [3], 2: [3], 3: [0, 4], 4: []}, set(), set())
    assert all(not waiting for waiting in found.waiting.values())


def test_sides_wait_for_each_other_and_meet_behind() -> None:
    _, found = solved({0: [2, 1], 1: [3], 2: [3], 3: []}, {0}, set())
    assert found.waiting == {0: frozenset(), 1: frozenset({2, 3} - {3}), 2: frozenset({3}), 3: frozenset()}


def test_lanes_that_left_a_loop_wait_at_its_end() -> None:
    _, found = solved({0: [1], 1: [1, 2], 2: []}, {1}, set())
    assert found.waiting[1] == frozenset({2})
    assert found.together(2)
