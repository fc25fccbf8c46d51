"""The cost of the sequential recurrences, class by class, against counts by hand from the text of their main loops."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from ssmtool.audit.assumptions import Parameters, make_assumption, resolve
from ssmtool.audit.cost import KernelCost, cost_report
from ssmtool.audit.flow import Flow
from ssmtool.audit.inputs import Input, read_input
from ssmtool.audit.launches import parse_launch
from ssmtool.audit.loopcontrol import classes_by_place
from ssmtool.audit.walk import CannotTellError, Shape, walk
from ssmtool.ptx import parse
from ssmtool.settings_form import table

HEADER = Path(__file__).parents[2] / "generated" / "fc_cuda_ptx.h"


@functools.cache
def costs() -> dict[str, KernelCost]:
    wanted = ("fc_ssm_recurrence_seq", "fc_ssm_recurrence_seq_unroll128", "fc_ssm_recurrence_seq_warp")
    whole, _ = read_input(str(HEADER))
    found = {}
    for name in wanted:
        text = ".version 7.4\n.target sm_37\n.address_size 64\n.extern .shared .align 16 .b8 shared[];\n"
        function = whole.module.function(name)
        assert function is not None
        report = cost_report([Input("one.ptx", parse(text + function.text), whole.parameters)], [])
        assert report.skips == []
        found[name] = report.costs[0]
    return found


def test_kernel_8_by_class() -> None:
    cost = costs()["fc_ssm_recurrence_seq"]
    # Two trees of 7 rounds in 4 warps: 6 control instructions and a barrier a round; the body of 6 (two loads, an add,
    # a store, two of address arithmetic) runs in 2 + 1*6 warps. The position loop adds 3 of control in each warp.
    assert cost.position_slots is not None
    assert cost.position_slots["loop control"] == 2 * 7 * 6 * 4 + 3 * 4 == 348
    assert cost.position_slots["barrier"] == 2 * 7 * 4 + 4 * 4 == 72
    assert cost.position_slots["shared memory"] == 2 * 8 * 3 + 4 * 4 == 64
    assert cost.position_slots["transcendental"] == 4
    assert sum(cost.position_slots.values()) == 715


def test_kernel_9_has_no_tree_loop() -> None:
    cost = costs()["fc_ssm_recurrence_seq_unroll128"]
    assert cost.position_slots is not None
    assert cost.position_slots["loop control"] == 3 * 4
    assert sum(cost.position_slots.values()) == 387


def test_kernel_10_per_row() -> None:
    cost = costs()["fc_ssm_recurrence_seq_warp"]
    assert cost.position_slots is not None
    assert cost.position_slots["shuffle"] == 10 * 4
    # The bound is loaded anew in every turn: with it 4 instructions in each of 4 warps.
    assert cost.position_slots["loop control"] == pytest.approx(4 * 4, abs=0.2)
    # 78 in the main loop, and a little for the exponentials that are staged 32 positions at a time.
    assert sum(cost.position_slots.values()) / 4 == pytest.approx(78, abs=0.5)


def test_the_floors_rest_on_the_traffic_the_contract_has() -> None:
    cost = costs()["fc_ssm_recurrence_seq"]
    state = 32 * 128 * 128 * 4
    assert cost.read_bytes["s"] == cost.written_bytes["s"] == state
    assert cost.read_bytes["q"] == cost.read_bytes["k"] == 128 * 32 * 128 * 4  # shared by the 128 rows of a head
    assert cost.read_bytes["g"] == 128 * 32 * 4
    assert cost.written_bytes["y"] == 128 * 32 * 128 * 4
    assert cost.exact
    assert cost.bandwidth_floor_us == pytest.approx(cost.bytes / 240e9 * 1e6)
    assert cost.slots == pytest.approx((715 * 127 + 919) * 4096)
    assert cost.issue_floor_us[0] == pytest.approx(cost.slots / 52 / 824e6 * 1e6)


def test_slots_of_a_launch_are_on_the_line_that_two_walks_give() -> None:
    whole, _ = read_input(str(HEADER))
    function = whole.module.function("fc_ssm_recurrence_seq")
    assert function is not None
    names = Parameters.of(function, whole.parameters)
    values = {"state_size": 128, "n_v_heads": 32, "n": 5, "snaps": 0}
    assumed = resolve([make_assumption(f"*.{name}", value) for name, value in values.items()], {function.name: names})
    walked = walk(Flow(function), assumed[function.name], Shape((128, 32, 1), (128, 1, 1)))
    assert sum(walked.issued.values()) == 919 + 4 * 715


HEAD = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1) {
.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
ld.param.u64 %rd1, [k_param_0];
ld.param.u32 %r1, [k_param_1];
"""


def walked(body: str, threads: int = 32, **values: int) -> dict[str, int]:
    function = parse(HEAD + body + "\nret; }\n").entries[0]
    names = Parameters.of(function, {"k": ("out", "n")})
    assumed = resolve([make_assumption(f"k.{name}", value) for name, value in values.items()], {"k": names})["k"]
    found = walk(Flow(function), assumed, Shape((1, 1, 1), (threads, 1, 1)))
    total: dict[str, int] = {}
    for index, count in found.issued.items():
        total[function.opcodes[index]] = total.get(function.opcodes[index], 0) + count
    return total


