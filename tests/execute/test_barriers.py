"""bar.sync, bar.arrive and bar.red with names and counts, in blocks that run as one vector and in blocks of warps."""

from __future__ import annotations

import numpy as np
import pytest
from execute.small import kernel, run, words

from ssmtool.execute import KernelFaultError, Module
from ssmtool.execute.layout import Mode

SHARED = ".shared .align 4 .b8 s[8192];"
# Speaking of lanes makes a block run warp by warp.
MODES = {"one vector": "", "warps": "mov.u32 %r30, %laneid;"}


def _lanes(body: str, block: int) -> int:
    return Module(kernel(body, head=SHARED)).compile("k", block).lanes


def test_the_two_ways_a_block_runs_are_both_tested() -> None:
    body = "st.shared.u32 [s], %i; bar.sync 0;"
    assert _lanes(body, 128) == 128
    assert _lanes(MODES["warps"] + body, 128) == 32


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block", [1, 32, 33, 64, 100, 128, 250, 256, 500, 512, 1000, 1024])
def test_a_reduction_tree(block: int, mode: str) -> None:
    """Halves of the block add into the other half, a barrier each time: the textbook loop."""
    body = (
        MODES[mode]
        + """
    shl.b32 %r1, %i, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; mad.lo.u32 %r3, %i, %i, 7; st.shared.u32 [%r1], %r3;
    mov.u32 %r4, 512;
    TOP: bar.sync 0; add.u32 %r5, %i, %r4; setp.ge.u32 %p1, %i, %r4; setp.ge.u32 %p2, %r5, %ntid.x;
    or.pred %p1, %p1, %p2; @%p1 bra NEXT;
    shl.b32 %r6, %r4, 2; add.u32 %r6, %r6, %r1; ld.shared.u32 %r7, [%r6]; ld.shared.u32 %r8, [%r1];
    add.u32 %r8, %r8, %r7; st.shared.u32 [%r1], %r8;
    NEXT: shr.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra TOP;
    bar.sync 0; ld.shared.u32 %r9, [s]; st.global.u32 [%rd1], %r9;
    """
    )
    found = words(body, 1, block, head=SHARED, grid=3)
    assert (found == sum(i * i + 7 for i in range(block)) & 0xFFFFFFFF).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block", [32, 40, 64, 160, 256, 1024])
def test_bar_red(block: int, mode: str) -> None:
    """The predicate holds in the first 0, 1, 33 or 5000 threads, by block of the grid."""
    limits = (0, 1, 33, 5000)
    body = (
        MODES[mode]
        + "mov.u32 %r10, %ctaid.x; mov.u32 %r11, 0;"
        + "".join(f"setp.eq.u32 %p4, %r10, {k}; selp.u32 %r11, {limits[k]}, %r11, %p4;" for k in (1, 2, 3))
        + """
    setp.lt.u32 %p1, %i, %r11; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, %p1;
    bar.red.popc.u32 %r2, 0, !%p1; barrier.red.popc.aligned.u32 %r3, 1, %p1;
    selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, %p3; or.b32 %r4, %r4, %r5;
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
    """
    )
    found = words(body, 4, block, grid=len(limits)).reshape(len(limits), block, 4)
    for limit, rows in zip(limits, found, strict=True):
        yes = min(limit, block)
        assert (rows == [yes, block - yes, yes, (yes == block) + 2 * (yes > 0)]).all()


@pytest.mark.parametrize("block", [64, 96, 256, 1024])
def test_a_barrier_in_a_loop_that_all_go_round_together(block: int) -> None:
    body = """
    mov.u32 %r10, 0; mov.u32 %r9, %i; shl.b32 %r1, %i, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;
    TOP: st.shared.u32 [%r1], %r9; bar.sync 0; add.u32 %r3, %i, 1; rem.u32 %r3, %r3, %ntid.x; shl.b32 %r3, %r3, 2;
    add.u32 %r3, %r3, %r2; ld.shared.u32 %r9, [%r3]; bar.sync 0;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 5; @%p1 bra TOP; st.global.u32 [%rd1], %r9;
    """
    for mode in MODES.values():
        found = words(mode + body, 1, block, head=SHARED)[:, 0]
        assert found.tolist() == [(i + 5) % block for i in range(block)]


