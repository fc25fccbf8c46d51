"""What is right for each judge, and what is not: last bits, cancellation, places that were not written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.draws import DRAWERS
from ssmtool.fuzz.judge import Contract, compared, same
from ssmtool.fuzz.narrow import narrowed
from ssmtool.fuzz.own_exp import OwnExp
from ssmtool.fuzz.roundings import LAST_BITS, allowed, moved_exp
from ssmtool.fuzz.tolerance import by_reference
from ssmtool.fuzz.values import FILLS, MODEST, filled
from ssmtool.golden import GoldenCase
from ssmtool.golden.case import poisoned
from ssmtool.golden.generator import Stream
from ssmtool.verify import Loaded


def sigmoid_of(*values: float) -> GoldenCase:
    b = Blank("fuzz/fc_sigmoid", "by hand")
    b.given("x", np.asarray(values, np.float32), "i", "elementwise")
    b.launch("fc_sigmoid", "fc_sigmoid", (1,), 256, 0, "x", len(values))
    return b.case()


def test_last_bits_of_exp_are_free_and_those_of_exact_exponentials_are_not() -> None:
    x = np.asarray([0.0, -0.0, -200.0, 200.0, np.nan, 1.0], np.float32)
    moved = [moved_exp(x, steps) for steps in range(-LAST_BITS, LAST_BITS + 1)]
    assert all(each[:5].tobytes() == moved[0][:5].tobytes() for each in moved)
    assert len({float(each[5]) for each in moved}) == 5
    tiny = np.asarray([-103.9], np.float32)
    assert min(float(moved_exp(tiny, steps)[0]) for steps in (-2, 2)) == 0.0, "not below 0"


def test_an_element_is_right_if_some_last_bits_make_it_and_wrong_one_step_further() -> None:
    case = sigmoid_of(0.7, -3.3)
    run = case.meta.runs[0]
    members = list(allowed(case, run, {}))
    likely = members[0]["x"]
    assert compared("t", case, run, {"x": members[3]["x"]}, members) is None
    far = likely.copy()
    far[1] = np.nextafter(max(member["x"][1] for member in members), np.float32(1))
    failure = compared("t", case, run, {"x": far}, members)
    assert failure is not None
    assert (failure.kind.what, failure.kind.where) == ("bits", "x")
    assert "x[i=1]" in failure.message


def test_any_nan_is_any_nan_but_what_was_not_written_is_only_itself() -> None:
    one, other = np.asarray([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32), poisoned((2,))
    assert same(one, one[::-1]).all()
    assert not same(one, other).any()
    assert same(other, other).all()
    assert not same(np.zeros(1, np.float32), -np.zeros(1, np.float32)).any(), "signs of zero are bits"


def test_a_kernel_tells_its_own_exponentials_to_the_last_bits(loaded: Loaded) -> None:
    entry = "fc_ssm_recurrence_seq"
    choices = Choices(b"")
    case = DRAWERS[entry](entry, choices, (2,))
    g = np.full_like(case.before["g"], -0.37)
    case = replace(case, before={**case.before, "g": g})
    told = OwnExp().of(case, case.meta.runs[0], loaded)
    (bits,) = told
    own = np.asarray([told[bits]], np.int32).view(np.float32)[0]
    assert abs(float(own) - np.exp(float(np.float32(-0.37)))) < 2e-7
    assert Contract().judge(entry, case, loaded) is None


def test_cancelling_inputs_are_no_false_alarm_by_the_contract_nor_by_the_tolerance(loaded: Loaded) -> None:
    entry = "fc_ssm_recurrence_seq"
    case = DRAWERS[entry](entry, Choices(b""), (2,))
    big = np.asarray([1e4, -1e4], np.float32)
    before = dict(case.before)
    before["s"] = np.broadcast_to(big * np.float32(1.0000001), case.before["s"].shape).copy()
    before["g"] = np.full_like(case.before["g"], -0.4)
    before["q"] = np.asarray([1.0, 0.9999999], np.float32).reshape(1, 1, 2)
    before["k"], before["v"] = before["q"].copy(), np.full_like(case.before["v"], 1e-3)
    hard = replace(case, before=before)
    assert Contract().judge(entry, hard, loaded) is None
    assert by_reference(entry, hard, loaded) is None


@pytest.mark.parametrize("fill", dict.fromkeys(FILLS))
def test_every_fill_has_its_bits_for_every_shape(fill: str) -> None:
    for shape in ((1,), (3, 5), (2, 3, 16)):
        one, other = (filled(Stream("s"), "x", shape, fill) for _ in range(2))
        assert one.dtype == np.float32
        assert one.shape == shape
        assert one.tobytes() == other.tobytes()
    if fill in MODEST:
        assert np.isfinite(filled(Stream("s"), "x", (2, 3, 16), fill)).all()


def test_a_case_is_cut_to_the_element_that_is_wrong() -> None:
    case = sigmoid_of(*range(9))
    run = case.meta.runs[0]
    members = list(allowed(case, run, {}))
    got = members[0]["x"].copy()
    got[6] = 9
    failure = compared("t", case, run, {"x": got}, members)
    assert failure is not None
    (cut,) = narrowed(failure)
    assert cut.before["x"].tolist() == [6.0]
    assert cut.meta.buffers["x"].shape == (1,)
    assert [each.value for each in cut.meta.runs[0].launches[0].args if each.name == "n"] == [1]
