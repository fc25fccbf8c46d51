"""Shuffles from lanes that are not there, and integer division by zero."""

from __future__ import annotations

import numpy as np
import pytest
from execute.checked import faults, run, silent

SHUFFLE = "shfl.bfly.b32 %r4, %r1, 1, 31"


def test_whole_warps_and_quiet_forms() -> None:
    silent(f"{SHUFFLE}; shfl.up.b32 %r4, %r1, 1, 0; shfl.down.b32 %r4, %r1, 3, 31; shfl.idx.b32 %r4, %r1, %r1, 31;")
    # Out of the segment a lane reads itself.
    silent("setp.eq.u32 %p3, %r1, 31; @%p3 shfl.down.b32 %r4, %r1, 1, 31;", 32)


def test_the_source_is_under_another_branch() -> None:
    found = faults(f"and.b32 %r5, %r1, 1; setp.eq.u32 %p3, %r5, 0; @%p3 bra SKIP; {SHUFFLE}; SKIP: mov.u32 %r5, 1;", 32)
    assert found == [("shuffle-inactive", SHUFFLE, 1, None)]


def test_the_source_has_exited_or_never_was() -> None:
    result = run(f"setp.eq.u32 %p3, %r1, 5; @%p3 exit; {SHUFFLE};", 32)
    (fault,) = result.faults
    assert (fault.rule, fault.thread[0], fault.count) == ("shuffle-inactive", 4, 1)
    assert "lane 5" in fault.message
    assert faults(SHUFFLE, 31) == [("shuffle-inactive", SHUFFLE, 30, None)]


def test_a_lane_known_only_at_run_time() -> None:
    shuffle = "shfl.idx.b32 %r4, %r1, %r9, 31"
    assert faults(shuffle, 20, n=20) == [("shuffle-inactive", shuffle, 0, None)]
    silent(shuffle, 20, n=19)


def test_a_guard_keeps_a_lane_away() -> None:
    found = faults(f"setp.ne.u32 %p3, %r1, 9; @%p3 {SHUFFLE};", 32)
    assert found == [("shuffle-inactive", f"@%p3 {SHUFFLE}", 8, None)]


@pytest.mark.parametrize(
    "divide",
    [
        "div.u32 %r4, %r1, %r9", "rem.s32 %r4, %r1, %r9", "div.s32 %r4, %r1, %r9",
        "cvt.u64.u32 %rd6, %r9; rem.u64 %rd7, %rd3, %rd6", "cvt.u16.u32 %h1, %r9; div.u16 %h2, %h1, %h1",
    ],
)  # fmt: skip
def test_division_by_a_shared_zero(divide: str) -> None:
    silent(divide, n=3)
    found = faults(divide, n=0)
    assert found == [("division-by-zero", divide.split("; ")[-1], 0, None)]


def test_division_by_some_zeros() -> None:
    divide = "div.u32 %r4, 100, %r5"
    result = run(f"and.b32 %r5, %r1, 3; {divide}; st.global.u32 [%rd4], %r4;")
    assert [(each.rule, each.count, each.thread[0]) for each in result.faults] == [("division-by-zero", 16, 0)]
    silent(f"and.b32 %r5, %r1, 3; setp.ne.u32 %p3, %r5, 0; @%p3 {divide};")
    silent(f"and.b32 %r5, %r1, 3; setp.eq.u32 %p3, %r5, 0; @%p3 bra SKIP; {divide}; SKIP: mov.u32 %r6, 1;")


def test_division_of_floats_by_zero_is_none() -> None:
    result = silent(
        "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f00000000; div.rn.f32 %f3, %f1, %f2; st.global.f32 [%rd4], %f3;"
    )
    assert np.isinf(result.buffers["a"].view(np.float32)[0])
