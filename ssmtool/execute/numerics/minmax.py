"""Float min, max, abs, neg, copysign and testp.

min and max: a NaN loses against a number, two NaN give NaN (f32 0x7fffffff, f64 the second made quiet, as the H200
answers), and -0 is less than +0. The .NaN and .xorsign forms are sm_80's. abs and neg of an f32 NaN give
0x7fffffff; of an f64 NaN they leave sign and payload alone and only make it quiet.
"""

from __future__ import annotations

from ssmtool.execute.numerics.lanes import (
    F32,
    F64,
    Builder,
    Value,
    absolute,
    as_real,
    bits_of,
    integer,
    is_nan,
    scalar_type,
)
from ssmtool.execute.numerics.special import NAN32, QUIET64, flush

TESTS = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def minimum(b: Builder, x: Value, y: Value, ftz: bool = False) -> Value:
    """The smaller operand."""
    return _extreme(b, x, y, ftz, "min")


def maximum(b: Builder, x: Value, y: Value, ftz: bool = False) -> Value:
    """The larger operand."""
    return _extreme(b, x, y, ftz, "max")


def _extreme(b: Builder, x: Value, y: Value, ftz: bool, which: str) -> Value:
    if ftz:
        x, y = flush(b, x), flush(b, y)
    lane = scalar_type(x)
    first = b.fcmp_ordered("<" if which == "min" else ">", x, y)
    result = b.select(first, x, y)
    # Equal operands differ at most in the sign of zero: or joins the signs for min, and keeps + for max.
    xb, yb = bits_of(b, x), bits_of(b, y)
    tie = as_real(b, b.or_(xb, yb) if which == "min" else b.and_(xb, yb), lane)
    result = b.select(b.fcmp_ordered("==", x, y), tie, result)
    result = b.select(is_nan(b, x), y, result)
    result = b.select(is_nan(b, y), x, result)
    nan = as_real(b, integer(xb, NAN32) if lane == F32 else b.or_(yb, integer(xb, QUIET64)), lane)
    return b.select(b.and_(is_nan(b, x), is_nan(b, y)), nan, result)


def abs_(b: Builder, x: Value, ftz: bool = False) -> Value:
    """The magnitude."""
    return _sign_operation(b, x, absolute(b, flush(b, x) if ftz else x))


def neg(b: Builder, x: Value, ftz: bool = False) -> Value:
    """The value with its sign turned."""
    return _sign_operation(b, x, b.fneg(flush(b, x) if ftz else x))


def _sign_operation(b: Builder, x: Value, result: Value) -> Value:
    if scalar_type(x) == F32:
        nan = as_real(b, integer(x, NAN32, 32), F32)
    else:
        raw = bits_of(b, x)
        nan = as_real(b, b.or_(raw, integer(raw, QUIET64)), F64)
    return b.select(is_nan(b, x), nan, result)


def copysign(b: Builder, x: Value, y: Value) -> Value:
    """PTX's order: the sign of x on the magnitude of y, bit for bit, NaN included."""
    xb, yb = bits_of(b, x), bits_of(b, y)
    sign = 1 << (31 if scalar_type(x) == F32 else 63)
    joined = b.or_(b.and_(xb, integer(xb, sign)), b.and_(yb, integer(yb, sign - 1)))
    return as_real(b, joined, scalar_type(x))


def testp(b: Builder, x: Value, test: str) -> Value:
    """i1 lanes of one of `TESTS`; the ISA counts zero as finite, number and normal."""
    raw = bits_of(b, x)
    fraction = 23 if scalar_type(x) == F32 else 52
    width = 32 if fraction == 23 else 64
    magnitude = b.and_(raw, integer(raw, (1 << (width - 1)) - 1))
    top = integer(raw, ((1 << (width - 1 - fraction)) - 1) << fraction)
    one = integer(raw, 1 << fraction)
    if test == "finite":
        return b.icmp_unsigned("<", magnitude, top)
    if test == "infinite":
        return b.icmp_unsigned("==", magnitude, top)
    if test == "number":
        return b.icmp_unsigned("<=", magnitude, top)
    if test == "notanumber":
        return b.icmp_unsigned(">", magnitude, top)
    if test == "normal":
        large = b.and_(b.icmp_unsigned("<", magnitude, top), b.icmp_unsigned(">=", magnitude, one))
        return b.or_(large, b.icmp_unsigned("==", magnitude, integer(raw, 0)))
    return b.and_(b.icmp_unsigned("<", magnitude, one), b.icmp_unsigned("!=", magnitude, integer(raw, 0)))
