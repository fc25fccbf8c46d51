from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ssmtool.ptx import ControlFlowGraph, Function, parse
from ssmtool.ptx.dataflow import UNDEFINED, Liveness, ReachingDefinitions, RegisterFlow
from ssmtool.ptx.isa import defs, uses
from ssmtool.ptx.operands import Register

REGISTERS = [Register(f"%r{index}") for index in range(1, 4)]

FORMS = [
    "mov.b32 %r{a}, %r{b}",
    "@%p1 mov.b32 %r{a}, %r{b}",
    "mov.b32 %r{a}, 1",
    "mov.b64 {{%r{a}, %r{b}}}, %r{c}",
    "@%p1 bra L{t}",
    "bra L{t}",
    "ret",
]


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Random moves, guarded moves, vector moves and branches over three registers."""
    count = draw(st.integers(1, 12))
    lines = [".reg .pred %p<2>; .reg .b32 %r<4>;"]
    register = st.integers(1, 3)
    for index in range(count):
        a, b, c = draw(register), draw(register), draw(register)
        form = draw(st.sampled_from(FORMS))
        lines.append(f"L{index}: " + form.format(a=a, b=b, c=c, t=draw(st.integers(0, count))) + ";")
    return "\n".join([*lines, f"L{count}:"])


def next_of(function: Function, index: int) -> list[int]:
    """Instructions that may run after one; past the end means the function is left."""
    instruction = function.instructions[index]
    if instruction.base == "ret":
        return []
    if instruction.base == "bra":
        taken = [label.target for label in instruction.targets]
        return [*taken, index + 1] if instruction.predicate else taken
    return [index + 1]


@given(bodies())
def test_against_walks_over_single_instructions(body: str) -> None:
    function = parse(f".version 7.4\n.target sm_37\n.entry k()\n{{\n{body}\n}}\n").functions[0]
    graph = ControlFlowGraph(function)
    flow = RegisterFlow(graph)
    live, reaching = Liveness(graph, flow), ReachingDefinitions(graph, flow)
    count = len(function.instructions)
    kills = [frozenset() if i.predicate else defs(i) for i in function.instructions]

    def read_before_written(start: list[int], register: Register) -> bool:
        seen: set[int] = set()
        work = list(start)
        while work:
            at = work.pop()
            if at < count and at not in seen:
                seen.add(at)
                if register in uses(function.instructions[at]):
                    return True
                if register not in kills[at]:
                    work.extend(next_of(function, at))
        return False

    for index in range(count):
        after = {r for r in (*REGISTERS, Register("%p1")) if read_before_written(next_of(function, index), r)}
        assert live.after(index) == after
        before = {r for r in (*REGISTERS, Register("%p1")) if read_before_written([index], r)}
        assert live.before(index) == before

    for register in REGISTERS:
        expected: dict[int, set[int]] = {index: set() for index in range(count + 1)}
        starts = [(UNDEFINED, 0)] + [
            (index, after)
            for index in range(count)
            if register in defs(function.instructions[index]) and graph.block_of[index] in graph.reachable
            for after in next_of(function, index)
        ]
        for origin, start in starts:
            work = [start]
            while work:
                at = work.pop()
                if origin not in expected[at]:
                    expected[at].add(origin)
                    if at < count and register not in kills[at]:
                        work.extend(next_of(function, at))
        for index in range(count):
            found = reaching.before(index, register)
            if flow.bit(register) is None:
                assert found == frozenset()
            else:
                assert found == expected[index], (index, register)


def test_real_code_reads_no_register_before_it_is_written(corpus_file: Path) -> None:
    """Checks the table of destinations too: one miscounted, and a register would be read unwritten."""
    for function in parse(corpus_file.read_text()).functions:
        live = Liveness(ControlFlowGraph(function))
        assert live.live_in(0) == frozenset(), function.name


def test_pressure_counts_what_is_live_at_once(kernel: Callable[..., Function]) -> None:
    function = kernel(
        ".reg .b32 %r<4>;\nmov.b32 %r1, 1;\nmov.b32 %r2, 2;\nadd.s32 %r3, %r1, %r2;\nst.global.b32 [%r3], %r3;"
    )
    assert Liveness(ControlFlowGraph(function)).pressure() == 2
