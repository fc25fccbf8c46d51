"""Registers that are read before they are written."""

from __future__ import annotations

import pytest
from execute.checked import WARPS, faults, run, silent

USE = "st.global.u32 [%rd4], %r20"


def test_never_written() -> None:
    result = run(f"{USE};", 32)
    (fault,) = result.faults
    assert (fault.rule, fault.count, fault.text) == ("unwritten-register", 32, USE + ";")
    assert "%r20" in fault.message


@pytest.mark.parametrize("mode", ["", WARPS])
def test_written_on_one_side_of_a_branch(mode: str) -> None:
    body = f"{mode} @!%p2 bra SKIP; mov.u32 %r20, 1; SKIP: add.u32 %r21, %r1, 1;"
    assert faults(f"{body} {USE};", 64) == [("unwritten-register", USE, 32, None)]
    silent(f"{body} @%p2 {USE};", 64)
    silent(f"{body} bar.sync 0; @!%p2 bra ELSE; {USE}; ELSE: mov.u32 %r20, 2; {USE};", 64)


def test_written_under_a_guard() -> None:
    silent(f"@%p1 mov.u32 %r20, 1; @!%p1 mov.u32 %r20, 2; {USE};")
    assert faults(f"@%p1 mov.u32 %r20, 1; {USE};", 32) == [("unwritten-register", USE, 1, None)]


def test_a_move_passes_the_question_on() -> None:
    silent("mov.u32 %r21, %r20; mov.u32 %r22, %r21;")
    silent("mov.u32 %r21, %r20; mov.u32 %r21, 1; st.global.u32 [%rd4], %r21;")
    use = "st.global.u32 [%rd4], %r21"
    assert faults(f"mov.u32 %r21, %r20; {use};", 32) == [("unwritten-register", use, 0, None)]
    # Only the lanes whose own source was unwritten.
    body = f"@%p1 mov.u32 %r20, 1; mov.u32 %r21, %r20; {use};"
    assert faults(body, 32) == [("unwritten-register", use, 1, None)]


def test_a_guard_is_read_by_every_lane() -> None:
    use = "@%p5 mov.u32 %r20, 1"
    assert faults(f"{use};", 32) == [("unwritten-register", use, 0, None)]


def test_a_branch_reads_its_guard() -> None:
    use = "@%p5 bra SKIP"
    assert faults(f"{use}; mov.u32 %r20, 1; SKIP: mov.u32 %r21, 1;", 32) == [("unwritten-register", use, 0, None)]


def test_carried_round_a_loop() -> None:
    loop = "AGAIN: setp.eq.u32 %p3, %r5, 0; @%p3 mov.u32 %r20, 5; add.u32 %r20, %r20, 1; add.u32 %r5, %r5, 1"
    silent(f"mov.u32 %r5, 0; {loop}; setp.lt.u32 %p4, %r5, 4; @%p4 bra AGAIN; {USE};")


def test_a_part_of_a_vector() -> None:
    use = "st.global.v2.u32 [%rd4], {%r1, %r20}"
    assert faults(f"cvt.u64.u32 %rd6, %r2; add.u64 %rd4, %rd4, %rd6; {use};", 32) == [
        ("unwritten-register", use, 0, None)
    ]
