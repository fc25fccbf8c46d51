from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssmtool.ptx import ControlFlowGraph, Function, Module, PtxSyntaxError, parse

Kernel = Callable[..., Function]


def reach(start: int, edges: Mapping[int, Sequence[int]], without: int | None = None) -> set[int]:
    """Nodes reached from start by a walk that never enters `without`."""
    seen: set[int] = set()
    work = [start] if start != without else []
    while work:
        node = work.pop()
        if node not in seen:
            seen.add(node)
            work.extend(each for each in edges[node] if each != without)
    return seen


def nearest(candidates: set[int], strictly: Callable[[int, int], bool]) -> int | None:
    """The one of a chain of dominators that all the others dominate."""
    return next((c for c in candidates if all(o == c or strictly(o, c) for o in candidates)), None)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """A kernel body of random blocks, each ended by one of the ways a block can end."""
    count = draw(st.integers(1, 9))
    lines = [".reg .pred %p<2>; .reg .b32 %r<2>;", "T: .branchtargets L0, " + f"L{count - 1};"]
    for index in range(count):
        target = draw(st.integers(0, count))
        end = draw(
            st.sampled_from(["", "bra L{};", "@%p1 bra L{};", "ret;", "@!%p1 exit;", "brx.idx %r1, T;", "trap;"])
        )
        lines.append(f"L{index}: mov.u32 %r1, 0;" + end.format(target))
    return "\n".join([*lines, f"L{count}:"])


@given(bodies())
def test_dominators_post_dominators_and_loops_against_their_definitions(body: str) -> None:
    graph = ControlFlowGraph(parse(f".version 7.4\n.target sm_37\n.entry k()\n{{\n{body}\n}}\n").functions[0])
    blocks = range(len(graph.blocks))
    end = len(graph.blocks)
    forward = {b: graph.blocks[b].successors for b in blocks}
    assert graph.reachable == reach(0, forward)
    assert all(b in graph.blocks[s].predecessors for b in blocks for s in forward[b])

    def dominates(first: int, second: int) -> bool:
        return first != second and second not in reach(0, forward, without=first)

    for block in graph.reachable:
        strict = {other for other in graph.reachable if dominates(other, block)}
        assert graph.immediate_dominators[block] == nearest(strict, dominates)

    out = {b: [*forward[b], *([end] if graph.blocks[b].exits else [])] for b in blocks} | {end: []}

    def post_dominates(first: int, second: int) -> bool:
        return first != second and end not in reach(second, out, without=first)

    for block in blocks:
        found = graph.immediate_post_dominators[block]
        if block not in graph.reachable or end not in reach(block, out):
            assert found is None
        else:
            after = {o for o in reach(block, out) & reach(0, forward) if o != end and post_dominates(o, block)}
            assert found == nearest(after, post_dominates)

    for header, loop in graph.loops.items():
        assert all(header == b or dominates(header, b) for b in loop.blocks)
        assert all(header in forward[latch] for latch in loop.latches)
        inside = {b: [s for s in forward[b] if s in loop.blocks] for b in loop.blocks}
        assert all(header in reach(b, inside) for b in loop.blocks)
        assert loop.parent is None or loop.blocks < graph.loops[loop.parent].blocks
    cycles = {b for b in graph.reachable if any(b in reach(s, forward) for s in forward[b])}
    if not graph.irreducible:
        assert cycles == {b for loop in graph.loops.values() for b in loop.blocks}


def test_blocks_tile_every_function_of_the_corpus(corpus_file: Path) -> None:
    for function in parse(corpus_file.read_text()).functions:
        graph = ControlFlowGraph(function)
        assert [i for b in graph.blocks for i in range(b.start, b.end)] == list(range(len(function.instructions)))
        assert all(
            graph.blocks[graph.block_of[i]].start <= i < graph.blocks[graph.block_of[i]].end for i in graph.block_of
        )
        for block in graph.blocks:
            inner = function.opcodes[block.start : block.end - 1]
            assert not [opcode for opcode in inner if opcode.split(".")[0] in ("bra", "brx", "ret", "exit")]
            assert block.exits or block.successors
        assert not graph.irreducible


def test_loops_of_a_real_kernel(corpus: Callable[[str], Module]) -> None:
    function = corpus("nvrtc-11.4-sm37").function("history")
    assert function is not None
    graph = ControlFlowGraph(function)
    assert sorted(loop.depth for loop in graph.loops.values()) == [1, 1, 1, 1, 1, 2]
    inner = next(loop for loop in graph.loops.values() if loop.depth == 2)
    assert graph.innermost_loop(inner.header) == inner
    assert inner.parent is not None
    assert graph.loops[inner.parent].parent is None


def test_a_guarded_branch_has_its_taken_side_first(kernel: Kernel) -> None:
    graph = ControlFlowGraph(kernel(".reg .pred %p<2>;\n@%p1 bra END;\nmembar.gl;\nEND: ret;"))
    assert graph.blocks[0].successors == [2, 1]
    assert graph.immediate_post_dominators[0] == 2


def test_a_call_falls_through_unless_the_callee_never_returns(kernel: Kernel) -> None:
    module = ".func stop() .noreturn { trap; }\n.func go() { ret; }"
    graph = ControlFlowGraph(kernel("call go;\ncall stop;\nmembar.gl;", module=module))
    assert [(b.start, b.end, b.successors, b.exits) for b in graph.blocks] == [(0, 2, [], True), (2, 3, [], True)]


def test_an_empty_kernel_has_one_block(kernel: Kernel) -> None:
    graph = ControlFlowGraph(kernel(""))
    assert [(block.start, block.end, block.exits) for block in graph.blocks] == [(0, 0, True)]
    assert (graph.immediate_dominators, graph.immediate_post_dominators) == ({0: None}, {0: None})
    assert graph.loops == {}


@pytest.mark.parametrize("branch", ["bra NOWHERE;", "brx.idx %r1, NO_TABLE;"])
def test_a_branch_to_nowhere_is_an_error_with_its_line(kernel: Kernel, branch: str) -> None:
    with pytest.raises(PtxSyntaxError, match="names no label") as caught:
        ControlFlowGraph(kernel(".reg .b32 %r<2>;\n" + branch))
    assert caught.value.line == 8


def test_ten_thousand_blocks_need_no_recursion(kernel: Kernel) -> None:
    body = ".reg .pred %p<2>;\n" + "".join(f"L{i}: @%p1 bra L{i};\n" for i in range(10_000)) + "ret;"
    graph = ControlFlowGraph(kernel(body))
    assert graph.immediate_dominators[10_000] == 9_999
    assert len(graph.loops) == 10_000
