"""Comparison: nothing is averaged away, and indices are told by their meaning."""

from __future__ import annotations

import numpy as np
import pytest
from golden.checked_in import case

from ssmtool.golden.build import Builder
from ssmtool.golden.case import GoldenCase, poisoned
from ssmtool.golden.compare import ArrayResult, compare, compare_array, element
from ssmtool.golden.policies import POLICIES
from ssmtool.golden.reference import run

STATE = "recurrence/mistake-order"


def _after(name: str) -> tuple[GoldenCase, dict[str, np.ndarray]]:
    vector = case(name)
    return vector, run(vector)


def _one(vector: GoldenCase, after: dict[str, np.ndarray], name: str) -> ArrayResult:
    (result,) = [each for each in compare(vector, after) if each.name == name]
    return result


def test_tolerances_are_as_strict_as_is_affordable() -> None:
    assert (POLICIES["recurrence"].nmse, POLICIES["recurrence"].max_rms) == (1e-11, 1e-4)
    assert all(policy.exact or policy.atol < 2.0**-140 for policy in POLICIES.values())


def test_what_is_expected_passes_in_any_shape() -> None:
    vector, after = _after(STATE)
    assert all(result.ok for result in compare(vector, after))
    assert all(result.ok for result in compare(vector, {name: array.reshape(-1) for name, array in after.items()}))


def test_one_wrong_element_is_found_and_named() -> None:
    # ggml's limit, NMSE <= 1e-7 over everything, lets this one pass.
    vector, after = _after("recurrence/s128-t128")
    want = after["s"][0, 17, 64]
    after["s"][0, 17, 64] += np.float32(0.02) * np.sqrt((after["s"] ** 2).mean())
    result = _one(vector, after, "s")
    assert not result.ok and result.wrong == 1 and result.nmse < 1e-7
    assert result.first == result.worst
    assert str(result.first).startswith("s[h=0, j=17, i=64] is ") and f"expected {want:.9g}" in str(result.first)
    assert "largest error" in result.reasons[-1]


def test_an_offset_that_cosine_hides_is_found() -> None:
    vector, after = _after(STATE)
    after["y"] = after["y"] * np.float32(1.0001)
    assert not _one(vector, after, "y").ok


def test_a_huge_error_over_nothing_is_infinite_and_wrong() -> None:
    vector, after = _after(STATE)
    got = np.full_like(after["y"], 1e30)
    result = compare_array(vector, "y", got, against=np.zeros_like(got))
    assert not result.ok
    assert result.nmse == np.inf


def test_a_wrong_head_cannot_hide_behind_large_ones() -> None:
    b = Builder("compare/heads", "one head is a million times smaller")
    state = b.random.bell("s", (2, 4, 4))
    state[1] *= np.float32(1e-6)
    b.given("x", state, "h j i", "recurrence", group="h")
    b.launch("r", "fc_sigmoid", (1,), 256, 0, "x", 1)
    vector = b.case()
    after = run(vector)
    after["x"][1] *= np.float32(1.01)
    result = _one(vector, after, "x")
    assert [group.label for group in result.bad_groups] == ["h=1"]


def test_what_was_not_written_fails_whatever_is_expected_there() -> None:
    vector, after = _after("recurrence/nan-s8")
    after["y"][1, 2, 0] = poisoned((1,))[0]  # NaN is expected here, but it must have been written
    result = _one(vector, after, "y")
    assert (result.ok, result.unwritten) == (False, 1)
    assert result.reasons == ("1 of 64 elements were never written",)
    assert "is poison (never written)" in str(result.first)


def test_what_must_not_be_written_fails_when_it_is() -> None:
    vector, after = _after("slots/mistake-padding")
    after["y"][2, 0, 3] = 0
    result = _one(vector, after, "y")
    assert (result.ok, result.overwritten) == (False, 1)
    assert "user=2, h=0, j=3" in str(result.first)