def test_an_access_under_a_guard_that_is_not_known_makes_the_bytes_a_lower_bound() -> None:
    text = HEAD + "setp.lt.s32 %p1, %r1, 7;\n@%p1 ld.global.u32 %r2, [%rd1];\nret; }\n"
    given = Input("one.ptx", parse(text), {"k": ("out", "n")})
    launch = [parse_launch("k=1/32")]
    (cost,) = cost_report([given], [], launch).costs
    assert (cost.exact, cost.bytes) == (False, 0)
    (cost,) = cost_report([given], [make_assumption("k.n", 6)], launch).costs
    assert (cost.exact, cost.bytes) == (True, 4)


def test_lanes_that_part_meet_again_after_the_branch() -> None:
    body = (
        "mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 7; @%p1 bra A; mul.lo.s32 %r3, %r2, 3; bra B;"
        " A: shl.b32 %r3, %r2, 1; B: xor.b32 %r4, %r3, 1;"
    )
    found = walked(body)
    assert (found["mul.lo.s32"], found["shl.b32"], found["xor.b32"]) == (1, 1, 1)


def test_a_lane_that_leaves_early_does_not_come_back() -> None:
    body = "mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 7; @%p1 ret; xor.b32 %r4, %r3, 1;"
    assert walked(body)["xor.b32"] == 1
    assert "xor.b32" not in walked(body, threads=7)


def test_any_kernel_with_a_launch_has_a_cost_and_no_value_it_was_not_given() -> None:
    body = "mov.u32 %r2, %tid.x; setp.ge.s32 %p1, %r2, %r1; @%p1 ret; mov.u32 %r3, %ntid.y; st.global.u32 [%rd1], %r3;"
    text = HEAD + body + "\nret; }\n"
    given = Input("one.ptx", parse(text), {"k": ("out", "n")})
    launch = [parse_launch("k=10/40,2")]
    # `n` is the contract's name of a parameter; here it is the user's, and nothing is known of it.
    skipped = cost_report([given], [], launch)
    assert (len(skipped.costs), "depends on data" in skipped.skips[0].reason) == (0, True)
    (cost,) = cost_report([given], [make_assumption("k.n", 20)], launch).costs
    assert (cost.warps, cost.grid, cost.block) == (3, (10, 1, 1), (40, 2, 1))
    # 5 instructions in each of 3 warps, the first return among them; 3 more in the two that have a lane below 20: the
    # third holds threads 64 to 79, which are x = 24 to 39.
    assert sum(cost.block_slots.values()) == 3 * 5 + 2 * 3
    assert cost_report([given], []).skips[0].fix == f"--launch k=GRID/BLOCK, or {table('launch')}"


def test_a_loop_runs_as_long_as_its_longest_lane() -> None:
    body = (
        "mov.u32 %r2, %tid.x; mov.u32 %r3, 0; T: add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra T;"
        " xor.b32 %r4, %r3, 1;"
    )
    found = walked(body)
    assert (found["add.s32"], found["xor.b32"]) == (31, 1)


def test_every_warp_of_the_block_counts_the_last_one_partly_filled() -> None:
    assert walked("xor.b32 %r4, %r3, 1;", threads=65)["xor.b32"] == 3


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u32 %r2, [%rd1]; setp.eq.s32 %p1, %r2, 0; @%p1 ret;",  # data
        "setp.eq.s64 %p1, %rd1, 0; @%p1 ret;",  # a pointer nothing is assumed of, against NULL
        "and.b64 %rd2, %rd1, 15; setp.eq.s64 %p1, %rd2, 0; @%p1 ret;",  # its alignment
        "setp.eq.s32 %p1, %r1, 3; @%p1 ret;",  # a number nothing is assumed of
        "T: bra T;",  # without end
    ],
)
def test_what_cannot_be_told_is_said_and_never_guessed(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.audit.walk._LIMIT", 1000)
    with pytest.raises(CannotTellError):
        walked(body)


def test_an_assumed_null_pointer_decides() -> None:
    body = "setp.eq.s64 %p1, %rd1, 0; @%p1 bra E; xor.b32 %r4, %r3, 1; E:"
    assert "xor.b32" not in walked(body, out=0)


def test_loop_control_is_what_turns_with_the_loop() -> None:
    body = (
        "mov.u32 %r2, 0; setp.eq.s32 %p3, %r1, 7; T: @%p3 bra S; xor.b32 %r5, %r5, 1; S: ld.global.u32 %r4, [%rd1];"
        " setp.eq.s32 %p2, %r4, 0; @%p2 bra E; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %r1; @%p1 bra T; E:"
    )
    function = parse(HEAD + body + "\nret; }\n").entries[0]
    classes = classes_by_place(Flow(function))
    control = [index for index, name in enumerate(classes) if name == "loop control"]
    # Neither the branch on a parameter nor the one on data; the counter, its test and its branch.
    assert [function.opcodes[index] for index in control] == ["add.s32", "setp.lt.s32", "bra"]
