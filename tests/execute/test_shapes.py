"""Where lanes may part, and what that does to the variables they share."""

from __future__ import annotations

from execute.programs import shapes, stride


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
