"""Harder inputs for the floating-point forms: every triple of special values, and results at the format's edges.

The same fixed function of (operand kinds, case) on the GPU machine and here.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from ssmtool.probe.inputs import mix64
from ssmtool.probe.variants import Variant, variants

CASES = 1 << 14
FORMAT = {"f16": (16, 10, 15), "f32": (32, 23, 127), "f64": (64, 52, 1023)}
PREFIXES = (
    "add",
    "sub",
    "mul",
    "fma",
    "div",
    "rcp",
    "sqrt",
    "rsqrt",
    "min",
    "max",
    "abs",
    "neg",
    "testp",
    "cvt",
)


def forms() -> list[Variant]:
    """The forms stressed: those whose operands are all floats, named in `PREFIXES`."""
    return [v for v in variants() if v.name.split(".")[0] in PREFIXES and all(k in FORMAT for k in v.operands)]


def _specials(kind: str) -> list[int]:
    bits, fraction, bias = FORMAT[kind]
    top, one, sign = ((1 << (bits - 1 - fraction)) - 1) << fraction, bias << fraction, 1 << (bits - 1)
    tiny = 1 << fraction
    plain = [0, 1, tiny - 1, tiny, one, top - 1, top, top + 1, top + (tiny >> 1) + 5]
    return [
        *plain,
        sign,
        sign | 1,
        sign | tiny,
        sign | one,
        sign | top,
        sign | top + 3,
        sign | top + (tiny >> 1),
    ]


def stress(kinds: tuple[str, ...], cases: int = CASES) -> list[NDArray[np.uint64]]:
    """Bits of each operand, shape (cases,) each."""
    kind = kinds[0]
    bits, fraction, bias = FORMAT[kind]
    index = np.arange(cases, dtype=np.uint64)
    specials = np.array(_specials(kind), np.uint64)
    cross = 16 ** len(kinds)
    drawn = [mix64(mix64(index * np.uint64(8) + np.uint64(k)) ^ np.uint64(bits)) for k in range(len(kinds))]
    target = mix64(drawn[0] ^ np.uint64(77)) % np.uint64(6)
    # Exponents: near one, a result near the smallest normal, near the largest, in the subnormals, or anything.
    span = 2 * bias
    first = drawn[0] >> np.uint64(20)
    low, high = np.uint64(1), np.uint64(span)
    wobble = [d >> np.uint64(8) & np.uint64(3) for d in drawn]
    exps = []
    for k in range(len(kinds)):
        near = np.uint64(bias - 1) + wobble[k]
        any_ = np.uint64(1) + (drawn[k] >> np.uint64(30)) % np.uint64(span)
        exps.append(np.where(target == 0, near, any_))
    if len(kinds) > 1:
        base = np.uint64(1) + first % np.uint64(span)
        edge = np.where(
            target == 1,
            np.int64(1 - bias),
            np.where(target == 2, np.int64(bias), np.int64(1 - bias - fraction // 2)),
        )
        partner = edge + np.int64(2 * bias) - base.astype(np.int64) + wobble[1].astype(np.int64) - 1
        quotient = base.astype(np.int64) - edge + wobble[1].astype(np.int64) - 1
        flip = (drawn[1] >> np.uint64(12) & np.uint64(1)).astype(bool)
        partner = np.where(flip, quotient, partner)
        chosen = (target >= 1) & (target <= 3)
        exps[0] = np.where(chosen, base, exps[0])
        exps[1] = np.where(chosen, np.clip(partner, 0, span).astype(np.uint64), exps[1])
        if len(kinds) > 2:
            third = np.clip(edge + bias + wobble[2].astype(np.int64) - 2, 0, span).astype(np.uint64)
            exps[2] = np.where(chosen, third, np.where(target == 4, np.uint64(bias) + wobble[2], exps[2]))
        sums = target == 4
        exps[0] = np.where(sums, np.where(flip, low + wobble[0], np.minimum(base, high)), exps[0])
        exps[1] = np.where(sums, np.where(flip, low + wobble[1], exps[0] + wobble[1] - np.uint64(1)), exps[1])
    out = []
    for k in range(len(kinds)):
        field = np.minimum(exps[k], np.uint64(span))
        mantissa = mix64(drawn[k]) & np.uint64((1 << fraction) - 1)
        shape = mix64(drawn[k] ^ np.uint64(3)) % np.uint64(8)
        mantissa = np.where(shape == 0, np.uint64(0), np.where(shape == 1, np.uint64((1 << fraction) - 1), mantissa))
        mantissa = np.where(shape == 2, mantissa >> np.uint64(fraction // 2) << np.uint64(fraction // 2), mantissa)
        sign = mix64(drawn[k] ^ np.uint64(9)) >> np.uint64(63) << np.uint64(bits - 1)
        value = sign | field << np.uint64(fraction) | mantissa
        picked = specials[((index >> np.uint64(4 * k)) & np.uint64(15)).astype(np.int64)]
        out.append(np.where(index < np.uint64(cross), picked, value))
    return out


def digest(results: NDArray[np.uint64]) -> str:
    """The hash kept of a form's results."""
    return hashlib.sha256(results.astype("<u8").tobytes()).hexdigest()[:32]
