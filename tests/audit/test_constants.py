"""Which blocks are dead, on small PTX texts; each name says what a careless propagation gets wrong."""

from __future__ import annotations

import pytest

from ssmtool.audit.assumptions import Parameters, parse_assumption, resolve
from ssmtool.audit.constants import Propagation, propagate
from ssmtool.audit.flow import Flow
from ssmtool.ptx import parse


def run(body: str, *assume: str, head: str = "") -> tuple[Flow, Propagation]:
    text = f""".version 7.4
.target sm_37
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1, .param .u32 k_param_2)
{head}{{
.reg .pred %p<9>;
.reg .b32 %r<19>;
.reg .b64 %rd<9>;
.reg .f32 %f<9>;
{body}
ret;
}}
"""
    function = parse(text).entries[0]
    names = {"k": ("out", "n", "m")}
    assumed = resolve(map(parse_assumption, assume), {"k": Parameters.of(function, names)})["k"]
    flow = Flow(function)
    return flow, propagate(flow, assumed)


def dead(flow: Flow, found: Propagation) -> set[str]:
    """The opcodes that only stand in dead blocks or have a guard that is false."""
    function = flow.function
    return {
        opcode
        for index, opcode in enumerate(function.opcodes)
        if flow.block_at(index) not in found.live or index in found.switched_off
    }


LOAD = "ld.param.u32 %r1, [k_param_1];\n"
BRANCH = LOAD + "setp.eq.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"


def test_nothing_assumed_nothing_dead() -> None:
    assert dead(*run(BRANCH)) == set()


def test_assumed_parameter_decides_the_branch() -> None:
    assert dead(*run(BRANCH, "k.n=4")) == {"st.local.u32"}
    assert dead(*run(BRANCH, "k.n=3")) == set()


@pytest.mark.parametrize("name", ["n", "k_param_1", "param_1"])
def test_parameter_by_any_of_its_names(name: str) -> None:
    assert dead(*run(BRANCH, f"k.{name}=4")) == {"st.local.u32"}


def test_guarded_instruction_with_a_false_guard_is_not_executed() -> None:
    body = LOAD + "setp.ne.s32 %p1, %r1, 4;\n@%p1 st.local.u32 [%rd1], %r2;\n"
    assert dead(*run(body, "k.n=4")) == {"st.local.u32"}
    assert dead(*run(body, "k.n=5")) == set()


