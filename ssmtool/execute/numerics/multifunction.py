"""The GPU's multifunction unit: reciprocal, square roots, log, exponential, sine as table quadratics.

Each function works on f32 lanes and flushes subnormal operands and results, as the unit itself does; `approx` adds
what the compiler puts around it. Bit-equal to an NVIDIA H200 on every input measured (whole binades and a sweep of
all exponents); the structure and its tables are explained in tools/numerics/derive_tables.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssmtool.execute.numerics import table
from ssmtool.execute.numerics.data import unit_tables
from ssmtool.execute.numerics.lanes import (
    F32,
    I32,
    I64,
    Builder,
    Value,
    absolute,
    as_real,
    bits_of,
    clz,
    integer,
    is_nan,
    maximum,
    minimum,
    real,
    resize,
    shaped,
)
from ssmtool.execute.numerics.special import NAN32

INFINITY32 = 0x7F800000
SIGN32 = 1 << 31


@dataclass(frozen=True)
class Unit:
    """One table and its fixed-point shape; see derive_tables.Shape for the fields."""

    name: str
    rows: tuple[tuple[int, int, int], ...]
    bias: int
    index_bits: int
    c1_shift: int
    drop: int
    c1_sign: int
    c2_sign: int

    @property
    def low_bits(self) -> int:
        """Bits of xl."""
        return 23 - self.index_bits


RCP = Unit("rcp", unit_tables.RCP, unit_tables.RCP_BIAS, 7, 18, 17, -1, 1)
RSQRT = Unit("rsqrt", unit_tables.RSQRT, unit_tables.RSQRT_BIAS, 6, 17, 19, -1, 1)
SQRT = Unit("sqrt", unit_tables.SQRT, unit_tables.SQRT_BIAS, 6, 18, 19, 1, -1)
LG2 = Unit("lg2", unit_tables.LG2, unit_tables.LG2_BIAS, 6, 19, 19, 1, -1)
SIN = Unit("sin", unit_tables.SIN, unit_tables.SIN_BIAS, 6, 19, 19, 1, -1)


_XL_BITS = {19: 17, 17: 16}
"""Bits of xl by the number of dropped columns: the rows that reach column `drop` at all start there."""


def square(b: Builder, x: Value, drop: int) -> Value:
    """(x*x without the partial products in its lowest `drop` columns) >> drop, for i32 lanes of drop-2 or -1 bits.

    Rows below the middle keep only what reaches column `drop`, which is a plain shift of x; the rest is the square
    of the upper bits, whose one dropped partial product is the bit the shift throws away.
    """
    middle = (drop - 1) // 2
    high = b.lshr(x, integer(x, middle))
    total = b.lshr(b.mul(high, high), integer(x, 1))
    for i in range(drop - 1 - _XL_BITS[drop] + 1, middle):
        on = b.sub(integer(x, 0), b.and_(b.lshr(x, integer(x, i)), integer(x, 1)))
        total = b.add(total, b.and_(on, b.lshr(x, integer(x, drop - 1 - i))))
    return total


def quadratic(b: Builder, unit: Unit, index: Value, xl: Value) -> Value:
    """The unit's sum for table row `index` and low bits `xl` (i32 lanes), as i64 in units of 2^-weight."""
    starts = table.constant(b, f"unit.{unit.name}.c0", [(r[0] << 31) + unit.bias for r in unit.rows], 64)
    slopes = table.constant(b, f"unit.{unit.name}.c12", [r[1] | r[2] << 18 for r in unit.rows], 32)
    total = table.look_up(b, starts, index, 64)
    packed = table.look_up(b, slopes, index, 32)
    c1 = resize(b, b.and_(packed, integer(packed, (1 << 18) - 1)), 64)
    c2 = b.lshr(packed, integer(packed, 18))
    first = b.shl(b.mul(c1, resize(b, xl, 64)), integer(c1, unit.c1_shift))
    second = b.shl(resize(b, b.mul(c2, square(b, xl, unit.drop)), 64), integer(c1, unit.drop))
    total = b.add(total, first) if unit.c1_sign > 0 else b.sub(total, first)
    return b.add(total, second) if unit.c2_sign > 0 else b.sub(total, second)


