"""The .approx and .full instructions, as the driver's compiler builds them around the multifunction unit.

Without `.ftz` the compiler scales subnormal (and for rcp huge) operands by a power of two, and ex2 squares 2^(x/2)
below -126. div.approx multiplies by the reciprocal; div.full scales so that huge divisors work too. sin and cos
first multiply by 1 / 2 pi, rounding toward zero. All of it is bit-equal to the H200's answers; on a K80, which has a
separate range reduction for sin and cos and no square-root unit, only measurement can tell.
"""

from __future__ import annotations

from ssmtool.execute.numerics import ieee, multifunction
from ssmtool.execute.numerics.lanes import (
    F64,
    Builder,
    Value,
    as_real,
    bits_of,
    integer,
    is_nan,
    real,
    same,
)
from ssmtool.execute.numerics.special import INVALID64, QUIET64

UNITS = ("rcp", "rsqrt", "sqrt", "lg2", "ex2", "sin", "cos")
TURN = 0.15915493667125701904
"""1 / 2 pi as the float the compiler multiplies by (bits 0x3e22f983)."""


def approx(b: Builder, op: str, x: Value, ftz: bool = False) -> Value:
    """`op`.approx[.ftz].f32 for an op of `UNITS`."""
    if op in ("sin", "cos"):
        turn = ieee.mul(b, x, real(x, TURN), "rz", ftz)
        return multifunction.sine(b, turn, op == "cos")
    unit = getattr(multifunction, op)
    if ftz:
        return unit(b, x)
    if op == "ex2":
        low = b.fcmp_ordered("<", x, real(x, -126.0))
        result = unit(b, b.select(low, b.fmul(x, real(x, 0.5)), x))
        return b.select(low, b.fmul(result, result), result)
    small, huge = _field_is(b, x, 0, 0), _field_is(b, x, 253, 255)
    one = real(x, 1.0)
    scale = b.select(small, real(x, 2.0**24), one)
    if op == "rcp":
        scale = b.select(huge, real(x, 0.25), scale)
        return _multiply(b, unit(b, b.fmul(x, scale)), scale)
    result = unit(b, b.fmul(x, scale))
    if op == "lg2":
        return ieee.sub(b, result, b.select(small, real(x, 24.0), real(x, 0.0)))
    return _multiply(b, result, b.select(small, real(x, 2.0**12 if op == "rsqrt" else 2.0**-12), one))


def div(b: Builder, x: Value, y: Value, ftz: bool = False, full: bool = False) -> Value:
    """div.approx or div.full, f32. With div.approx a divisor over 2^126 gives 0 (NaN for an infinite dividend)."""
    one = real(y, 1.0)
    scale = one if ftz else b.select(_field_is(b, y, 0, 0), real(y, 2.0**24), one)
    if full:
        scale = b.select(_field_is(b, y, 253, 255), real(y, 0.25), scale)
    if scale is not one:
        x, y = ieee.mul(b, x, scale, ftz=ftz), ieee.mul(b, y, scale, ftz=ftz)
    return ieee.mul(b, x, multifunction.rcp(b, y), ftz=ftz)


def _field_is(b: Builder, x: Value, first: int, last: int) -> Value:
    """True where the f32 exponent field lies in first..last."""
    raw = bits_of(b, x)
    field = b.and_(b.lshr(raw, integer(raw, 23)), integer(raw, 0xFF))
    moved = b.sub(field, integer(raw, first))
    return b.icmp_unsigned("<=", moved, integer(raw, last - first))


def _multiply(b: Builder, x: Value, y: Value) -> Value:
    return ieee.mul(b, x, y)


def rcp_f64(b: Builder, x: Value) -> Value:
    """rcp.approx.ftz.f64: 20 good bits, low word zero."""
    return as_real(b, multifunction.high_word(b, x, root=False), F64)


def rsqrt_f64(b: Builder, x: Value, ftz: bool = False) -> Value:
    """rsqrt.approx.f64: with ftz the unit's 20 bits; without, one refinement of third order.

    Of 131072 results on [1, 4) 39 are an ulp off the correctly rounded one, here as on the card.
    """
    if ftz:
        return as_real(b, multifunction.high_word(b, x, root=True), F64)
    raw = bits_of(b, x)
    magnitude = b.and_(raw, integer(raw, (1 << 63) - 1))
    small = b.icmp_unsigned("<", magnitude, integer(raw, 1 << 52))
    scaled = b.select(small, b.fmul(x, real(x, 2.0**54)), x)
    seed = as_real(b, multifunction.high_word(b, scaled, root=True), F64)
    error = same(b, "fma", scaled, b.fneg(b.fmul(seed, seed)), real(x, 1.0))
    factor = same(b, "fma", error, real(x, 0.375), real(x, 0.5))
    result = same(b, "fma", factor, b.fmul(error, seed), seed)
    result = b.select(small, b.fmul(result, real(x, 2.0**27)), result)
    top = integer(raw, 0x7FF << 52)
    special = b.or_(b.icmp_unsigned("==", magnitude, integer(raw, 0)), b.icmp_unsigned("==", raw, top))
    ends = b.select(b.icmp_unsigned("==", raw, top), integer(raw, 0), b.or_(raw, top))
    result = b.select(special, as_real(b, ends, F64), result)
    negative = b.fcmp_ordered("<", x, real(x, 0.0))
    result = b.select(negative, as_real(b, integer(raw, INVALID64), F64), result)
    return b.select(is_nan(b, x), as_real(b, b.or_(raw, integer(raw, QUIET64)), F64), result)