def test_named_barriers_of_some_warps_each() -> None:
    """Two halves of the block pass barriers of their own, of different numbers, different often."""
    body = """
    shr.u32 %r1, %i, 6; add.u32 %r2, %r1, 1; mov.u32 %r3, 64; shl.b32 %r4, %i, 2; mov.u32 %r5, s; add.u32 %r4, %r4, %r5;
    mov.u32 %r6, 0; mov.u32 %r9, %i; mad.lo.u32 %r8, %r1, 2, 3;
    TOP: st.shared.u32 [%r4], %r9; bar.sync %r2, %r3; xor.b32 %r7, %i, 33; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %r5;
    ld.shared.u32 %r9, [%r7]; bar.sync %r2, %r3; add.u32 %r9, %r9, 100;
    add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r8; @%p1 bra TOP; st.global.u32 [%rd1], %r9;
    """
    found = words(body, 1, 128, head=SHARED)[:, 0]
    assert found.tolist() == [(i ^ 33) + 100 * (3 + 2 * (i // 64)) for i in range(128)]


def test_producers_arrive_and_consumers_wait() -> None:
    """PTX ISA, "bar": warps 0 and 1 fill a buffer and only arrive; warps 2 and 3 wait, read, and give it back."""
    body = """
    shl.b32 %r1, %i, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0; mov.u32 %r9, 0; setp.ge.u32 %p1, %i, 64;
    @%p1 bra CONSUME;
    PRODUCE: mad.lo.u32 %r4, %r3, 1000, %i; st.shared.u32 [%r1], %r4; bar.arrive 1, 128; bar.sync 2, 128;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 6; @%p2 bra PRODUCE; bra DONE;
    CONSUME: bar.sync 1, 128; ld.shared.u32 %r4, [%r1+-256]; add.u32 %r9, %r9, %r4; bar.arrive 2, 128;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 6; @%p2 bra CONSUME;
    DONE: st.global.u32 [%rd1], %r9;
    """
    found = words(body, 1, 128, head=SHARED)[:, 0]
    assert found.tolist() == [0] * 64 + [15000 + 6 * (i - 64) for i in range(64, 128)]


@pytest.mark.parametrize(
    "spelling", ["bar.sync 3;", "barrier.sync.aligned 3;", "barrier.sync 3;", "bar.cta.sync 3;", "bar.sync 3, %r20;"]
)
def test_spellings(spelling: str) -> None:
    body = f"""
    mov.u32 %r20, %ntid.x; shl.b32 %r1, %i, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %i;
    {spelling}
    ld.shared.u32 %r3, [s+252]; st.global.u32 [%rd1], %r3; bar.warp.sync -1; membar.cta; membar.gl; membar.sys;
    fence.sc.cta;
    """
    assert (words(body, 1, 64, head=SHARED) == 63).all()


def test_warps_that_have_exited_are_not_waited_for() -> None:
    body = """
    setp.ge.u32 %p1, %i, 64; @%p1 ret; shl.b32 %r1, %i, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], %i;
    bar.sync 0; ld.shared.u32 %r3, [s+252]; st.global.u32 [%rd1], %r3;
    """
    for mode in MODES.values():
        found = words(mode + body, 1, 128, head=SHARED)[:, 0]
        assert (found[:64] == 63).all()


@pytest.mark.parametrize("block", [64, 1024])
def test_warps_at_different_barriers_forever_are_a_fault_and_no_endless_wait(block: int) -> None:
    body = "setp.lt.u32 %p1, %i, 32; @%p1 bra OTHER; bar.sync 1; bra END; OTHER: bar.sync 2;"
    with pytest.raises(KernelFaultError, match="deadlock"):
        run(kernel(body), [np.zeros(1, np.uint32)], block)


def test_registers_predicates_and_masks_outlive_barriers() -> None:
    body = """
    setp.lt.u32 %p1, %i, 50; cvt.rn.f32.u32 %f1, %i; cvt.rn.f64.u32 %fd1, %i; cvt.u16.u32 %h1, %i;
    mul.wide.u32 %rd5, %i, -1;
    mov.u32 %r1, %ctaid.x; mov.u32 %r8, %laneid; setp.eq.u32 %p2, %r1, 1; bar.sync 0; bar.sync 0;
    selp.u32 %r2, 1, 0, %p1; cvt.rzi.u32.f32 %r3, %f1; cvt.rzi.u32.f64 %r4, %fd1; cvt.u32.u16 %r5, %h1;
    shr.u64 %rd6, %rd5, 32;
    cvt.u32.u64 %r6, %rd6; selp.u32 %r7, 1, 0, %p2;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; st.global.v4.u32 [%rd1+16], {%r6, %r7, %r1, %r8};
    """
    found = words(body, 8, 96, grid=2)
    for place, row in enumerate(found.tolist()):
        block, i = divmod(place, 96)
        assert row == [int(i < 50), i, i, i, (i * 0xFFFFFFFF) >> 32, int(block == 1), block, i % 32], place


def test_counting_does_not_change_what_barriers_do() -> None:
    assert Mode(counters=True) != Mode()
    body = "shl.b32 %r1, %i, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %i; bar.sync 0;"
    body += "ld.shared.u32 %r3, [s+8]; st.global.u32 [%rd1], %r3;"
    for check in ("none", "bounds", "all"):
        assert (words(body, 1, 96, head=SHARED, check=check, counters=True) == 2).all()
