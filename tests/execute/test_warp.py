"""shfl, vote, match and their kin against the pseudo-code of the PTX ISA, lane by lane in Python."""

from __future__ import annotations

import numpy as np
import pytest
from execute.small import words

from ssmtool.execute import UnsupportedError

VALUES = [(i * 2654435761 + 12345) & 0xFFFFFFFF for i in range(32)]
VALUE = "mad.lo.u32 %r1, %i, 2654435761, 12345; and.b32 %r20, %i, 31; mad.lo.u32 %r1, %r20, 2654435761, 12345;"


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """(lane read, predicate) as PTX ISA 7.4 has it under "shfl"."""
    bval, cval, mask = b & 0x1F, c & 0x1F, (c >> 8) & 0x1F
    highest = (lane & mask) | (cval & ~mask & 0x1F)
    lowest = lane & mask
    if mode == "up":
        j, p = lane - bval, lane - bval >= highest
    elif mode == "down":
        j, p = lane + bval, lane + bval <= highest
    elif mode == "bfly":
        j, p = lane ^ bval, (lane ^ bval) <= highest
    else:
        j = lowest | (bval & ~mask & 0x1F)
        p = j <= highest
    return (j, p) if p else (lane, p)


LANES = (0, 1, 2, 5, 16, 31, 32, 63)
CLAMPS = {"up": (0, 0x1C00, 0x1800, 0x1F00), "": (31, 0x1F, 0x181F, 0x1C1F, 0x0F, 0x1003, 0x1F1F)}


def _clamps(mode: str) -> tuple[int, ...]:
    return CLAMPS["up"] if mode == "up" else CLAMPS[""]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl_with_literals(mode: str, sync: bool) -> None:
    cases = [(b, c) for b in LANES for c in _clamps(mode)]
    word, more = (".sync", ", -1") if sync else ("", "")
    body = VALUE
    for k, (b, c) in enumerate(cases):
        body += f"shfl{word}.{mode}.b32 %r2|%p1, %r1, {b}, {c}{more}; selp.u32 %r3, 1, 0, %p1;"
        body += f"st.global.v2.u32 [%rd1+{8 * k}], {{%r2, %r3}};"
    found = words(body, 2 * len(cases), 64)
    for thread in range(64):
        for k, (b, c) in enumerate(cases):
            source, inside = shuffled(mode, thread % 32, b, c)
            assert found[thread, 2 * k : 2 * k + 2].tolist() == [VALUES[source], inside], (thread, b, c)


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("which", ["lanes differ", "lanes agree"])
def test_shfl_with_registers(mode: str, sync: bool, which: str) -> None:
    clamps = _clamps(mode)
    word, more = (".sync", ", %r9") if sync else ("", "")
    body = VALUE + "mov.u32 %r9, -1;"
    lane = (
        "mad.lo.u32 %r4, %i, 7, 3; and.b32 %r4, %r4, 63;" if which == "lanes differ" else "mul.lo.u32 %r4, %ctaid.x, 9;"
    )
    body += lane
    for k, c in enumerate(clamps):
        body += f"mov.u32 %r5, {c}; shfl{word}.{mode}.b32 %r2|%p1, %r1, %r4, %r5{more}; selp.u32 %r3, 1, 0, %p1;"
        body += f"shfl{word}.{mode}.b32 %r6, %r1, %r4, %r5{more}; xor.b32 %r7, %r6, %r2; or.b32 %r3, %r3, %r7;"
        body += f"st.global.v2.u32 [%rd1+{8 * k}], {{%r2, %r3}};"
    found = words(body, 2 * len(clamps), 32, grid=3)
    for thread in range(96):
        b = (thread % 32 * 7 + 3) & 63 if which == "lanes differ" else thread // 32 * 9
        for k, c in enumerate(clamps):
            source, inside = shuffled(mode, thread % 32, b, c)
            assert found[thread, 2 * k : 2 * k + 2].tolist() == [VALUES[source], inside], (thread, b, c)


def test_shfl_of_floats_and_of_a_value_that_all_lanes_share() -> None:
    body = """
    cvt.rn.f32.u32 %f1, %i; shfl.bfly.b32 %f2, %f1, 3, 31; mov.u32 %r1, 9; shfl.idx.b32 %r2, %r1, 4, 31;
    shfl.idx.b32 %r3, %i, 4, 31; st.global.f32 [%rd1], %f2; st.global.v2.u32 [%rd1+8], {%r2, %r3};
    """
    found = words(body, 4)
    assert found[:, 0].view(np.float32).tolist() == [float(i ^ 3) for i in range(32)]
    assert (found[:, 2] == 9).all()
    assert (found[:, 3] == 4).all()


def test_shfl_within_the_lanes_that_run_it() -> None:
    body = """
    mov.u32 %r2, 7; setp.ge.u32 %p1, %i, 16; @%p1 bra OUT;
    shfl.sync.bfly.b32 %r2, %i, 1, 31, 0xffff; add.u32 %r2, %r2, 100;
    OUT: st.global.u32 [%rd1], %r2;
    """
    assert words(body)[:, 0].tolist() == [100 + (i ^ 1) if i < 16 else 7 for i in range(32)]


def test_a_guarded_shfl_leaves_the_others_their_values() -> None:
    body = "mov.u32 %r2, 7; setp.lt.u32 %p1, %i, 8; @%p1 shfl.down.b32 %r2, %i, 1, 7; st.global.u32 [%rd1], %r2;"
    found = words(body)[:, 0].tolist()
    assert found == [min(i + 1, 7) if i < 8 else 7 for i in range(32)]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 9, 31, 32])
