"""How results step from lane to lane."""

from __future__ import annotations

import pytest
from execute.programs import shapes, stride

T = "mov.u32 %r1, %tid.x;"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("mov.u32 %r2, 5;", 0),
        ("ld.global.u32 %r2, [%rd0];", 0),
        (T + "mov.u32 %r2, %r1;", 1),
        (T + "mad.lo.s32 %r2, %r1, 12, %ctaid.x;", 12),
        (T + "shl.b32 %r3, %r1, 2; sub.s32 %r2, 100, %r3;", -4),
        (T + "mul.lo.s32 %r2, %r1, %r1;", None),
        (T + "mul.wide.u32 %rd5, %r1, 4; cvt.u32.u64 %r2, %rd5;", 4),
        (T + "mul.wide.u32 %rd5, %r1, -4; cvt.u32.u64 %r2, %rd5;", 4294967292),
        (T + "or.b32 %r2, %r1, 1024;", 1),
        (T + "or.b32 %r2, %r1, 1;", None),
        (T + "shr.u32 %r2, %r1, 5;", 0),
        (T + "shr.u32 %r2, %r1, 4;", None),
        (T + "and.b32 %r2, %r1, 31;", 1),
        (T + "and.b32 %r2, %r1, 15;", None),
        (T + "mad.wide.u32 %rd5, %r1, 4, %rd0; ld.global.u32 %r2, [%rd5];", None),
        (T + "sub.s32 %r2, %r1, %r1;", 0),
        ("atom.global.add.u32 %r2, [%rd0], 1;", None),
        ("vote.ballot.b32 %r2, %p1;", 0),
        (T + "setp.lt.u32 %p1, %r1, 9; mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2;", None),
        ("setp.lt.u32 %p1, %ctaid.x, 9; mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2;", 0),
        (T + "setp.lt.u32 %p1, %ctaid.x, 9; mov.u32 %r2, %r1; @%p1 add.u32 %r2, %r1, 7;", 1),
    ],
)
def test_the_stride_of_a_result(body: str, wanted: int | None) -> None:
    # By warps, so that a literal's reach is that of 32 lanes.
    found = shapes(f"mov.u32 %r9, %laneid; {body} st.global.u32 [%rd0], %r2; st.global.u32 [%rd0], %r9;")
    assert stride(found, "%r2") == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (T + "add.u32 %r3, %r1, 4294967280; cvt.u64.u32 %rd5, %r3;", None),
        (T + "sub.s32 %r3, %r1, 16; cvt.u64.u32 %rd5, %r3;", None),
        (T + "add.u32 %r3, %r1, 16; cvt.u64.u32 %rd5, %r3;", 1),
        (T + "mad.lo.u32 %r3, %ctaid.x, 64, %r1; cvt.u64.u32 %rd5, %r3;", 1),
        (T + "mad.lo.u32 %r3, %ctaid.x, 48, %r1; cvt.u64.u32 %rd5, %r3;", None),
        (T + "mad.lo.u32 %r3, %ctaid.x, 64, %r1; mul.wide.s32 %rd5, %r3, 4;", 4),
        (T + "cvt.u16.u32 %h1, %r1; mul.lo.u16 %h2, %h1, 4000; cvt.u32.u16 %r3, %h2; cvt.u64.u32 %rd5, %r3;", None),
    ],
)
def test_an_extension_keeps_a_stride_only_where_no_lane_can_wrap_alone(body: str, wanted: int | None) -> None:
    found = shapes(f"mov.u32 %r9, %laneid; {body} st.global.u64 [%rd0], %rd5; st.global.u32 [%rd0], %r9;")
    assert stride(found, "%rd5") == wanted
