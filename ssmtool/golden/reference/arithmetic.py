"""The few operations of the reference that are more than a NumPy operator, each made of operators alone.

NumPy's exp, log1p and sum leave their last bits to the machine (vector units, order of summation). Those here are made
of additions, multiplications and divisions of whole arrays, which IEEE 754 fixes, so that what is expected has the same
bits everywhere. All work in the type they are given: float64 for what is expected, float32 to restate the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
F64 = NDArray[np.float64]

# ln 2 in two parts, the first with 32 trailing zero bits, so that its product with a small integer is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_INVERSE_FACTORIALS = [1.0]
for _n in range(1, 15):
    _INVERSE_FACTORIALS.append(_INVERSE_FACTORIALS[-1] / _n)

# Half of the smallest fp32 subnormal, and where rounding to fp32 gives infinity.
_UNDERFLOW = 2.0**-150
_OVERFLOW = float.fromhex("0x1.ffffffp127")


def exp(x: Array) -> Array:
    """Exponential with the range of fp32: 0 and infinity where fp32's exp is, and float64's precision in between."""
    return _like(fp32_range(_exp(np.asarray(x, np.float64))), x)


def log1p(x: Array) -> Array:
    """Logarithm of 1 + x for x >= 0."""
    return _like(_log1p(np.asarray(x, np.float64)), x)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a*b + c: in float32 rounded once, in float64 as two operations (a bit in 2^52 is nobody's concern here)."""
    if np.result_type(a, b, c) != np.float32:
        return a * b + c
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)  # exact: 48 bits
    addend = np.asarray(c, np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)  # what the addition lost (Knuth's two-sum)
    # Rounding to odd before rounding to fp32 makes the two roundings one (Boldo and Melquiond, 2008).
    total, error = np.broadcast_arrays(total, error)
    bits = total.copy().view(np.int64)
    inexact = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    outward = (error > 0) == (total > 0)
    bits = np.where(inexact, np.where(outward, bits + 1, bits - 1), bits)
    return bits.view(np.float64).astype(np.float32)


def tree_sum(p: Array) -> Array:
    """Sum over the last axis, pairwise: element i + element i + half, halves until one is left.

    A length that is no power of two is filled with zeros, which changes no sum.
    """
    length = 1 << (p.shape[-1] - 1).bit_length()
    if length != p.shape[-1]:
        p = np.concatenate([p, np.zeros((*p.shape[:-1], length - p.shape[-1]), p.dtype)], axis=-1)
    while length > 1:
        length //= 2
        p = p[..., :length] + p[..., length:]
    return p[..., 0]


def fp32_range(x: Array) -> Array:
    """x, where fp32 can hold something like it; else 0 or infinity, as the fp32 operation would have it."""
    if x.dtype == np.float32:
        return x
    x = np.where(np.abs(x) <= _UNDERFLOW, x * 0.0, x)
    return np.where(np.abs(x) >= _OVERFLOW, x * np.inf, x)


def _exp(x: F64) -> F64:
    """2^k * e^r with k = round(x / ln 2), and e^r, |r| < 0.35, by its series."""
    inside = np.clip(np.nan_to_num(x), -750.0, 750.0)
    k = np.rint(inside * (1 / (_LN2_HIGH + _LN2_LOW)))
    r = (inside - k * _LN2_HIGH) - k * _LN2_LOW
    series = np.full_like(r, _INVERSE_FACTORIALS[-1])
    for coefficient in _INVERSE_FACTORIALS[-2::-1]:
        series = series * r + coefficient
    # In two factors: 2^k alone is outside of float64 at both ends.
    half = np.floor(k / 2)
    value = series * _power_of_two(half) * _power_of_two(k - half)
    value = np.where(x == -np.inf, 0.0, np.where(x == np.inf, np.inf, value))
    return np.where(np.isnan(x), x, value)


def _power_of_two(k: F64) -> F64:
    return ((k.astype(np.int64) + 1023) << 52).view(np.float64)


def _log1p(x: F64) -> F64:
    """log(1 + x) = k ln 2 + log(m), 1 + x = m * 2^k, m in [0.71, 1.42); log(m) = 2 atanh((m-1)/(m+1)) by its series."""
    finite = np.where(np.isfinite(x), x, 0.0)
    total = 1.0 + finite
    lost = np.where(finite < 1.0, finite - (total - 1.0), 1.0 - (total - finite))  # what the addition rounded away
    mantissa, k = np.frexp(total)
    low = mantissa < np.sqrt(0.5)
    mantissa, k = np.where(low, mantissa * 2, mantissa), k - low
    f = mantissa - 1.0
    s = f / (2.0 + f)
    square = s * s
    series = np.full_like(square, 1.0 / 25)
    for n in range(23, 0, -2):
        series = series * square + 1.0 / n
    value = k * _LN2_HIGH + (2.0 * s * series + (k * _LN2_LOW + lost / total))
    # Where 1 + x rounds to 1 the correction is all there is, and it is x itself.
    value = np.where(total == 1.0, finite, value)
    return np.where(np.isfinite(x), value, x)


def _like(value: F64, x: Array) -> Array:
    return value.astype(np.float32) if np.asarray(x).dtype == np.float32 else value
