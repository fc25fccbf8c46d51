"""Right kernels are silent, wrong ones are found and shrunk, and what is saved fails again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz.conftest import Edited, fuzzed

from ssmtool.device.cpu import CpuDevice
from ssmtool.fuzz.choices import TAPE_BYTES, Choices
from ssmtool.fuzz.draws import DRAWERS
from ssmtool.fuzz.judge import Contract
from ssmtool.fuzz.vector import vector_of
from ssmtool.golden import case_bytes, parse_case
from ssmtool.golden.check import check_files
from ssmtool.verify import Loaded, Text, run

CHEAP = ("fc_sigmoid", "fc_ssm_decay_gate_nx", "fc_ssm_conv1d_silu_seq", "fc_ssm_recurrence_seq", "fc_ssm_gated_norm")


@pytest.mark.parametrize("entry", CHEAP)
def test_a_right_kernel_has_the_bits_of_the_contract_in_every_round(entry: str, loaded: Loaded) -> None:
    contract, bytes_of = Contract(), random.Random(entry)
    for _ in range(40):
        choices = Choices(bytes_of.randbytes(TAPE_BYTES))
        case = DRAWERS[entry](entry, choices, (2,))
        failure = contract.judge(entry, case, loaded)
        assert failure is None, (failure.message, choices.made)


def test_every_kernel_of_the_reference_can_be_drawn_and_its_simplest_round_is_small() -> None:
    from ssmtool.golden.reference import KERNELS

    assert list(DRAWERS) == list(KERNELS)
    for entry, draw in DRAWERS.items():
        case = draw(entry, Choices(b""), (2, 128))
        special = any(word in entry for word in ("unroll", "warp", "decode"))  # of S = 128 alone
        assert case.device_bytes <= (100_000 if special else 2048)
        assert len(case.meta.runs) == 1
        assert len(case.meta.runs[0].launches) == 1


@pytest.mark.parametrize(
    ("entry", "old", "new", "number", "what", "buffer"),
    [
        ("fc_sigmoid", "neg.f32", "mov.f32", 0, "value", "x"),
        ("fc_ssm_gated_norm", "sqrt.rn.f32", "sqrt.approx.f32", 0, "bits", "gated"),
        ("fc_ssm_recurrence_seq", "fma.rn.f32", "fma.rz.f32", 3, "bits", "s"),
        ("fc_ssm_decay_gate_nx", "rem.s32", "div.s32", 0, "value", "g"),
    ],
    ids=["sign", "root-of-another-rounding", "update-rounded-to-zero", "head-divided"],
)
def test_a_wrong_kernel_is_found_shrunk_and_its_vector_fails_again(
    edited: Edited, text: Text, entry: str, old: str, new: str, number: int, what: str, buffer: str
) -> None:
    wrong = edited(entry, old, new, number)
    found = fuzzed(wrong, entry, rounds=60)
    (each,) = found.found
    failure = each.failure
    assert failure.target == entry
    assert failure.kind.where == buffer
    assert failure.kind.what in {what, "nonfinite"}
    vector, shown = vector_of(failure, 1, each.round)
    assert shown
    assert vector is not None
    assert vector.device_bytes <= 256, "smaller than one head of the model by far"
    case = parse_case(case_bytes(vector))
    outcome = run(wrong, [case], CpuDevice(), relations=False)
    assert outcome.caught
    assert not run(text, [case], CpuDevice(), relations=False).caught, "the right kernel passes it"


def test_golden_check_accepts_what_is_saved(edited: Edited, tmp_path: Path) -> None:
    found = fuzzed(edited("fc_sigmoid", "neg.f32", "mov.f32"), "fc_sigmoid")
    vector, _ = vector_of(found.found[0].failure, 1, 1)
    assert vector is not None
    path = tmp_path / f"{vector.meta.name}.npz"
    path.write_bytes(case_bytes(vector))
    outcome, (case,) = check_files([path], tmp_path)
    assert not outcome.findings
    assert not outcome.skips
    assert case.meta.provenance.generator == "ssmtool fuzz"


def test_a_dropped_barrier_is_a_race_though_the_numbers_are_right(edited: Edited) -> None:
    # A warp runs in step: two of them are needed for a race.
    broken = edited("fc_ssm_gated_norm", "bar.sync \t0;", "", 0)
    found = fuzzed(broken, "fc_ssm_gated_norm", rounds=30)
    (each,) = found.found
    assert each.failure.kind.what == "race"
    assert "with no barrier between" in each.failure.message
    vector, shown = vector_of(each.failure, 1, each.round)
    assert shown
    assert vector is not None
    assert run(broken, [parse_case(case_bytes(vector))], CpuDevice(), relations=False).caught


def test_an_element_that_is_not_written_is_its_own_kind(edited: Edited) -> None:
    found = fuzzed(edited("fc_ssm_decay_gate_nx", "setp.ge.s64", "setp.gt.s64"), "fc_ssm_decay_gate_nx", rounds=40)
    assert found.found, "one more element is written"
    assert found.found[0].failure.kind.what in {"overwritten", "out-of-bounds"}


def test_a_failure_ends_its_kernel_and_the_others_go_on(edited: Edited) -> None:
    wrong = edited("fc_sigmoid", "neg.f32", "mov.f32")
    found = fuzzed(wrong, "fc_sigmoid", "fc_ssm_decay_gate", rounds=25)
    assert [each.failure.target for each in found.found] == ["fc_sigmoid"]
    assert found.rounds["fc_ssm_decay_gate"] >= 20
    assert found.rounds["fc_sigmoid"] < 20
    assert found.ended == "rounds"


def test_a_kernel_that_is_not_there_is_not_checked_and_never_a_pass(text: Text) -> None:
    found = fuzzed(text.module.text.replace("fc_sigmoid", "fc_other"), "fc_ssm_decay_gate")
    assert not found.problems
    from ssmtool.fuzz.targets import all_targets

    assert found.plan.subject.judge == "contract"
    names = [each.name for each in all_targets(found.plan.subject, ["fc_ssm_decay_gate"])]
    assert "fc_sigmoid" not in names
    assert names[0] == "fc_ssm_decay_gate"


def test_by_the_tolerances_of_verify_another_rounding_passes_and_a_lost_sign_does_not(edited: Edited) -> None:
    from dataclasses import replace

    from ssmtool.fuzz import Plan, Subject, fuzz

    for old, new, entry, fails in (
        ("sqrt.rn.f32", "sqrt.approx.f32", "fc_ssm_gated_norm", False),
        ("neg.f32", "mov.f32", "fc_sigmoid", True),
    ):
        subject = replace(Subject(((edited(entry, old, new), {}),), sizes=(2,)), judge="policy")
        found = fuzz(Plan(subject, (entry,), 3, rounds=25))
        assert bool(found.found) == fails, [each.failure.message for each in found.found]
