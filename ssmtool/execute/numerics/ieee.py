"""add, sub, mul, fma, div, rcp, sqrt for f32 and f64 in the four roundings, exact, without touching the FPU's mode.

`rn` is the processor's own operation (llvm.fma is a true fused one: the instruction where there is one, libm
otherwise). The directed roundings start from a nearby result and the sign of (exact - result):

- f32: the product of two f32 is exact in f64 and TwoSum gives the error of adding a third, so the sign is known
  exactly, subnormals and overflow included. A quotient's or root's residual a - f*b is exact in f64 as well.
- f64: operands are scaled to [1, 2) so that no error term can underflow, an error-free transform gives the rounded
  value and the sign of the rest, and `_pack64` rounds that pair once, at the final (perhaps subnormal) position.

Overflow in a directed mode gives the largest finite number where the mode points inward. An exact zero sum of
opposite signs is -0 under rm, +0 otherwise. Not for use under any fast-math flag.
"""

from __future__ import annotations

import math

from ssmtool.execute.numerics.lanes import (
    F32,
    F64,
    I64,
    Builder,
    Value,
    absolute,
    as_real,
    bits_of,
    clz,
    integer,
    maximum,
    minimum,
    real,
    same,
    scalar_type,
    shaped,
)
from ssmtool.execute.numerics.special import INVALID64, finish, flush, is_finite, nudge

ROUNDINGS = ("rn", "rz", "rm", "rp")


