"""The order of blocks, on random graphs against its definition."""

from __future__ import annotations

from execute.graphs import graphs
from hypothesis import given

from ssmtool.execute.program.order import weak_topological_order


def order(edges: dict[int, list[int]]) -> list[int]:
    return weak_topological_order(0, lambda node: edges[node])


def reached(edges: dict[int, list[int]], start: int) -> set[int]:
    seen, work = set(), [start]
    while work:
        node = work.pop()
        if node not in seen:
            seen.add(node)
            work.extend(edges[node])
    return seen


@given(graphs())
def test_every_block_that_is_reached_stands_once_and_the_entry_first(edges: dict[int, list[int]]) -> None:
    found = order(edges)
    assert sorted(found) == sorted(reached(edges, 0))
    assert found[0] == 0


@given(graphs())
def test_an_edge_goes_forward_or_closes_a_loop(edges: dict[int, list[int]]) -> None:
    found = order(edges)
    rank = {node: place for place, node in enumerate(found)}
    for node in found:
        for to in edges[node]:
            assert rank[node] < rank[to] or node in reached(edges, to)


@given(graphs())
def test_blocks_of_a_loop_stand_together(edges: dict[int, list[int]]) -> None:
    found = order(edges)
    reach = {node: reached(edges, node) for node in found}
    for node in found:
        members = [place for place, each in enumerate(found) if each in reach[node] and node in reach[each]]
        assert members == list(range(members[0], members[0] + len(members)))


def test_what_leaves_a_loop_comes_after_it_and_a_join_after_both_sides() -> None:
    # 0 -> loop 1,2 with a way out of each to 4; then sides 5 and 6 that meet in 3
    edges = {0: [1], 1: [2, 4], 2: [1, 4], 4: [6, 5], 5: [3], 6: [3], 3: []}
    assert order(edges) == [0, 1, 2, 4, 5, 6, 3]


def test_a_long_chain_needs_no_recursion() -> None:
    edges = {node: [node + 1] for node in range(20000)} | {20000: []}
    assert order(edges) == list(range(20001))