def test_values_that_meet_and_differ_are_unknown() -> None:
    body = (
        "ld.param.u32 %r3, [k_param_2];\nsetp.eq.s32 %p2, %r3, 0;\nmov.u32 %r1, 4;\n@%p2 bra M;\nmov.u32 %r1, 5;\nM:\n"
        "setp.eq.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    )
    assert dead(*run(body)) == set()
    assert dead(*run(body, "k.m=0")) == {"mov.u32", "st.local.u32"}


def test_values_that_meet_and_agree_stay_known() -> None:
    body = (
        "ld.param.u32 %r3, [k_param_2];\nsetp.eq.s32 %p2, %r3, 0;\n@%p2 bra A;\nmov.u32 %r1, 4;\nbra M;\n"
        "A:\nmov.u32 %r1, 4;\nM:\nsetp.eq.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    )
    assert dead(*run(body)) == {"st.local.u32"}


def test_loop_counter_is_not_its_first_value() -> None:
    body = (
        "mov.u32 %r1, 0;\nT:\nsetp.eq.s32 %p1, %r1, 3;\n@%p1 st.local.u32 [%rd1], %r2;\n"
        "add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p2, %r1, 8;\n@%p2 bra T;\n"
    )
    assert dead(*run(body)) == set()


def test_loop_that_never_turns_back() -> None:
    body = (
        LOAD + "mov.u32 %r4, 0;\nT:\nadd.s32 %r4, %r4, 1;\nsetp.lt.s32 %p2, %r4, %r1;\n@!%p2 bra E;\n"
        "st.local.u32 [%rd1], %r2;\nbra T;\nE:\n"
    )
    assert "st.local.u32" in dead(*run(body, "k.n=1"))
    assert "st.local.u32" not in dead(*run(body, "k.n=2"))


def test_a_write_under_an_unknown_guard_makes_the_register_unknown() -> None:
    body = (
        "mov.u32 %r1, 4;\nsetp.eq.s32 %p3, %r9, 0;\n@%p3 mov.u32 %r1, 5;\n"
        "setp.eq.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    )
    assert dead(*run(body)) == set()


def test_parameter_whose_address_is_taken_may_change() -> None:
    body = "mov.b64 %rd2, k_param_1;\nst.param.u32 [%rd2], 7;\n" + BRANCH
    assert dead(*run(body, "k.n=4")) == set()


def test_parameter_that_is_stored_to_may_change() -> None:
    body = "st.param.u32 [k_param_1], %r7;\n" + BRANCH
    assert dead(*run(body, "k.n=4")) == set()


def test_part_of_a_parameter_is_its_low_byte() -> None:
    body = "ld.param.u8 %r1, [k_param_1];\nsetp.eq.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    assert dead(*run(body, "k.n=0x104")) == {"st.local.u32"}


def test_unknown_instruction_may_write_any_register_it_names() -> None:
    body = LOAD + "frobnicate.b32 %r8, %r1;\nsetp.eq.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    assert dead(*run(body, "k.n=4")) == set()


def test_comparison_of_floats_is_never_decided() -> None:
    body = "mov.f32 %f1, 0f7FC00000;\nsetp.eq.f32 %p1, %f1, %f1;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    assert dead(*run(body)) == set()


def test_required_block_size_is_known_and_a_maximum_is_not() -> None:
    body = "mov.u32 %r1, %ntid.x;\nsetp.eq.s32 %p1, %r1, 128;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    assert dead(*run(body, head=".reqntid 128, 1, 1\n")) == {"st.local.u32"}
    assert dead(*run(body, head=".maxntid 128, 1, 1\n")) == set()


def test_branch_table_with_a_known_index() -> None:
    body = (
        LOAD + "T: .branchtargets A, B;\nbrx.idx %r1, T;\nA:\nst.local.u32 [%rd1], %r2;\nbra E;\nB:\n"
        "ld.local.u32 %r2, [%rd1];\nE:\n"
    )
    assert "st.local.u32" in dead(*run(body, "k.n=1"))
    assert "ld.local.u32" in dead(*run(body, "k.n=0"))
    assert not {"st.local.u32", "ld.local.u32"} & dead(*run(body))


def test_two_halves_of_a_packed_word() -> None:
    body = (
        LOAD + "mov.b64 %rd3, {%r1, %r1};\nmov.b64 {%r5, %r6}, %rd3;\n"
        "setp.eq.s32 %p1, %r6, 4;\n@%p1 bra L;\nst.local.u32 [%rd1], %r2;\nL:\n"
    )
    assert dead(*run(body, "k.n=4")) == {"st.local.u32"}


def test_a_modifier_nobody_knows_makes_the_result_unknown() -> None:
    """`add.frob` is no `add`: what comes out of it must not decide a branch."""
    from ssmtool.audit.flow import Flow
    from ssmtool.ptx import parse

    text = """.version 7.4
.target sm_37
.address_size 64
.entry k() { .reg .pred %p<2>; .reg .b32 %r<4>;
mov.u32 %r1, 1; add.u32 %r2, %r1, 1; setp.eq.s32 %p1, %r2, 2; @%p1 bra E; trap; E: ret; }
"""
    assert len(propagate(Flow(parse(text).entries[0])).live) == 2
    assert len(propagate(Flow(parse(text.replace("add.u32", "add.frob.u32")).entries[0])).live) == 3
