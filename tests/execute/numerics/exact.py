"""Exact rounding by integers, vectorised: an oracle that shares nothing with the emitters."""

from __future__ import annotations

from typing import Any

import numpy as np

MODES = ("rn", "rz", "rm", "rp")


def split32(bits: Any) -> tuple[Any, Any, Any]:
    """(negative, mantissa, exponent) of finite nonzero f32 bits: the value is mantissa * 2^exponent, 24 bits."""
    bits = bits.astype(np.int64)
    field, fraction = (bits >> 23) & 255, bits & 0x7FFFFF
    mantissa = np.where(field == 0, fraction, fraction | 0x800000)
    exponent = np.where(field == 0, -149, field - 150)
    while ((mantissa > 0) & (mantissa < 0x800000)).any():
        low = (mantissa > 0) & (mantissa < 0x800000)
        mantissa, exponent = np.where(low, mantissa << 1, mantissa), np.where(low, exponent - 1, exponent)
    return bits >> 31 == 1, mantissa, exponent


def round32(negative: Any, mantissa: Any, exponent: Any, sticky: Any, mode: str) -> Any:
    """f32 bits of (mantissa + a fraction if sticky) * 2^exponent; mantissa > 0 of at most 62 bits."""
    length = np.frexp(mantissa.astype(np.float64))[1].astype(np.int64)
    length = np.where(mantissa >> np.maximum(length - 1, 0) == 0, length - 1, length)
    last = np.maximum(exponent + length - 24, -149)
    drop = last - exponent
    assert (drop >= 1).all(), "give the oracle more bits than the format has"
    drop = np.minimum(drop, 62)
    kept = mantissa >> drop
    rest = mantissa - (kept << drop)
    half = np.int64(1) << (drop - 1)
    inexact = (rest > 0) | sticky
    if mode == "rn":
        up = (rest > half) | ((rest == half) & (sticky | (kept & 1 == 1)))
    elif mode == "rz":
        up = np.zeros_like(inexact)
    else:
        up = inexact & (negative == (mode == "rm"))
    kept = kept + up
    packed = kept + ((last + 149) << 23)
    outward = {"rn": np.ones_like(negative), "rz": np.zeros_like(negative), "rm": negative, "rp": ~negative}[mode]
    packed = np.where(packed >= 0x7F800000, np.where(outward, 0x7F800000, 0x7F7FFFFF), packed)
    return (packed | np.where(negative, 1 << 31, 0)).astype(np.uint32)
