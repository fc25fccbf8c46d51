"""Bounds of what registers hold."""

from __future__ import annotations

import pytest
from execute.programs import shapes

from ssmtool.ptx.operands import Register


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
