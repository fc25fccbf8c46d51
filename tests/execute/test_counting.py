"""Counting mode against counts made by hand, and against the audit's walk of the same launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ssmtool.audit.assumptions import Parameters, make_assumption, resolve
from ssmtool.audit.flow import Flow
from ssmtool.audit.walk import Shape, walk
from ssmtool.execute import Module
from ssmtool.execute.counters import Counters
from ssmtool.ptx import extract

ROOT = Path(__file__).resolve().parents[2]
HEAD = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 4 .b8 tile[8192];
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r1, %tid.x;
mov.u64 %rd2, tile;
{body}
ret;
}}
"""


def counted(body: str, block: int = 32, words: int = 8192) -> Counters:
    result = Module(HEAD.format(body=body)).launch("k", 2, block, [np.zeros(words, np.uint32)], counters=True)
    assert result.counters is not None
    return result.counters


@pytest.mark.parametrize(("step", "passes"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (16, 16), (32, 32), (33, 1)])
def test_bank_passes_of_strided_words(step: int, passes: int) -> None:
    """A stride of s words meets a bank gcd(s, 32) times; one word for all lanes is a broadcast."""
    body = f"mul.wide.u32 %rd3, %r1, {4 * step};\nadd.s64 %rd3, %rd3, %rd2;\nst.shared.u32 [%rd3], %r1;"
    counters = counted(body)
    assert counters.parts_per_request("shared") == passes
    assert counters.parts_per_request("global") is None


def test_lanes_that_do_not_run_need_no_pass() -> None:
    body = """
    mul.wide.u32 %rd3, %r1, 128;
    add.s64 %rd3, %rd3, %rd2;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 st.shared.u32 [%rd3], %r1;
    """
    assert counted(body).parts_per_request("shared") == 5


@pytest.mark.parametrize(("step", "sectors"), [(0, 1), (1, 4), (2, 8), (8, 32), (64, 32)])
def test_sectors_of_strided_words(step: int, sectors: int) -> None:
    body = f"mul.wide.u32 %rd3, %r1, {4 * step};\nadd.s64 %rd3, %rd3, %rd1;\nld.global.u32 %r2, [%rd3];"
    assert counted(body).parts_per_request("global") == sectors


def test_a_wide_block_counts_by_warp() -> None:
    """128 threads run as one vector where a barrier allows; counts are of warps all the same."""
    body = """
    setp.lt.u32 %p1, %r1, 48;
    @!%p1 bra END;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd3, %rd3, %rd2;
    st.shared.u32 [%rd3], %r1;
    END:
    bar.sync 0;
    """
    counters = counted(body, block=128)
    store = next(each for each in counters.accesses)
    assert (store.requests, store.parts) == (2 * 2, 2 * 2)  # two blocks, two warps with a lane below 48
    ((came, parted),) = counters.branches.values()
    assert (came, parted) == (2 * 4, 2 * 1)
    assert counters.branch_efficiency == 0.75


def test_a_loop_counts_its_trips() -> None:
    body = """
    mov.u32 %r2, 0;
    TOP:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 10;
    @%p1 bra TOP;
    """
    counters = counted(body)
    assert sorted(counters.by_instruction.values()) == [2] * 5 + [20] * 3


LAUNCHES = {
    "fc_ssm_recurrence_seq": ((128, 2), 128),
    "fc_ssm_recurrence_seq_unroll128": ((128, 2), 128),
    "fc_ssm_recurrence_seq_warp": ((32, 2), 256),
}


@pytest.mark.parametrize("entry", LAUNCHES)
def test_the_audits_walk_counts_what_is_executed(entry: str) -> None:
    """Issue slots that `audit-ptx --cost` tells from PTX text are those of the real launch, one by one."""
    size, heads, positions = 128, 2, 5
    grid, floats = LAUNCHES[entry]
    module = Module(extract((ROOT / "generated/fc_cuda_ptx.h").read_text())[0].text)
    state = np.zeros((heads, size, size), np.float32)
    rows = [np.zeros((positions, heads, size), np.float32) for _ in range(3)]
    gates = [np.zeros((positions, heads), np.float32) for _ in range(2)]
    out = np.zeros((positions, heads, size), np.float32)
    arguments = [state, *rows, *gates, out, size, heads, positions, 1.0, None]
    result = module.launch(entry, grid, 128, arguments, 4 * floats, counters=True)
    function = module.ptx.function(entry)
    assert function is not None and result.counters is not None
    parameters = Parameters.of(function, {})
    values = {"param_7": size, "param_8": heads, "param_9": positions, "param_11": 0}
    assumptions = [make_assumption(f"{entry}.{name}", value) for name, value in values.items()]
    assumed = resolve(assumptions, {entry: parameters})[entry]
    walked = walk(Flow(function), assumed, Shape((*grid, 1), (128, 1, 1))).issued
    blocks = grid[0] * grid[1]
    executed = {index: times / blocks for index, times in result.counters.by_instruction.items() if times}
    assert executed == {index: float(times) for index, times in walked.items() if times}
