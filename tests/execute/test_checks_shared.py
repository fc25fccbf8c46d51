"""Races by barrier epochs, and shared memory that nothing has written."""

from __future__ import annotations

import numpy as np
import pytest
from execute.checked import WARPS, WIDE, faults, notes, run, silent, told

from ssmtool.execute.lower.checks import cells

PUT = "st.shared.u32 [%r3], %r1"
OWN = "ld.shared.u32 %r4, [%r3]"
NEXT = "ld.shared.u32 %r4, [%r3+4]"
FILL = f"{PUT}; @%p1 st.shared.u32 [s+256], %r1; bar.sync 0"
"""Every word that 64 threads and their neighbours read is written."""
WAIT = "AGAIN: bar.sync 0; sub.u32 %r9, %r9, 1; setp.ne.u32 %p4, %r9, 0; @%p4 bra AGAIN"
both = pytest.mark.parametrize("mode", [WIDE, WARPS], ids=["block-wide", "by-warps"])


@both
def test_write_then_read_by_another_warp(mode: str) -> None:
    result = run(f"{mode} {FILL}; st.shared.u32 [%r3], 7; {NEXT};")
    # Which of the two comes second hangs on how the block runs; that it is told does not.
    wanted = [("race", NEXT, 31, 32)] if mode == WIDE else [("race", "st.shared.u32 [%r3], 7", 32, 31)]
    assert told(result.faults) == wanted
    assert told(result.notes) == [("warp-race", NEXT, 0, 1)]
    (fault,) = result.faults
    assert (fault.where, fault.block, fault.kernel) == ("shared s[128]", (0, 0, 0), "k")


@both
def test_read_then_write_by_another_warp(mode: str) -> None:
    found = faults(f"{mode} {FILL}; {NEXT}; st.shared.u32 [%r3], 7;")
    assert found == [("race", "st.shared.u32 [%r3], 7", 32, 31)]


@both
def test_write_and_write(mode: str) -> None:
    # Thread t and 63 - t: always of different warps.
    body = f"{mode} {PUT}; mov.u32 %r5, s; sub.u32 %r6, 252, %r2; add.u32 %r5, %r5, %r6; st.shared.u32 [%r5], 1;"
    result = run(body)
    assert {(rule, text) for rule, text, _, _ in told(result.faults)} <= {
        ("race", "st.shared.u32 [%r5], 1"),
        ("race", PUT),
    }
    assert sum(fault.count for fault in result.faults) == 64
    assert not result.notes


@both
def test_a_barrier_between_is_enough(mode: str) -> None:
    silent(f"{mode} {FILL}; {NEXT}; bar.sync 0; {PUT}; bar.sync 0; {OWN};", grid=3)


@both
def test_an_earlier_reader_is_not_forgotten_for_a_later_one(mode: str) -> None:
    # Word 0 is read by thread 32 and then by thread 0, which writes it: still a race with 32.
    body = (
        f"{mode} {FILL}; setp.eq.u32 %p3, %r1, 32; @%p3 ld.shared.u32 %r4, [s]; "
        "@%p1 ld.shared.u32 %r4, [s]; @%p1 st.shared.u32 [s], 5;"
    )
    assert [(rule, text) for rule, text, _, _ in faults(body)] in (
        [("race", "@%p1 st.shared.u32 [s], 5")],
        [("race", "@%p3 ld.shared.u32 %r4, [s]")],
    )


@both
def test_every_thread_may_read_what_one_wrote(mode: str) -> None:
    silent(
        f"{mode} @%p1 st.shared.u32 [s], 5; bar.sync 0; ld.shared.u32 %r4, [s]; bar.sync 0; @%p1 st.shared.u32 [s], 6;"
    )


@both
def test_one_place_read_by_all_then_written(mode: str) -> None:
    found = faults(f"{mode} @%p1 st.shared.u32 [s], 5; bar.sync 0; ld.shared.u32 %r4, [s]; @%p1 st.shared.u32 [s], 6;")
    assert [rule for rule, *_ in found] == ["race"]


@both
def test_many_readers_at_any_places_are_no_fault(mode: str) -> None:
    # Threads read words t & 7 and (t * 5) & 63, by gathers.
    places = "and.b32 %r5, %r2, 28; mul.lo.u32 %r6, %r2, 5; and.b32 %r6, %r6, 252; mov.u32 %r7, s"
    reads = "add.u32 %r5, %r5, %r7; add.u32 %r6, %r6, %r7; ld.shared.u32 %r4, [%r5]; ld.shared.u32 %r4, [%r6]"
    silent(f"{mode} {FILL}; {places}; {reads}; ld.shared.u32 %r4, [%r3]; {NEXT};")
    found = faults(f"{mode} {FILL}; {places}; {reads}; {PUT};")
    assert {rule for rule, *_ in found} == {"race"}


def test_all_of_a_warp_write_one_value_to_one_place() -> None:
    silent("@%p2 st.shared.u32 [s], %r9; bar.sync 0; ld.shared.u32 %r4, [s];")
    # By a scatter, the same.
    place = "and.b32 %r5, %r2, 4; mov.u32 %r6, s; add.u32 %r5, %r5, %r6"
    silent(f"{place}; @%p2 st.shared.u32 [%r5], %r9; bar.sync 0;")


