"""exp, log1p, fma and sums of the reference against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssmtool.golden.reference.arithmetic import exp, fma, fp32_range, log1p, tree_sum


def _ulps(got: float, exact: gmpy2.mpfr) -> float:
    return abs(float((gmpy2.mpfr(got) - exact) / gmpy2.mpfr(float(np.spacing(abs(float(exact)))))))


@given(st.floats(-100, 88.7))
def test_exp_is_within_two_ulp_of_float64(x: float) -> None:
    with gmpy2.context(gmpy2.get_context(), precision=120):
        assert _ulps(float(exp(np.array([x]))[0]), gmpy2.exp(gmpy2.mpfr(x))) < 2


@given(st.floats(0, 5e8))
def test_log1p_is_within_two_ulp_of_float64(x: float) -> None:
    with gmpy2.context(gmpy2.get_context(), precision=160):
        exact = gmpy2.log1p(gmpy2.mpfr(x))
        got = float(log1p(np.array([x]))[0])
        assert got == 0 if x == 0 else _ulps(got, exact) < 2


@pytest.mark.parametrize(
    ("x", "value"),
    [(-np.inf, 0), (np.inf, np.inf), (np.nan, np.nan), (89, np.inf), (-104, 0), (0, 1), (-0.0, 1), (1e300, np.inf)],
)
def test_exp_has_the_range_of_fp32(x: float, value: float) -> None:
    with np.errstate(all="ignore"):
        assert np.array_equal(exp(np.array([x])), [value], equal_nan=True)


def test_exp_keeps_subnormal_results() -> None:
    assert float(exp(np.array([-100.0]))[0]) == pytest.approx(3.720075976020836e-44, rel=1e-15)


def test_log1p_of_what_is_not_finite() -> None:
    assert np.array_equal(log1p(np.array([np.inf, np.nan])), [np.inf, np.nan], equal_nan=True)


def test_range_leaves_fp32_alone() -> None:
    tiny = np.array([1e-45], np.float32)
    assert fp32_range(tiny) is tiny


singles = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(singles, singles, singles)
def test_fma_in_fp32_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(all="ignore"):
        got = fma(np.float32([a]), np.float32([b]), np.float32([c]))[0]
    with gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True, round=gmpy2.RoundToNearest):
        want = gmpy2.mpfr(gmpy2.mpq(exact))
    assert float(got) == float(want)


def test_fma_through_double_would_round_twice() -> None:
    a = np.float32([1 + 2.0**-12])
    assert fma(a, a, np.float32([2.0**-70])).view(np.uint32)[0] == 0x3F801001


def test_tree_adds_in_the_contracts_order() -> None:
    p = np.array([2.0**24, 1, 1, 1, -(2.0**24), 0, 0, 0], np.float32)
    # Strides 4, 2, 1: (p0+p4) cancels first, so nothing is lost; from left to right 1 + 1 + 1 would be.
    assert tree_sum(p) == 3
    assert tree_sum(np.arange(5.0)) == 10