def test_a_changed_input_fails_by_its_bits() -> None:
    vector, after = _after(STATE)
    after["q"].reshape(-1)[5] = np.nextafter(after["q"].reshape(-1)[5], np.float32(9))
    result = _one(vector, after, "q")
    assert (result.ok, result.wrong, result.reasons) == (False, 1, ("1 elements changed",))


@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "1 NaN that should not be"), (np.inf, "1 infinities differ")]
)  # fmt: skip
def test_nan_and_infinity_where_none_is_expected(value: float, words: str) -> None:
    vector, after = _after(STATE)
    after["y"][0, 1, 2] = value
    result = _one(vector, after, "y")
    assert (result.ok, result.nonfinite, result.reasons) == (False, 1, (words,))


def test_a_missing_nan_and_a_wrong_infinity() -> None:
    vector, after = _after("decay-gate/mistake-infinite-a")
    assert np.isnan(after["g"][0, 0]) and after["g"][0, 1] == -np.inf
    after["g"][0, :2] = 0, np.inf
    assert _one(vector, after, "g").reasons == ("1 NaN missing, 1 infinities differ",)


def test_any_nan_is_as_good_as_another_but_poison() -> None:
    vector, after = _after("recurrence/nan-s8")
    for bits in (0x7FFFFFFF, 0xFFC00000, 0x7F800001):
        after["y"][np.isnan(after["y"])] = np.array([bits], np.uint32).view(np.float32)[0]
        assert _one(vector, after, "y").ok


def test_flushed_subnormals_are_seen() -> None:
    vector, after = _after("decay-gate/denormal")
    small = np.abs(after["g"]) < 2.0**-126
    assert small.sum() > 4
    after["g"][small] = 0
    assert not _one(vector, after, "g").ok


def test_ulps_are_counted_across_zero() -> None:
    vector, after = _after("sigmoid/edges")
    got = after["x"].copy()
    got[0] = np.nextafter(np.float32(0.5), np.float32(1))
    assert compare_array(vector, "x", got).max_ulp == 1
    assert not compare_array(vector, "x", -after["x"]).ok


def test_rows_have_their_own_numbers() -> None:
    vector = case("slots/past-2-to-the-31")
    buffer = vector.meta.buffers["y"]
    assert buffer.rows is not None
    assert element("y", buffer, 3 * 9 * 64) == f"y[user={buffer.rows[3]}, h=0, j=0]"
    after = run(vector)
    after["y"][3, 2, 1] += 1
    result = _one(vector, after, "y")
    assert f"y[user={buffer.rows[3]}, h=2, j=1]" in str(result.first)
    assert result.bad_groups[0].label == f"user={buffer.rows[3]}, h=2"


def test_another_type_or_size_is_the_callers_mistake() -> None:
    vector, after = _after(STATE)
    with pytest.raises(ValueError, match="is float64"):
        compare_array(vector, "y", after["y"].astype(np.float64))
    with pytest.raises(ValueError, match="cannot reshape"):
        compare_array(vector, "y", after["y"].reshape(-1)[1:])


def test_a_sum_that_cancels_is_many_ulp_off_and_told_to_be_rounding() -> None:
    # A right layer norm fails 8 ulp at an element next to zero, and 122 ulp alone send its author after a mistake.
    vector, after = _after("sigmoid/n257")
    want = after["x"].copy()
    low = int(np.argmin(want))
    after["x"][low] += np.float32(1e-7) * want.max()
    result = _one(vector, after, "x")
    assert result.max_ulp > 8 and result.nmse < 1e-13
    assert len(result.reasons) == 1
    assert "as rounding leaves it: a kernel that sums wants a policy of sums" in result.reasons[0]
    after["x"][0] *= np.float32(1.01)
    assert "rounding" not in "".join(_one(vector, after, "x").reasons)
    after["x"][:] = want
    after["x"][low] += np.float32(1e-7) * want.max()
    after["x"][1] = np.nan
    assert "rounding" not in "".join(_one(vector, after, "x").reasons)
