"""What kind of difference two sets of bits have: the first question about any mismatch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# kind -> (bits of the fraction, bits in all)
_FORMATS = {"f16": (10, 16), "f32": (23, 32), "f64": (52, 64)}


def classify(kind: str, a: NDArray[Any], b: NDArray[Any]) -> dict[str, int]:
    """How many of the pairs differ in which way. `a` and `b` are raw bits that differ everywhere, of a PTX type `kind`.

    A NaN against a NaN is `nan payload`; a subnormal against a zero `subnormal flushed`; 0 against -0 `zero's sign`;
    neighbours `1 ulp`; other finite numbers `2..N ulp`; anything else by what it is.
    """
    if kind not in _FORMATS:
        return {"other bits": int(a.size)}
    fraction, bits = _FORMATS[kind]
    a, b = a.astype(np.uint64), b.astype(np.uint64)
    sign = np.uint64(1 << (bits - 1))
    top = np.uint64(((1 << (bits - 1 - fraction)) - 1) << fraction)
    size_a, size_b = a & ~sign, b & ~sign
    nan_a, nan_b = size_a > top, size_b > top
    zero_a, zero_b = size_a == 0, size_b == 0
    least = np.uint64(1 << fraction)
    far = np.where(size_a > size_b, size_a - size_b, size_b - size_a)
    same_sign = (a & sign) == (b & sign)
    found: dict[str, int] = {}
    left = np.ones(a.shape, bool)
    for name, here in (
        ("nan payload", nan_a & nan_b),
        ("nan against a number", nan_a != nan_b),
        ("zero's sign", zero_a & zero_b),
        ("subnormal flushed", (zero_a & (size_b < least)) | (zero_b & (size_a < least))),
        ("infinity against a number", (size_a == top) != (size_b == top)),
        ("sign", ~same_sign),
        ("1 ulp", far == 1),
        ("2 to 16 ulp", far <= 16),
        ("more than 16 ulp", np.ones(a.shape, bool)),
    ):
        count = int((here & left).sum())
        if count:
            found[name] = count
        left &= ~here
    return found


def cause_of(kind: str, a: NDArray[Any], b: NDArray[Any]) -> str:
    """`12 x 1 ulp, 1 x nan payload`."""
    return ", ".join(f"{count} x {name}" for name, count in classify(kind, a, b).items())
