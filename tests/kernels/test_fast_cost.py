"""What the fast kernels cost on GK210, by the audit: the limits they are made for."""

from __future__ import annotations

from pathlib import Path

from ssmtool.audit.cost import KernelCost, cost_report
from ssmtool.audit.inputs import Input, read_input
from ssmtool.ptx import parse

HEADER = Path(__file__).parents[2] / "generated" / "fc_cuda_ptx.h"
HEAD = ".version 7.4\n.target sm_37\n.address_size 64\n.extern .shared .align 16 .b8 shared[];\n"


def cost_of(name: str) -> KernelCost:
    for whole in read_input(str(HEADER)):
        function = whole.module.function(name)
        if function is not None:
            report = cost_report([Input("one.ptx", parse(HEAD + function.text), whole.parameters)], [])
            assert report.skips == []
            return report.costs[0]
    raise AssertionError(name)


def test_a_position_of_a_row_takes_at_most_33_slots_where_kernel_10_takes_78() -> None:
    cost = cost_of("fc_ssm_recurrence_seq_warp_multi")
    assert cost.position_slots is not None
    rows = 32  # of a block
    assert sum(cost.position_slots.values()) / rows < 33
    # Two sums of 9 shuffles, 7 to spread delta, the position's decay, beta and v: for eight rows.
    assert cost.position_slots["shuffle"] / 4 == 2 * 9 + 7 + 3
    # k and q are read by every warp, written by one, and waited for once every four positions.
    assert cost.position_slots["shared memory"] / 4 == 2 + 2 / 4
    assert cost.position_slots["barrier"] / 4 == 1 / 4


def test_a_row_of_a_slot_takes_a_fifteenth_of_kernel_12() -> None:
    rows = 8  # of the one warp
    assert sum(cost_of("fc_ssm_recurrence_slots_warp").block_slots.values()) / rows < 60
    assert sum(cost_of("fc_ssm_recurrence_slots").block_slots.values()) > 800


def test_the_fast_decode_is_bound_by_memory_on_a_k80() -> None:
    cost = cost_of("fc_ssm_recurrence_slots_warp")
    assert cost.issue_floor_us[0] < cost.bandwidth_floor_us / 2
