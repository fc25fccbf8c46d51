"""Strides, bounds and alignments of registers, and where lanes may part."""

from __future__ import annotations

import pytest
from execute.programs import shapes, stride

from ssmtool.execute.program.geometry import Geometry
from ssmtool.ptx.operands import Register

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


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("mov.u32 %r2, %tid.x;", (0, 63)),
        ("add.u32 %r2, %tid.x, 9;", (9, 72)),
        ("sub.u32 %r2, %tid.x, 9;", None),
        ("mul.lo.u32 %r2, %ctaid.x, 2;", None),
        ("and.b32 %r2, %ctaid.x, 7;", (0, 7)),
        ("rem.u32 %r2, %ctaid.x, 7;", (0, 6)),
        ("mov.u32 %r3, 300; cvt.u32.u8 %r2, %r3;", None),
        ("mov.u32 %r3, 200; cvt.s32.s8 %r2, %r3;", None),
        ("mov.u32 %r3, 100; cvt.s32.s8 %r2, %r3;", (100, 100)),
        ("mov.u32 %r3, 5; mov.b32 {%h1, %h2}, %r3; cvt.u32.u16 %r2, %h2;", None),
        ("mov.u16 %h1, 300; mul.lo.u16 %h2, %h1, 300; cvt.u32.u16 %r2, %h2;", None),
        ("mul.hi.u32 %r2, %tid.x, 9;", None),
        ("mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2;", None),
    ],
)
def test_bounds(body: str, wanted: tuple[int, int] | None) -> None:
    found = shapes(f"{body} st.global.u32 [%rd0], %r2;")
    assert found.ranges.bounds(Register("%r2")) == wanted


def test_a_value_changed_in_a_loop_that_lanes_leave_apart_is_spread() -> None:
    body = """
    mov.u32 %r2, 0; TOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %tid.x; @%p1 bra TOP; st.global.u32 [%rd0], %r2;
    """
    assert stride(shapes(body), "%r2") is None
    assert stride(shapes(body.replace("%tid.x", "%ctaid.x")), "%r2") == 0


def test_what_is_used_up_within_the_loop_stays_shared() -> None:
    body = """
    mov.u32 %r2, 0; mov.u32 %r5, 0; TOP: add.u32 %r2, %r2, 1; mul.lo.u32 %r4, %r2, 3; add.u32 %r5, %r5, %r4;
    setp.lt.u32 %p1, %r5, %tid.x; @%p1 bra TOP; st.global.u32 [%rd0], %r5;
    """
    found = shapes(body)
    assert (stride(found, "%r4"), stride(found, "%r5")) == (0, None)


@pytest.mark.parametrize(
    ("block", "lanes", "wanted"),
    [
        ((64, 1, 1), 32, (1, 0, 0)),
        ((32, 4, 2), 32, (1, 0, 0)),
        ((16, 4, 1), 32, (None, None, 0)),
        ((40, 1, 1), 32, (1, 0, 0)),
        ((40, 2, 1), 32, (None, None, 0)),
        ((1, 64, 1), 32, (0, None, 0)),
        ((8, 8, 4), 32, (None, None, 0)),
        ((64, 2, 1), 128, (None, None, 0)),
        ((128, 1, 1), 128, (1, 0, 0)),
    ],
)
def test_thread_numbers_by_the_block_s_shape(
    block: tuple[int, int, int], lanes: int, wanted: tuple[int | None, ...]
) -> None:
    geometry = Geometry(block, lanes)
    assert tuple(geometry.special(f"%tid.{axis}") for axis in "xyz") == wanted
