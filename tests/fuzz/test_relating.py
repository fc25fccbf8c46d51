"""Relations on drawn shapes: right kernels hold them, a wrong one is found, shrunk, and both sides are kept."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.conftest import Edited, fuzzed

from ssmtool.device.cpu import CpuDevice
from ssmtool.fuzz.choices import TAPE_BYTES, Choices
from ssmtool.fuzz.judge import Contract
from ssmtool.fuzz.relating import Bits, Drawn, RelationTarget, Shape
from ssmtool.fuzz.vector import vector_of
from ssmtool.golden import case_bytes, parse_case
from ssmtool.golden.case import poisoned
from ssmtool.verify import Loaded, Text, all_relations, run
from ssmtool.verify.relations.bench import Bench

RELATIONS = {each.name: each for each in all_relations()}


def target(name: str) -> RelationTarget:
    return RelationTarget(RELATIONS[name], Contract(), {})


@pytest.mark.parametrize("name", ["R1/convolution", "R4/decay-gate", "R6/recurrence", "R9/convolution"])
def test_a_relation_draws_within_what_it_allows_and_the_same_again(name: str) -> None:
    for number in range(30):
        tape = bytes((number * 37 + at * 11) % 256 for at in range(TAPE_BYTES))
        first, second = (target(name).draw(Choices(tape)) for _ in range(2))
        assert first == second
        dims = Drawn(name, first).dims()
        assert dims.heads % dims.key_heads == 0
        assert 1 <= dims.n <= 9
        assert 1 <= dims.taps <= 4
        assert dims.size in (16, 128)


def test_the_simplest_round_is_one_head_of_16_with_one_position() -> None:
    dims = Drawn("R1/recurrence", target("R1/recurrence").draw(Choices(b""))).dims()
    assert (dims.heads, dims.size, dims.n, dims.users, dims.channels, dims.taps) == (1, 16, 1, 1, 1, 1)


def test_outputs_that_are_only_close_are_left_to_the_kernel_s_own_contract(text: Text) -> None:
    """Drawn inputs may cancel, and then no tolerance is right for two orders of summation; unwritten is unwritten."""
    bench = Bits(Loaded(CpuDevice(), [text], check="bounds"))
    one, two = np.full((1, 2), 1.0, np.float32), np.full((1, 2), 2.0, np.float32)
    bench.close("y", one, two, "h j", nmse=1e-11, max_rms=1e-4)
    assert not bench.unequal
    bench.close("y", poisoned((1, 2)), two, "h j", nmse=1e-11, max_rms=1e-4)
    assert [each.what for each in bench.unequal] == ["y"]


def test_r5_is_not_asked_of_outputs_that_cancelled(text: Text) -> None:
    """With these numbers q k nearly cancelled, and R5's tolerance was a false alarm, before q leaned to k."""
    relation = RELATIONS["R5/two-pass"]
    shape = Shape({"users": 0, "groups": 2, "key_heads": 2, "n": 0}, 0, "bell", 59970)
    plain = Bench(Loaded(CpuDevice(), [text], check="bounds"))
    relation.check(plain, Drawn(relation.name, shape))
    assert plain.compared == 2
    assert not plain.unequal


def test_right_kernels_hold_and_a_wrong_one_is_found_with_both_sides(text: Text, edited: Edited) -> None:
    assert not fuzzed(text, "R3/convolution", "R4/decay-gate", rounds=15).found
    wrong = edited("fc_ssm_decay_gate_nx", "mul.rn.f32", "add.rn.f32")
    found = fuzzed(wrong, "R4/decay-gate", rounds=15)
    (each,) = found.found
    failure = each.failure
    assert failure.target == "R4/decay-gate"
    assert failure.kernels == ("fc_ssm_decay_gate_nx",), "the one of the two that is wrong by its contract"
    assert {"g.got", "g.want"} <= set(failure.arrays)
    assert "of its launches that of fc_ssm_decay_gate_nx is wrong" in failure.message
    vector, shown = vector_of(failure, 1, each.round)
    assert shown
    assert vector is not None
    case = parse_case(case_bytes(vector))
    assert run(wrong, [case], CpuDevice(), relations=False).caught
    assert not run(text, [case], CpuDevice(), relations=False).caught
