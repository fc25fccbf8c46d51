"""Barriers that some threads do not reach."""

from __future__ import annotations

import pytest
from execute.checked import WARPS, WIDE, faults, run, silent, told

BARRIER = "bar.sync 0"


@pytest.mark.parametrize("mode", [WIDE, WARPS])
@pytest.mark.parametrize("block", [1, 31, 32, 33, 64, 100, (8, 4, 3)])
def test_whole_blocks_are_silent(mode: str, block: object) -> None:
    silent(f"{mode} {BARRIER}; {BARRIER};", block, grid=2)


def test_half_a_warp() -> None:
    # Both sides have a barrier of their own: the same number, but never all lanes at once.
    body = "setp.lt.u32 %p3, %r1, 16; @%p3 bra A; bar.sync 0; bra B; A: bar.sync 0; B: mov.u32 %r4, 1;"
    result = run(body, 32)
    assert {each.rule for each in result.faults} == {"barrier-divergence"}
    assert "lanes 0-15" in result.faults[-1].message or "lanes 0-15" in result.faults[0].message


def test_whole_warps_may_part() -> None:
    # Warp 0 takes one barrier, warp 1 the other: the same barrier of the block, whole warps both.
    silent("@%p2 bra A; bar.sync 0; bra B; A: bar.sync 0; B: mov.u32 %r4, 1;", 64)


@pytest.mark.parametrize("mode", ["", "mov.u32 %r31, %laneid;"])
def test_lanes_that_have_exited(mode: str) -> None:
    found = faults(f"{mode} setp.gt.u32 %p3, %r1, 40; @%p3 exit; {BARRIER};", 64)
    assert [(rule, text) for rule, text, _, _ in found] == [("barrier-exited", BARRIER)]


def test_a_warp_that_has_exited() -> None:
    found = faults(f"mov.u32 %r31, %laneid; @!%p2 exit; {BARRIER};", 64)
    assert found == [("barrier-exited", BARRIER, 0, None)]


def test_a_barrier_for_half_the_block_does_not_miss_the_others() -> None:
    silent("@!%p2 exit; bar.sync 1, 32;", 64)


def test_all_may_exit_before_the_last_barrier_is_anyones() -> None:
    silent(f"{BARRIER}; setp.ne.u32 %p3, %r9, 0; @%p3 bra GO; exit; GO: {BARRIER};", 64)


def test_warps_that_wait_at_different_barriers() -> None:
    result = run("@%p2 bra A; bar.sync 0; bra B; A: bar.sync 1; B: mov.u32 %r4, 1;", 64)
    assert [rule for rule, *_ in told(result.faults)] == ["barrier-deadlock"]
    assert result.stopped