def _by_fraction(b: Builder, unit: Unit, fraction: Value, half: Value | None = None) -> Value:
    """The sum for a 23-bit fraction; `half` (0 or 1) picks the second half of a table split by parity."""
    index = b.lshr(fraction, integer(fraction, unit.low_bits))
    if half is not None:
        index = b.add(index, b.shl(half, integer(half, unit.index_bits)))
    return quadratic(b, unit, index, b.and_(fraction, integer(fraction, (1 << unit.low_bits) - 1)))


def _fields(b: Builder, x: Value) -> tuple[Value, Value, Value, Value]:
    """(raw bits, sign bit in place, exponent field, fraction)."""
    raw = bits_of(b, x)
    field = b.and_(b.lshr(raw, integer(raw, 23)), integer(raw, 0xFF))
    return raw, b.and_(raw, integer(raw, SIGN32)), field, b.and_(raw, integer(raw, 0x7FFFFF))


def _equals(b: Builder, x: Value, number: int) -> Value:
    return b.icmp_unsigned("==", x, integer(x, number))


def _normal(b: Builder, field: Value, mantissa: Value) -> Value:
    """A float's bits from an exponent field (any i32: 0 and less flush to zero) and 23 fraction bits."""
    packed = b.or_(b.shl(field, integer(field, 23)), mantissa)
    return b.select(b.icmp_signed("<=", field, integer(field, 0)), integer(field, 0), packed)


def _fraction_bits(b: Builder, total: Value, shift: int) -> Value:
    return b.and_(resize(b, b.lshr(total, integer(total, shift)), 32), integer(total, 0x7FFFFF, 32))


def rcp(b: Builder, x: Value) -> Value:
    """1 / x within 1 ulp."""
    raw, sign, field, fraction = _fields(b, x)
    total = _by_fraction(b, RCP, fraction)
    whole = b.icmp_unsigned(">=", total, integer(total, 1 << 57))
    mantissa = b.select(whole, integer(raw, 0), _fraction_bits(b, total, 33))
    exponent = b.sub(integer(raw, 253), field)
    exponent = b.add(exponent, b.zext(whole, raw.type))
    out = _normal(b, exponent, mantissa)
    out = b.select(_equals(b, field, 0), integer(raw, INFINITY32), out)
    out = b.select(_equals(b, field, 255), integer(raw, 0), out)
    out = b.or_(out, sign)
    return as_real(b, b.select(is_nan(b, x), integer(raw, NAN32), out), F32)


def _root_fields(b: Builder, x: Value) -> tuple[Value, Value, Value, Value, Value]:
    raw, _, field, fraction = _fields(b, x)
    odd = b.and_(b.xor(field, integer(raw, 1)), integer(raw, 1))
    half = b.ashr(b.sub(b.sub(field, integer(raw, 127)), odd), integer(raw, 1))
    return raw, field, fraction, odd, half


def _root_specials(b: Builder, out: Value, x: Value, at_zero: int, at_infinity: int) -> Value:
    """Zeros and subnormals keep their sign; other negatives and NaN give NaN."""
    raw, sign, field, _ = _fields(b, x)
    out = b.select(_equals(b, raw, INFINITY32), integer(raw, at_infinity), out)
    invalid = b.or_(_equals(b, sign, SIGN32), is_nan(b, x))
    out = b.select(invalid, integer(raw, NAN32), out)
    out = b.select(_equals(b, field, 0), b.or_(sign, integer(raw, at_zero)), out)
    return as_real(b, out, F32)


def rsqrt(b: Builder, x: Value) -> Value:
    """1 / sqrt(x) within 2 ulp; exact at even powers of two, which the unit answers apart."""
    raw, _, fraction, odd, half = _root_fields(b, x)
    mantissa = _fraction_bits(b, _by_fraction(b, RSQRT, fraction, odd), 33)
    out = b.or_(b.shl(b.sub(integer(raw, 126), half), integer(raw, 23)), mantissa)
    exact = _equals(b, b.or_(odd, fraction), 0)
    out = b.select(exact, b.shl(b.sub(integer(raw, 127), half), integer(raw, 23)), out)
    return _root_specials(b, out, x, INFINITY32, 0)