def add(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """The sum x + y, f32 or f64; `ftz` and `sat` are f32 only."""
    x, y = _inputs(b, ftz, x, y)
    result = b.fadd(x, y) if rounding == "rn" else _directed_sum(b, x, y, rounding)
    return finish(b, result, (y, x), ftz, sat)


def sub(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """The difference x - y. A NaN y keeps its own sign (it is not negated first)."""
    x, y = _inputs(b, ftz, x, y)
    if rounding == "rn":
        return finish(b, b.fsub(x, y), (y, x), ftz, sat)
    return finish(b, _directed_sum(b, x, b.fneg(y), rounding), (y, x), ftz, sat)


def mul(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """The product x * y."""
    x, y = _inputs(b, ftz, x, y)
    if rounding == "rn":
        result = b.fmul(x, y)
    elif scalar_type(x) == F32:
        product = b.fmul(_wide(b, x), _wide(b, y))
        result = _round32(b, product, real(product, 0.0), rounding)
    else:
        result = _mul64(b, x, y, rounding)
    if ftz:
        result = _flush_tiny(b, result, mul(b, _raised(b, x), y, rounding))
    return finish(b, result, (y, x), ftz, sat)


def fma(b: Builder, x: Value, y: Value, z: Value, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Value:
    """The sum x * y + z with one rounding."""
    x, y, z = _inputs(b, ftz, x, y, z)
    if rounding == "rn":
        result = same(b, "fma", x, y, z)
    elif scalar_type(x) == F32:
        product = b.fmul(_wide(b, x), _wide(b, y))
        result = _round32_sum(b, product, _wide(b, z), rounding)
    else:
        result = _fma64(b, x, y, z, rounding)
    if ftz:
        result = _flush_tiny(b, result, fma(b, _raised(b, x), y, _raised(b, z), rounding))
    return finish(b, result, (y, z, x), ftz, sat)


def div(b: Builder, x: Value, y: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """The quotient x / y."""
    x, y = _inputs(b, ftz, x, y)
    quotient = b.fdiv(x, y)
    if rounding == "rn":
        result = quotient
    elif scalar_type(x) == F32:
        wide_y = _wide(b, y)
        rest = b.fsub(_wide(b, x), b.fmul(_wide(b, quotient), wide_y))
        zero = real(rest, 0.0)
        flip = b.fcmp_ordered("<", wide_y, zero)
        rest = b.select(flip, b.fneg(rest), rest)
        result = _directed(b, quotient, b.fcmp_ordered(">", rest, zero), b.fcmp_ordered("<", rest, zero), rounding)
    else:
        result = _div64(b, x, y, quotient, rounding)
    if ftz:
        result = _flush_tiny(b, result, div(b, _raised(b, x), y, rounding))
    # a division's compiled code prefers the dividend's NaN
    return finish(b, result, (x, y), ftz)


def rcp(b: Builder, x: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """1 / x."""
    return div(b, real(x, 1.0), x, rounding, ftz)


def sqrt(b: Builder, x: Value, rounding: str = "rn", ftz: bool = False) -> Value:
    """The square root; -0 gives -0, other negatives NaN."""
    (x,) = _inputs(b, ftz, x)
    root = same(b, "sqrt", x)
    if rounding == "rn":
        result = root
    elif scalar_type(x) == F32:
        wide_root = _wide(b, root)
        rest = b.fsub(_wide(b, x), b.fmul(wide_root, wide_root))
        zero = real(rest, 0.0)
        result = _directed(b, root, b.fcmp_ordered(">", rest, zero), b.fcmp_ordered("<", rest, zero), rounding)
    else:
        result = _sqrt64(b, x, root, rounding)
    # LLVM 22 lets a NaN test of its own sqrt see only NaN operands, so negative ones are sent to NaN by hand.
    negative = b.fcmp_ordered("<", x, real(x, 0.0))
    result = b.select(negative, real(x, math.nan), result)
    if scalar_type(x) == F64:
        return b.select(negative, as_real(b, integer(x, INVALID64, 64), F64), finish(b, result, (x,)))
    return finish(b, result, (x,), ftz)


def narrow(b: Builder, value: Value, rounding: str) -> Value:
    """f64 to f32 in the given rounding (no NaN rule, no flush: cvt adds those)."""
    if rounding == "rn":
        return b.fptrunc(value, shaped(value, F32))
    return _round32(b, value, real(value, 0.0), rounding)


def _inputs(b: Builder, ftz: bool, *values: Value) -> tuple[Value, ...]:
    return tuple(flush(b, v) if ftz else v for v in values)


def _raised(b: Builder, value: Value) -> Value:
    return b.fmul(value, real(value, 2.0**64))


def _flush_tiny(b: Builder, result: Value, raised: Value) -> Value:
    """`.ftz` also flushes what rounds up to 2^-126 only because subnormals are coarser: 2^-126 - 2^-150 becomes 0.

    `raised` is the same operation on operands 2^64 times as large, rounded to 24 bits without that coarseness. Where
    raising overflows, the result cannot be inexact down there.
    """
    tiny = b.fcmp_ordered("<", absolute(b, raised), real(raised, 2.0**-62))
    return b.select(tiny, b.fmul(result, real(result, 0.0)), result)


def _wide(b: Builder, value: Value) -> Value:
    return b.fpext(value, shaped(value, F64))


def _is_zero(b: Builder, value: Value) -> Value:
    return b.fcmp_ordered("==", value, real(value, 0.0))


def _directed_sum(b: Builder, x: Value, y: Value, rounding: str) -> Value:
    if scalar_type(x) == F32:
        return _round32_sum(b, _wide(b, x), _wide(b, y), rounding)
    return _fma64(b, x, real(x, 1.0), y, rounding)


def _exact_zero_sign(b: Builder, total: Value, x_bits: Value, y_bits: Value, rounding: str) -> Value:
    """Under rm a zero `total` whose terms have different signs is -0; every other total is left alone."""
    if rounding != "rm":
        return total
    differ = b.icmp_signed("<", b.xor(x_bits, y_bits), integer(x_bits, 0))
    return b.select(b.and_(_is_zero(b, total), differ), b.fneg(real(total, 0.0)), total)


def _round32_sum(b: Builder, x: Value, y: Value, rounding: str) -> Value:
    """The sum x + y, exact f64 terms from f32 operands, rounded to f32: no such sum over- or underflows in f64."""
    high, low = _two_sum(b, x, y)
    high = _exact_zero_sign(b, high, bits_of(b, x), bits_of(b, y), rounding)
    return _round32(b, high, low, rounding)


def _two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """(s, e) with s = fl(x + y) and s + e = x + y exactly (Knuth's six operations; no overflow assumed)."""
    s = b.fadd(x, y)
    back = b.fsub(s, x)
    e = b.fadd(b.fsub(x, b.fsub(s, back)), b.fsub(y, back))
    return s, e


def _directed(b: Builder, nearby: Value, below: Value, above: Value, rounding: str) -> Value:
    """Correct `nearby` (within one ulp): `below` / `above` say that it is below / above the exact value.

    Its sign must be that of the exact value; an infinity it overflowed to counts as beyond.
    """
    raw = bits_of(b, nearby)
    negative = b.icmp_signed("<", raw, integer(raw, 0))
    no = b.and_(below, b.not_(below))
    short = b.select(negative, above, below)
    long = b.select(negative, below, above)
    if rounding == "rz":
        return nudge(b, nearby, no, long)
    outward = negative if rounding == "rm" else b.not_(negative)
    return nudge(b, nearby, b.and_(outward, short), b.and_(b.not_(outward), long))


def _round32(b: Builder, high: Value, low: Value, rounding: str) -> Value:
    """The exact f64 sum high + low (|low| at most half an ulp of high, or NaN for none) rounded to f32."""
    nearby = b.fptrunc(high, shaped(high, F32))
    back = _wide(b, nearby)
    equal = b.fcmp_ordered("==", back, high)
    zero = real(low, 0.0)
    below = b.or_(b.fcmp_ordered("<", back, high), b.and_(equal, b.fcmp_ordered(">", low, zero)))
    above = b.or_(b.fcmp_ordered(">", back, high), b.and_(equal, b.fcmp_ordered("<", low, zero)))
    return _directed(b, nearby, below, above, rounding)


def _scaled64(b: Builder, value: Value) -> tuple[Value, Value]:
    """(m, e): |m| in [1, 2) with the sign of value, value = m * 2^e; for finite nonzero values."""
    raw = bits_of(b, value)
    magnitude = b.and_(raw, integer(raw, (1 << 63) - 1))
    shift = maximum(b, b.sub(clz(b, magnitude), integer(raw, 11)), integer(raw, 0), True)
    subnormal = b.icmp_unsigned("<", magnitude, integer(raw, 1 << 52))
    shift = b.select(subnormal, shift, integer(raw, 0))
    fraction = b.and_(b.shl(magnitude, minimum(b, shift, integer(raw, 63), False)), integer(raw, (1 << 52) - 1))
    field = b.lshr(magnitude, integer(raw, 52))
    field = b.select(subnormal, b.sub(integer(raw, 1), shift), field)
    sign = b.and_(raw, integer(raw, 1 << 63))
    m = b.or_(b.or_(sign, integer(raw, 1023 << 52)), fraction)
    return as_real(b, m, F64), b.sub(field, integer(raw, 1023))


def _times_power(b: Builder, value: Value, exponent: Value) -> Value:
    """Scale by 2^exponent, by arithmetic, for exponents in [-1000, 1000] and results in the normal range."""
    power = b.shl(b.add(exponent, integer(exponent, 1023)), integer(exponent, 52))
    return b.fmul(value, as_real(b, power, F64))


def _sign_of(b: Builder, value: Value) -> Value:
    """-1, 0 or 1 as i64 (0 for NaN)."""
    zero = real(value, 0.0)
    i64 = shaped(value, I64)
    return b.sub(b.zext(b.fcmp_ordered(">", value, zero), i64), b.zext(b.fcmp_ordered("<", value, zero), i64))


def _pack64(b: Builder, high: Value, rest: Value, exponent: Value, rounding: str) -> Value:
    """Round (high + a tiny amount of sign `rest`) * 2^exponent once. high is normal; rest is -1, 0, 1 as i64."""
    raw = bits_of(b, high)
    negative = b.icmp_signed("<", raw, integer(raw, 0))
    magnitude = b.and_(raw, integer(raw, (1 << 63) - 1))
    rest = b.select(negative, b.sub(integer(raw, 0), rest), rest)
    # Just below a power of two the grid is twice as fine: write the value with one bit more.
    fraction = b.and_(magnitude, integer(raw, (1 << 52) - 1))
    edge = b.and_(b.icmp_unsigned("==", fraction, integer(raw, 0)), b.icmp_signed("<", rest, integer(raw, 0)))
    mantissa = b.or_(fraction, integer(raw, 1 << 52))
    mantissa = b.select(edge, integer(raw, 1 << 53), mantissa)
    field = b.lshr(magnitude, integer(raw, 52))
    last = b.sub(b.add(field, exponent), integer(raw, 1023 + 52))
    last = b.sub(last, b.zext(edge, raw.type))
    extended = b.add(b.shl(mantissa, integer(raw, 2)), rest)
    place = maximum(b, last, integer(raw, -1074), True)
    drop = minimum(b, b.add(b.sub(place, last), integer(raw, 2)), integer(raw, 63), True)
    kept = b.lshr(extended, drop)
    inexact = b.icmp_unsigned("!=", b.shl(kept, drop), extended)
    if rounding == "rz":
        outward = b.and_(inexact, b.not_(inexact))
    else:
        outward = b.and_(inexact, negative if rounding == "rm" else b.not_(negative))
    kept = b.add(kept, b.zext(outward, raw.type))
    place = minimum(b, place, integer(raw, 2046 - 1074), True)
    packed = b.add(kept, b.shl(b.add(place, integer(raw, 1074)), integer(raw, 52)))
    top = 0x7FF << 52
    over = b.icmp_unsigned(">=", packed, integer(raw, top))
    if rounding == "rz":
        limit = integer(raw, top - 1)
    else:
        out = negative if rounding == "rm" else b.not_(negative)
        limit = b.select(out, integer(raw, top), integer(raw, top - 1))
    packed = b.select(over, limit, packed)
    return as_real(b, b.or_(packed, b.and_(raw, integer(raw, 1 << 63))), F64)


def _ordinary(b: Builder, *values: Value) -> Value:
    """True where every value is finite and not zero."""
    result = None
    for v in values:
        good = b.and_(is_finite(b, v), b.not_(_is_zero(b, v)))
        result = good if result is None else b.and_(result, good)
    return result


def _mul64(b: Builder, x: Value, y: Value, rounding: str) -> Value:
    (mx, ex), (my, ey) = _scaled64(b, x), _scaled64(b, y)
    high = b.fmul(mx, my)
    rest = same(b, "fma", mx, my, b.fneg(high))
    packed = _pack64(b, high, _sign_of(b, rest), b.add(ex, ey), rounding)
    return b.select(_ordinary(b, x, y), packed, b.fmul(x, y))


def _div64(b: Builder, x: Value, y: Value, quotient: Value, rounding: str) -> Value:
    (mx, ex), (my, ey) = _scaled64(b, x), _scaled64(b, y)
    high = b.fdiv(mx, my)
    rest = same(b, "fma", b.fneg(high), my, mx)
    rest = b.select(b.fcmp_ordered("<", my, real(my, 0.0)), b.fneg(rest), rest)
    packed = _pack64(b, high, _sign_of(b, rest), b.sub(ex, ey), rounding)
    return b.select(_ordinary(b, x, y), packed, quotient)


def _sqrt64(b: Builder, x: Value, root: Value, rounding: str) -> Value:
    m, e = _scaled64(b, x)
    odd = b.and_(e, integer(e, 1))
    m = _times_power(b, m, odd)
    half = b.ashr(b.sub(e, odd), integer(e, 1))
    high = same(b, "sqrt", m)
    rest = same(b, "fma", b.fneg(high), high, m)
    packed = _pack64(b, high, _sign_of(b, rest), half, rounding)
    positive = b.fcmp_ordered(">", x, real(x, 0.0))
    return b.select(b.and_(_ordinary(b, x), positive), packed, root)


def _fma64(b: Builder, x: Value, y: Value, z: Value, rounding: str) -> Value:
    """Directed f64 fma. Where product and addend lie over 2^200 apart only the smaller one's sign matters."""
    (mx, ex), (my, ey), (mz, ez) = _scaled64(b, x), _scaled64(b, y), _scaled64(b, z)
    exponent = b.add(ex, ey)
    no_addend = _is_zero(b, z)
    gap = b.select(no_addend, integer(ez, 0), b.sub(ez, exponent))
    gap = maximum(b, minimum(b, gap, integer(gap, 200), True), integer(gap, -200), True)
    # With the addend far above, the result's place is the addend's: move the frame, keep the clamped gap.
    exponent = b.select(b.icmp_signed("==", gap, integer(gap, 200)), b.sub(ez, integer(gap, 200)), exponent)
    addend = _times_power(b, mz, gap)
    addend = b.select(no_addend, real(z, 0.0), addend)
    product = b.fmul(mx, my)
    error = same(b, "fma", mx, my, b.fneg(product))
    s1, t1 = _two_sum(b, product, addend)
    t2, u = _two_sum(b, t1, error)
    s, t = _two_sum(b, s1, t2)
    first, second = _sign_of(b, t), _sign_of(b, u)
    rest = b.select(b.icmp_signed("==", first, integer(first, 0)), second, first)
    packed = _pack64(b, s, rest, exponent, rounding)
    native = same(b, "fma", x, y, z)
    native = _exact_zero_sign(b, native, b.xor(bits_of(b, x), bits_of(b, y)), bits_of(b, z), rounding)
    ordinary = b.and_(_ordinary(b, x, y), is_finite(b, z))
    return b.select(b.and_(ordinary, b.not_(_is_zero(b, s))), packed, native)