def test_lanes_of_a_warp_write_different_values_to_one_place() -> None:
    result = notes("@%p2 st.shared.u32 [s], %r1; bar.sync 0;")
    assert [(rule, text) for rule, text, _, _ in result] == [("warp-race", "@%p2 st.shared.u32 [s], %r1")]
    place = "and.b32 %r5, %r2, 4; mov.u32 %r6, s; add.u32 %r5, %r5, %r6"
    assert [each[0] for each in notes(f"{place}; @%p2 st.shared.u32 [%r5], %r1; bar.sync 0;")] == ["warp-race"]


@both
def test_two_warps_write_one_place(mode: str) -> None:
    # Even the same value: the memory model calls it a race.
    assert [each[0] for each in faults(f"{mode} st.shared.u32 [s], 5;")] == ["race"]


@both
def test_atomics_race_with_plain_accesses_only(mode: str) -> None:
    add = "red.shared.add.u32 [s], 1"
    start = f"{mode} @%p1 st.shared.u32 [s], 0; bar.sync 0"
    silent(f"{start}; {add}; atom.shared.add.u32 %r5, [s], 2; bar.sync 0; ld.shared.u32 %r4, [s];")
    assert {each[0] for each in faults(f"{start}; {add}; ld.shared.u32 %r4, [s];")} == {"race"}
    assert {each[0] for each in faults(f"{start}; {add}; @%p1 st.shared.u32 [s], 3;")} == {"race"}
    # Two threads of one warp: both atomic, then one of them plainly.
    assert [each[0] for each in notes(f"{start}; @%p2 {add}; @%p1 ld.shared.u32 %r4, [s];")] == ["warp-race"]


@both
def test_wide_accesses_meet_narrow_ones(mode: str) -> None:
    pair = "cvt.u64.u32 %rd6, %r2; shl.b32 %r5, %r1, 3; mov.u32 %r6, s; add.u32 %r5, %r5, %r6"
    silent(f"{mode} {pair}; cvt.rn.f64.u32 %d1, %r1; st.shared.f64 [%r5], %d1; ld.shared.v2.u32 {{%r7, %r8}}, [%r5];")
    found = faults(f"{mode} {pair}; cvt.rn.f64.u32 %d1, %r1; st.shared.f64 [%r5], %d1; @!%p2 {OWN};")
    # Thread 32 reads word 32, the half of thread 16's.
    assert [(rule, text) for rule, text, _, _ in found] == [("race", f"@!%p2 {OWN}")]


@both
def test_bytes_side_by_side_are_no_race(mode: str) -> None:
    place = "mov.u32 %r5, s; add.u32 %r5, %r5, %r1"
    silent(f"{mode} {place}; st.shared.u8 [%r5], %r1; ld.shared.u8 %r6, [%r5];")
    across = "@!%p2 ld.shared.u8 %r6, [%r5+-1]; @%p2 st.shared.u8 [%r5], 1"
    found = faults(f"{mode} {place}; st.shared.u8 [%r5], %r1; bar.sync 0; {across};")
    assert {each[0] for each in found} == {"race"}


@both
def test_generic_addresses_are_judged_too(mode: str) -> None:
    place = "mov.u32 %r5, s; cvt.u64.u32 %rd6, %r5; cvta.shared.u64 %rd6, %rd6; add.u64 %rd6, %rd6, %rd3"
    silent(
        f"{mode} {place}; st.u32 [%rd6], %r1; bar.sync 0; ld.u32 %r4, [%rd6]; st.u32 [%rd4], %r4; st.u32 [%rd6], %r4;"
    )
    found = faults(f"{mode} {place}; st.u32 [%rd6], %r1; @!%p2 ld.shared.u32 %r4, [%r3+-4];")
    assert {rule for rule, *_ in found} == {"race"}
    assert {each[0] for each in faults(f"{mode} {place}; ld.u32 %r4, [%rd6];")} == {"unwritten-shared"}


@both
def test_never_written(mode: str) -> None:
    result = run(f"{mode} @%p2 {PUT}; bar.sync 0; {OWN};")
    assert told(result.faults) == [("unwritten-shared", OWN, 32, None)]
    assert result.faults[0].count == 32
    assert result.faults[0].where == "shared s[128]"


@both
def test_what_one_block_wrote_is_not_written_in_the_next(mode: str) -> None:
    write = "mov.u32 %r5, %ctaid.x; setp.eq.u32 %p3, %r5, 0; @%p3"
    result = run(f"{mode} {write} {PUT}; bar.sync 0; {OWN};", grid=3)
    assert told(result.faults) == [("unwritten-shared", OWN, 0, None)]
    assert result.faults[0].block == (1, 0, 0)
    assert result.faults[0].count == 2 * 64