def sqrt(b: Builder, x: Value) -> Value:
    """The square root within 1 ulp."""
    raw, _, fraction, odd, half = _root_fields(b, x)
    mantissa = _fraction_bits(b, _by_fraction(b, SQRT, fraction, odd), 35)
    out = b.or_(b.shl(b.add(integer(raw, 127), half), integer(raw, 23)), mantissa)
    return _root_specials(b, out, x, 0, INFINITY32)


def _from_fixed(b: Builder, value: Value, weight: int) -> Value:
    """i32 bits of the float value * 2^-weight (value >= 0, i64 lanes), truncated."""
    lead = minimum(b, clz(b, value), integer(value, 63), False)
    mantissa = b.lshr(b.shl(value, lead), integer(value, 40))
    exponent = b.sub(integer(value, 63 - weight + 127), lead)
    packed = b.or_(b.shl(exponent, integer(value, 23)), b.and_(mantissa, integer(value, 0x7FFFFF)))
    packed = b.select(_equals(b, value, 0), integer(value, 0), packed)
    return resize(b, packed, 32)


def lg2(b: Builder, x: Value) -> Value:
    """The binary logarithm within 2^-22; its sum is cut to 36 fraction bits and negative ones are complemented."""
    raw, sign, field, fraction = _fields(b, x)
    total = _by_fraction(b, LG2, fraction)
    total = b.lshr(total, integer(total, 21))
    whole = resize(b, b.sub(field, integer(raw, 127)), 64, True)
    total = b.add(total, b.shl(whole, integer(whole, 36)))
    negative = b.icmp_signed("<", total, integer(total, 0))
    out = _from_fixed(b, b.xor(total, b.ashr(total, integer(total, 63))), 36)
    out = b.or_(out, b.select(negative, integer(raw, SIGN32), integer(raw, 0)))
    out = b.select(_equals(b, raw, 0x3F800000), integer(raw, 0), out)
    out = b.select(_equals(b, field, 255), integer(raw, INFINITY32), out)
    out = b.select(b.or_(_equals(b, sign, SIGN32), is_nan(b, x)), integer(raw, NAN32), out)
    out = b.select(_equals(b, field, 0), integer(raw, INFINITY32 | SIGN32), out)
    return as_real(b, out, F32)


_EX2_BASE = 11 << 11
"""Taken off every c1 of ex2 so that c1 * xl fits in 32 bits; put back as 11 * xl, eleven bits up."""


def ex2(b: Builder, x: Value) -> Value:
    """2^x. All in 32-bit lanes, for this one is in the kernels' inner loops.

    The fraction is |x| in fixed point with 23 bits, truncated; for a negative x with a fraction it is complemented.
    """
    starts = table.constant(b, "unit.ex2.c0", [2 * r[0] for r in unit_tables.EX2], 32)
    slopes = table.constant(b, "unit.ex2.c12", [r[1] - _EX2_BASE | r[2] << 15 for r in unit_tables.EX2], 32)
    size = absolute(b, x)
    limit = real(x, 255.0)
    size = b.select(b.fcmp_ordered("<", size, limit), size, limit)
    raw = bits_of(b, x)
    fixed = b.fptosi(b.fmul(size, real(x, 2.0**23)), shaped(x, I32))
    some = b.icmp_unsigned("!=", b.and_(fixed, integer(raw, 0x7FFFFF)), integer(raw, 0))
    turned = b.sub(integer(raw, 0), b.add(fixed, b.zext(some, raw.type)))
    fixed = b.select(b.icmp_signed("<", raw, integer(raw, 0)), turned, fixed)
    exponent = b.add(b.ashr(fixed, integer(raw, 23)), integer(raw, 127))
    index = b.and_(b.lshr(fixed, integer(raw, 17)), integer(raw, 63))
    xl = b.and_(fixed, integer(raw, (1 << 17) - 1))
    packed = table.look_up(b, slopes, index, 32)
    low = b.mul(b.and_(packed, integer(raw, 0x7FFF)), xl)
    low = b.add(low, b.mul(b.lshr(packed, integer(raw, 15)), square(b, xl, 19)))
    low = b.add(low, integer(raw, unit_tables.EX2_BIAS >> 19))
    total = b.add(table.look_up(b, starts, index, 32), b.mul(xl, integer(raw, 11)))
    total = b.add(total, b.lshr(low, integer(raw, 11)))
    mantissa = b.and_(b.lshr(total, integer(raw, 4)), integer(raw, 0x7FFFFF))
    out = _normal(b, exponent, mantissa)
    out = b.select(b.icmp_signed(">=", exponent, integer(raw, 255)), integer(raw, INFINITY32), out)
    return as_real(b, b.select(is_nan(b, x), integer(raw, NAN32), out), F32)


