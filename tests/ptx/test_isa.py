from __future__ import annotations

from collections.abc import Callable

import pytest

from ssmtool.ptx import Function
from ssmtool.ptx.isa import CARRY, CATEGORIES, category, defs, info, known_instructions, uses

CASES = [
    ("add.f32 %r1, %r2, %r3;", "float", "%r1", "%r2 %r3"),
    ("@!%p1 add.s32 %r1, %r2, %r3;", "integer", "%r1", "%p1 %r2 %r3"),
    ("add.cc.u32 %r1, %r2, 1;", "integer", "%cc %r1", "%r2"),
    ("madc.hi.cc.u32 %r1, %r2, %r3, %r4;", "integer", "%cc %r1", "%cc %r2 %r3 %r4"),
    ("subc.u32 %r1, %r2, 0;", "integer", "%r1", "%cc %r2"),
    ("ex2.approx.ftz.f32 %r1, %r2;", "transcendental", "%r1", "%r2"),
    ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;", "compare", "%p1 %p2", "%p3 %r1 %r2"),
    ("shfl.sync.bfly.b32 %r1|%p1, %r2, %r3, %r4, %r5;", "shuffle", "%p1 %r1", "%r2 %r3 %r4 %r5"),
    ("mov.b64 {%r1, _}, %rd1;", "move", "%r1", "%rd1"),
    ("mov.u32 %r1, %tid.x;", "move", "%r1", "%tid.x"),
    ("ld.global.v2.f32 {%r1, %r2}, [%rd1+8];", "load", "%r1 %r2", "%rd1"),
    ("st.global.v2.f32 [%rd1], {%r1, %r2};", "store", "", "%r1 %r2 %rd1"),
    ("atom.global.add.u32 %r1, [%rd1], %r2;", "atomic", "%r1", "%r2 %rd1"),
    ("red.shared.add.f32 [%rd1], %r2;", "atomic", "", "%r2 %rd1"),
    ("bar.sync 0, %r1;", "barrier", "", "%r1"),
    ("bar.red.popc.u32 %r1, 0, %p1;", "barrier", "%r1", "%p1"),
    ("bar.warp.sync %r1;", "barrier", "", "%r1"),
    ("barrier.cta.red.or.pred %p1, 0, %p2;", "barrier", "%p1", "%p2"),
    ("vote.ballot.b32 %r1, !%p1;", "vote", "%r1", "%p1"),
    ("bra.uni L;", "branch", "", ""),
    ("call (%r1), f, (%r2, %r3);", "call", "%r1", "%r2 %r3"),
    ("call %rd1, (%r2), proto;", "call", "", "%r2 %rd1"),
    ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];", "texture", "%r1 %r2 %r3 %r4", "%r5 %r6 %rd1"),
    ("sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};", "surface", "", "%r1 %r2 %r3 %rd1"),
    ("vadd.s32.s32.s32 %r1.b0, %r2.b1, -%r3, %r4;", "video", "%r1", "%r1 %r2 %r3 %r4"),
    (
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};",
        "matrix",
        "%r1 %r2",
        "%r3 %r4 %r5 %r6",
    ),
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "matrix",
        "%r1 %r2",
        "%p1 %r1 %r2 %rd1 %rd2",
    ),
    ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;", "mbarrier", "", "%r1 %r2"),
    ("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;", "mbarrier", "%p1", "%r1 %r2"),
    ("cp.async.cg.shared.global [%r1], [%rd1], 16;", "async", "", "%r1 %rd1"),
    ("tcgen05.wait::ld.sync.aligned;", "matrix", "", ""),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "matrix", "%r1 %r2", "%r3"),
    ("multimem.ld_reduce.global.add.u32 %r1, [%rd1];", "multimem", "%r1", "%rd1"),
]


@pytest.mark.parametrize(("text", "kind", "written", "read"), CASES, ids=[case[0] for case in CASES])
def test_what_is_written_and_read(
    kernel: Callable[..., Function], text: str, kind: str, written: str, read: str
) -> None:
    head = ".reg .pred %p<4>; .reg .b32 %r<7>; .reg .b64 %rd<3>;\nL:\n"
    instruction = kernel(head + text, module=".func f() { ret; }").instructions[0]
    assert category(instruction.opcode.text) == kind
    assert " ".join(sorted(register.name for register in defs(instruction))) == written
    assert " ".join(sorted(register.name for register in uses(instruction))) == read


def test_an_unknown_opcode_has_no_info() -> None:
    assert info("frobnicate.b32") is None
    assert category("frobnicate.b32") == "unknown"
    assert info("mbarrier") is None, "a family's name alone is no instruction"


def test_the_table_is_sound() -> None:
    rows = known_instructions()
    assert len({row.name for row in rows}) == len(rows)
    assert {row.category for row in rows} - {"arith"} <= set(CATEGORIES)
    assert set(CATEGORIES) == {row.category for row in rows} - {"arith"}
    assert all(row.destinations in (0, 1) and 10 <= row.sm <= 120 for row in rows)


def test_first_versions_of_some_instructions() -> None:
    firsts = {"shfl.sync.idx.b32": ((3, 0), 30), "dp4a.u32.u32": ((5, 0), 61), "lop3.b32": ((4, 3), 50)}
    for opcode, expected in firsts.items():
        found = info(opcode)
        assert found is not None
        assert (found.isa, found.sm) == expected


def test_the_carry_register_is_not_one_a_program_can_name() -> None:
    assert CARRY.name == "%cc"
    assert not CARRY.special