@both
def test_a_sum_in_place_is_one_check_but_tells_all(mode: str) -> None:
    add = f"{OWN}; add.u32 %r4, %r4, 1; st.shared.u32 [%r3], %r4"
    silent(f"{mode} {PUT}; bar.sync 0; {add}; bar.sync 0; {add};", grid=2)
    assert [each[0] for each in faults(f"{mode} {add};")] == ["unwritten-shared"]
    found = faults(f"{mode} {FILL}; {add}; @!%p2 ld.shared.u32 %r5, [%r3+-4];")
    assert {each[0] for each in found} == {"race"}


@both
def test_an_access_outside_has_no_cells(mode: str) -> None:
    found = faults(f"{mode} {PUT}; st.shared.u32 [%r3+960], 1; @%p1 ld.shared.u32 %r4, [%r3+-4];")
    assert {rule for rule, *_ in found} == {"out-of-bounds"}


@both
@pytest.mark.parametrize("most", [8, 9, 11])
def test_ticks_that_run_out_start_anew(mode: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_TICKS", most)
    step = f"{OWN}; add.u32 %r4, %r4, 1; st.shared.u32 [%r3], %r4; bar.sync 0; sub.u32 %r9, %r9, 1"
    steps = f"AGAIN: {step}; setp.ne.u32 %p4, %r9, 0; @%p4 bra AGAIN"
    racy, late = f"{mode} {FILL}; {steps}; {NEXT}; {PUT};", f"{mode} @%p2 {PUT}; {WAIT}; {OWN};"
    for count in range(1, 10):
        silent(f"{mode} {FILL}; {steps}; {NEXT};", grid=4, n=count)
        assert [(each.rule, each.count) for each in run(racy, grid=3, n=count).faults] == [("race", 3)], count
        result = run(late, grid=3, n=count)
        assert [(each.rule, each.count) for each in result.faults] == [("unwritten-shared", 96)], count


def test_a_warp_synchronous_reduction_is_right_on_kepler_and_noted() -> None:
    step = "ld.volatile.shared.u32 %r5, [%r3+{0}]; add.u32 %r4, %r4, %r5; st.volatile.shared.u32 [%r3], %r4"
    steps = "; ".join(step.format(4 * stride) for stride in (16, 8, 4, 2, 1))
    start = "add.u32 %r4, %r1, 1; st.volatile.shared.u32 [%r3], %r4; st.volatile.shared.u32 [%r3+128], 0"
    body = f"{start}; {steps}; @%p1 st.global.u32 [%rd1], %r4;"
    result = run(body, block=32)
    assert not result.faults
    assert result.notes
    assert {each.rule for each in result.notes} == {"warp-race"}
    assert all("right on Kepler" in each.message for each in result.notes)
    assert result.buffers["a"][0] == 32 * 33 // 2


def test_barriers_of_a_warp_order_it() -> None:
    # Written by lane 1, read by lane 0: a note without the warp's barrier, nothing with it.
    fill = f"{PUT}; @%p1 st.shared.u32 [s+128], 0; bar.sync 0; st.shared.u32 [%r3], 7"
    assert [each[0] for each in notes(f"{fill}; {NEXT};", 32)] == ["warp-race"]
    silent(f"{fill}; bar.warp.sync -1; {NEXT}; bar.warp.sync -1; {PUT};", 32)
    # It orders no other warp.
    result = run(f"{FILL}; st.shared.u32 [%r3], 7; bar.warp.sync -1; {NEXT};")
    assert [each.rule for each in result.faults] == ["race"]
    assert not result.notes


@pytest.mark.parametrize("most", [7, 8, 1 << 19])
def test_barriers_of_a_warp_when_ticks_run_out(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_TICKS", most)
    body = f"{FILL}; " + "st.shared.u32 [%r3], 7; bar.warp.sync -1; " * 9
    silent(f"{body} bar.sync 0; {NEXT};", grid=2)
    # The second warp writes what the first has read.
    result = run(f"{body} {NEXT};", grid=2)
    assert [(each.rule, each.count) for each in result.faults] == [("race", 2)] * 9
    assert not result.notes


def test_a_producer_that_only_arrives() -> None:
    produce = f"@!%p2 bra WAIT; {PUT}; bar.arrive 1, 64; bra.uni DONE"
    silent(
        f"{produce}; WAIT: bar.sync 1, 64; ld.shared.u32 %r4, [%r3+-128]; st.global.u32 [%rd4], %r4; DONE: bar.sync 0;"
    )


@both
def test_results_are_those_of_an_unchecked_run(mode: str) -> None:
    result = silent(f"{mode} {FILL}; {NEXT}; st.global.u32 [%rd4], %r4;", threads=2, grid=5)
    assert np.array_equal(result.buffers["a"][:64], [*range(1, 64), 0])


def test_notes_are_the_same_however_many_threads_run() -> None:
    body = f"{WARPS} {FILL}; st.shared.u32 [%r3], 7; bar.warp.sync -1; @%p1 {NEXT}; @%p1 {PUT}; {PUT}; bar.sync 0;"
    first = [str(each) for each in run(body, grid=40, threads=1).notes]
    assert first == [str(each) for each in run(body, grid=40, threads=2).notes]