def sine(b: Builder, turn: Value, cosine: bool) -> Value:
    """The sine or cosine of 2 pi * turn: a quarter wave, run backwards in odd quadrants; huge arguments give sin 0."""
    raw, sign, field, fraction = _fields(b, turn)
    shift = b.sub(field, integer(raw, 125))
    mantissa = b.or_(fraction, integer(raw, 1 << 23))
    zero, most = integer(raw, 0), integer(raw, 31)
    up = b.shl(mantissa, minimum(b, maximum(b, shift, zero, True), most, True))
    down = b.lshr(mantissa, minimum(b, maximum(b, b.sub(zero, shift), zero, True), most, True))
    fixed = b.select(b.icmp_signed(">=", shift, zero), up, down)
    quadrant = b.lshr(fixed, integer(raw, 23))
    if cosine:
        quadrant = b.add(quadrant, integer(raw, 1))
    backwards = b.sub(zero, b.and_(quadrant, integer(raw, 1)))
    part = b.and_(b.xor(fixed, backwards), integer(raw, 0x7FFFFF))
    out = _from_fixed(b, _by_fraction(b, SIN, part), 57)
    turned = b.shl(b.and_(quadrant, integer(raw, 2)), integer(raw, 30))
    out = b.or_(out, turned if cosine else b.xor(turned, sign))
    return as_real(b, b.select(_equals(b, field, 255), integer(raw, NAN32), out), F32)


def high_word(b: Builder, x: Value, root: bool) -> Value:
    """The f64 form of rcp and rsqrt: from the upper 32 bits of x, the upper 32 bits of the result (i64 lanes).

    The same tables at 20 fraction bits. A NaN whose payload lies in the low word alone is taken for an infinity.
    """
    high = resize(b, b.lshr(bits_of(b, x), integer(x, 32, 64)), 32)
    sign = b.and_(high, integer(high, SIGN32))
    field = b.and_(b.lshr(high, integer(high, 20)), integer(high, 0x7FF))
    fraction = b.shl(b.and_(high, integer(high, 0xFFFFF)), integer(high, 3))
    if root:
        odd = b.and_(b.xor(field, integer(high, 1)), integer(high, 1))
        half = b.ashr(b.sub(b.sub(field, integer(high, 1023)), odd), integer(high, 1))
        mantissa = _fraction_bits(b, _by_fraction(b, RSQRT, fraction, odd), 33)
        exact = _equals(b, b.or_(odd, fraction), 0)
        mantissa = b.select(exact, integer(high, 0), mantissa)
        exponent = b.add(b.sub(integer(high, 1022), half), b.zext(exact, high.type))
    else:
        total = _by_fraction(b, RCP, fraction)
        whole = b.icmp_unsigned(">=", total, integer(total, 1 << 57))
        mantissa = b.select(whole, integer(high, 0), _fraction_bits(b, total, 33))
        exponent = b.add(b.sub(integer(high, 2045), field), b.zext(whole, high.type))
    packed = b.or_(b.shl(exponent, integer(high, 20)), b.lshr(mantissa, integer(high, 3)))
    out = b.select(b.icmp_signed("<=", exponent, integer(high, 0)), integer(high, 0), packed)
    nan = b.and_(_equals(b, field, 0x7FF), b.icmp_unsigned("!=", fraction, integer(high, 0)))
    out = b.select(_equals(b, field, 0x7FF), integer(high, 0), out)
    if root:
        nan = b.or_(nan, _equals(b, sign, SIGN32))
        out = b.select(nan, integer(high, NAN32), out)
        out = b.select(_equals(b, field, 0), b.or_(sign, integer(high, 0x7FF << 20)), out)
    else:
        out = b.select(_equals(b, field, 0), integer(high, 0x7FF << 20), out)
        out = b.select(nan, integer(high, NAN32), b.or_(out, sign))
    return b.shl(b.zext(out, shaped(x, I64)), integer(x, 32, 64))
