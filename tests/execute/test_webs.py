"""Registers split into variables."""

from __future__ import annotations

from execute.programs import flat

from ssmtool.execute.program.webs import split
from ssmtool.ptx.cfg import ControlFlowGraph


def written(body: str) -> list[str]:
    """Names that writes of `%r1` have after the split, in order."""
    code = flat(body)
    split(code, ControlFlowGraph(code))
    found = []
    for op in code.instructions:
        for operand in op.operands[:1]:
            name = getattr(operand, "name", "")
            if name.partition("'")[0] == "%r1":
                found.append(name)
    return found


def test_lives_that_never_meet_are_different_variables() -> None:
    first, second = written("mov.u32 %r1, 1; st.global.u32 [%rd0], %r1; mov.u32 %r1, %i; st.global.u32 [%rd0], %r1;")
    assert first != second


def test_two_writes_that_one_read_may_see_are_one_variable() -> None:
    body = "mov.u32 %r1, 1; @%p1 bra L; mov.u32 %r1, 2; L: st.global.u32 [%rd0], %r1;"
    first, second = written(body)
    assert first == second


def test_a_guarded_write_does_not_end_the_life_before() -> None:
    first, second = written("mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2; st.global.u32 [%rd0], %r1;")
    assert first == second


def test_a_loop_s_counter_is_one_variable_and_what_follows_another() -> None:
    body = """
    mov.u32 %r1, 0; TOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra TOP;
    mov.u32 %r1, 5; st.global.u32 [%rd0], %r1;
    """
    start, step, after = written(body)
    assert start == step != after


def test_a_write_that_reads_itself_joins_nothing() -> None:
    first, second = written("mov.u32 %r1, 1; add.u32 %r1, %r1, 1; st.global.u32 [%rd0], %r1;")
    assert first != second


def test_types_follow_the_names() -> None:
    code = flat("mov.u32 %r1, 1; st.global.u32 [%rd0], %r1; mov.u32 %r1, 2; st.global.u32 [%rd0], %r1;")
    split(code, ControlFlowGraph(code))
    assert {code.types[register] for register in code.types if register.name.startswith("%r1'")} == {"b32"}