def test_votes(limit: int, sync: bool) -> None:
    word, more = (".sync", ", -1") if sync else ("", "")
    body = f"setp.lt.u32 %p1, %laneid, {limit};"
    for k, mode in enumerate(("all", "any", "uni")):
        body += f"vote{word}.{mode}.pred %p2, %p1{more}; vote{word}.{mode}.pred %p3, !%p1{more};"
        body += "selp.u32 %r1, 1, 0, %p2; selp.u32 %r2, 2, 0, %p3; or.b32 %r1, %r1, %r2;"
        body += f"st.global.u32 [%rd1+{4 * k}], %r1;"
    body += f"vote{word}.ballot.b32 %r3, %p1{more}; st.global.u32 [%rd1+12], %r3;"
    found = words(body, 4, 64)
    yes = [lane < limit for lane in range(32)]
    every, some = all(yes), any(yes)
    wanted = [
        every + 2 * (not some),
        some + 2 * (not every),
        3 * (every or not some),
        sum(1 << k for k in range(limit)),
    ]
    assert (found == wanted).all()


def test_votes_and_activemask_count_the_lanes_that_run_them() -> None:
    body = """
    setp.lt.u32 %p1, %i, 3; setp.lt.u32 %p2, %i, 10; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;
    @!%p2 bra OUT;
    vote.ballot.b32 %r1, %p1; activemask.b32 %r2; vote.all.pred %p3, %p2; selp.u32 %r3, 1, 0, %p3;
    setp.ne.u32 %p4, %i, 5; @%p4 activemask.b32 %r4;
    OUT: st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
    """
    found = words(body, 4)
    for lane in range(32):
        wanted = [7, 0x3FF, 1, 0x3FF & ~32 if lane != 5 else 0] if lane < 10 else [0, 0, 0, 0]
        assert found[lane].tolist() == wanted, lane


def test_a_block_that_ends_within_a_warp_votes_without_the_rest() -> None:
    body = "setp.ge.u32 %p1, %i, 0; vote.ballot.b32 %r1, %p1; activemask.b32 %r2; st.global.v2.u32 [%rd1], {%r1, %r2};"
    found = words(body, 2, 40)
    assert (found[:32] == 0xFFFFFFFF).all()
    assert (found[32:] == 0xFF).all()


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_match(kind: str) -> None:
    register = "%r1" if kind == "b32" else "%rd5"
    body = f"""
    and.b32 %r1, %i, 5; cvt.u64.u32 %rd5, %r1; shl.b64 %rd5, %rd5, {0 if kind == "b32" else 32};
    match.any.sync.{kind} %r2, {register}, -1; mov.{kind} {register}, 7;
    match.all.sync.{kind} %r3|%p1, {register}, -1; selp.u32 %r4, 1, 0, %p1;
    st.global.v4.u32 [%rd1], {{%r2, %r3, %r4, %r4}};
    """
    found = words(body, 4)
    for lane in range(32):
        same = sum(1 << k for k in range(32) if k & 5 == lane & 5)
        assert found[lane].tolist() == [same, 0xFFFFFFFF, 1, 1]


def test_special_registers_of_the_warp() -> None:
    body = """
    mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %lanemask_le; mov.u32 %r4, %lanemask_eq;
    mov.u32 %r5, %lanemask_ge; mov.u32 %r6, %lanemask_gt; mov.u32 %r7, %warpid; mov.u32 %r8, %nwarpid;
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};
    """
    found = words(body, 8, (10, 7, 1))
    for thread in range(70):
        lane = thread % 32
        below = (1 << lane) - 1
        masks = [below, below | 1 << lane, 1 << lane, ~below & 0xFFFFFFFF, ~(below | 1 << lane) & 0xFFFFFFFF]
        assert found[thread].tolist() == [lane, *masks, thread // 32, 3]


@pytest.mark.parametrize("block", [(1, 1, 1), (33, 1, 1), (7, 3, 2), (32, 2, 2), (1, 1, 40), (64, 8, 2)])
def test_thread_and_block_numbers(block: tuple[int, int, int]) -> None:
    body = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.y;
    mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; mov.u32 %r8, %nctaid.z;
    mad.lo.u32 %r30, %nctaid.y, %r7, %r6; mad.lo.u32 %r30, %nctaid.x, %r30, %r5;
    mul.lo.u32 %r31, %ntid.x, %ntid.y; mul.lo.u32 %r31, %r31, %ntid.z; mad.lo.u32 %r30, %r30, %r31, %i;
    mad.wide.u32 %rd1, %r30, 32, %rd0;
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};
    """
    found = words(body, 8, block, grid=(3, 2, 2))
    x, y, z = block
    for place, row in enumerate(found.tolist()):
        number, thread = divmod(place, x * y * z)
        assert row[:3] == [thread % x, thread // x % y, thread // (x * y)]
        assert row[3:] == [y, number % 3, number // 3 % 2, number // 6, 2]


@pytest.mark.parametrize(
    "body",
    [
        "redux.sync.add.u32 %r1, %r2, -1;",
        "elect.sync %r1|%p1, -1;",
        "shfl.up.b64 %rd1, %rd2, 1, 0;",
        "vote.eq.pred %p1, %p2;",
    ],
)
def test_what_sm_37_has_not_is_refused_by_name(body: str) -> None:
    with pytest.raises(UnsupportedError, match=body.split()[0].rpartition(".")[0].replace(".", r"\.")):
        words(body)
