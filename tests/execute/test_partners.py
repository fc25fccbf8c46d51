"""Both accesses of a race are named, and finding the second leaves no trace in the buffers."""

from __future__ import annotations

import numpy as np
import pytest

from ssmtool.execute import Fault, Module

PTX = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 4 .b8 tile[1024];
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
mov.u64 %rd3, tile;
add.s64 %rd3, %rd3, %rd2;
add.s64 %rd1, %rd1, %rd2;
ld.global.u32 %r2, [%rd1];
add.u32 %r2, %r2, 1;
st.global.u32 [%rd1], %r2;
xor.b32 %r3, %r1, 64;
mul.wide.u32 %rd4, %r3, 4;
mov.u64 %rd5, tile;
add.s64 %rd5, %rd5, %rd4;
FIRST
BARRIER
SECOND
ret;
}
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("st.shared.u32 [%rd3], %r1;", "ld.shared.u32 %r4, [%rd5];"),
        ("st.shared.u32 [%rd3], %r1;", "st.shared.u32 [%rd5], %r1;"),
        ("ld.shared.u32 %r4, [%rd5];", "st.shared.u32 [%rd3], %r1;"),
    ],
)
def test_the_other_access_is_named(first: str, second: str) -> None:
    ptx = PTX.replace("FIRST", f"st.shared.u32 [%rd3], %r3;\nbar.sync 0;\n{first}").replace("BARRIER", "")
    ptx = ptx.replace("SECOND", second)
    counts = np.zeros(128, np.uint32)
    result = Module(ptx).launch("k", 3, 128, [np.resize(counts, 128)], check="all", on_fault="collect")
    races = [fault for fault in result.faults if fault.kind is Fault.RACE]
    assert races
    start = ptx.index("bar.sync")
    for race in races:
        assert race.line == ptx[: ptx.index(second, start)].count("\n") + 1
        assert race.other_line == ptx[: ptx.index(first, start)].count("\n") + 1
        assert race.other_text == first
        assert f"PTX line {race.other_line}" in race.message


def test_the_second_run_of_a_block_leaves_the_buffers_alone() -> None:
    """The kernel counts its blocks in global memory: a block that ran twice would show."""
    ptx = PTX.replace("FIRST", "st.shared.u32 [%rd3], %r1;").replace("BARRIER", "")
    ptx = ptx.replace("SECOND", "ld.shared.u32 %r4, [%rd5];")
    counts = np.zeros(128, np.uint32)
    result = Module(ptx).launch("k", 3, 128, [counts], check="all", on_fault="collect", threads=1)
    assert result.faults and (counts == 3).all()


def test_with_a_barrier_there_is_no_race() -> None:
    ptx = PTX.replace("FIRST", "st.shared.u32 [%rd3], %r1;").replace("BARRIER", "bar.sync 0;")
    ptx = ptx.replace("SECOND", "ld.shared.u32 %r4, [%rd5];")
    assert not Module(ptx).launch("k", 3, 128, [np.zeros(128, np.uint32)], check="all").faults
