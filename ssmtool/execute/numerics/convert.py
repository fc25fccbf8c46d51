"""cvt between every integer width, f16, f32 and f64.

An f16 value is carried as its 16 bits (i16): f16 arithmetic is not in sm_37, only conversions are. Integers come and
go at their own width (i8..i64); a wider register's upper bits are the caller's to cut off and to extend.

Where PTX leaves a result open, or silicon differs from its text, the H200's answer is taken: a NaN becomes 0 in an
integer of 32 bits or fewer when the source is f16 or f32, else (f64 source or 64-bit result) the integer with only
its top bit set; cvt.f32.f32 without a rounding is a move that keeps even a signalling NaN; cvt.ftz.f16.f32 does not
flush its input, which only rm and rp can show (the ISA's text has it flushed).
"""

from __future__ import annotations

from ssmtool.execute.numerics import ieee
from ssmtool.execute.numerics.lanes import (
    F32,
    F64,
    I16,
    I32,
    I64,
    Builder,
    Value,
    as_real,
    bits_of,
    clz,
    integer,
    is_nan,
    maximum,
    minimum,
    real,
    resize,
    same,
    scalar_type,
    shaped,
)
from ssmtool.execute.numerics.special import NAN32, QUIET64, flush, saturate

LANE = {"f32": F32, "f64": F64}
INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def cvt(
    b: Builder, value: Value, dst: str, src: str, rounding: str | None = None, ftz: bool = False, sat: bool = False
) -> Value:
    """Convert `value` (of kind `src`) to kind `dst`.

    `rounding` is rni/rzi/rmi/rpi for float to integer or same-size float, rn/rz/rm/rp where precision is lost.
    """
    if dst[0] != "f" and src[0] != "f":
        return _integer_to_integer(b, value, dst, src, sat)
    if src[0] != "f":
        return _integer_to_float(b, value, dst, src[0] == "s", rounding or "rn", sat)
    if dst[0] != "f":
        return _float_to_integer(b, value, dst, src, rounding or "rzi", ftz)
    if dst == src:
        return _same_size(b, value, dst, rounding, ftz, sat)
    return _float_to_float(b, value, dst, src, rounding or "rn", ftz, sat)


def f16_to_f32(b: Builder, value: Value) -> Value:
    """Exact; NaN becomes 0x7fffffff. Integer arithmetic and one exact multiplication, so no F16C is needed."""
    raw = resize(b, value, 32)
    magnitude = b.and_(raw, integer(raw, 0x7FFF))
    scaled = as_real(b, b.shl(magnitude, integer(raw, 13)), F32)
    scaled = b.fmul(scaled, real(scaled, 2.0**112))
    out = bits_of(b, scaled)
    infinite = b.icmp_unsigned(">=", magnitude, integer(raw, 0x7C00))
    out = b.select(infinite, integer(raw, 0x7F800000), out)
    out = b.or_(out, b.shl(b.and_(raw, integer(raw, 0x8000)), integer(raw, 16)))
    not_a_number = b.icmp_unsigned(">", magnitude, integer(raw, 0x7C00))
    return as_real(b, b.select(not_a_number, integer(raw, NAN32), out), F32)


def _f16_to_f64(b: Builder, value: Value) -> Value:
    """Exact; a NaN keeps its sign and payload and becomes quiet."""
    wide = b.fpext(f16_to_f32(b, value), shaped(value, F64))
    raw = resize(b, value, 64)
    payload = b.or_(
        b.or_(integer(raw, 0x7FF8 << 48), b.shl(b.and_(raw, integer(raw, 0x8000)), integer(raw, 48))),
        b.shl(b.and_(raw, integer(raw, 0x3FF)), integer(raw, 42)),
    )
    return b.select(is_nan(b, wide), as_real(b, payload, F64), wide)


def round_bits(b: Builder, kept: Value, dropped: Value, half: Value, negative: Value, rounding: str) -> Value:
    """1 where the kept integer must grow: `dropped` is what lies below it, `half` the value of half a unit."""
    zero = integer(kept, 0)
    some = b.icmp_unsigned("!=", dropped, zero)
    if rounding == "rn":
        odd = b.icmp_unsigned("!=", b.and_(kept, integer(kept, 1)), zero)
        up = b.or_(b.icmp_unsigned(">", dropped, half), b.and_(b.icmp_unsigned("==", dropped, half), odd))
        up = b.and_(up, some)
    elif rounding == "rz":
        up = b.and_(some, b.not_(some))
    else:
        up = b.and_(some, negative if rounding == "rm" else b.not_(negative))
    return b.zext(up, kept.type)


def _f64_to_f16(b: Builder, value: Value, rounding: str, nan: str) -> Value:
    """Round once from f64 (or an f32 extended to it). `nan`: 'canonical' 0x7fff, or 'payload' as f64 sources give."""
    raw = bits_of(b, value)
    magnitude = b.and_(raw, integer(raw, (1 << 63) - 1))
    negative = b.icmp_signed("<", raw, integer(raw, 0))
    field = b.lshr(magnitude, integer(raw, 52))
    mantissa = b.or_(b.and_(raw, integer(raw, (1 << 52) - 1)), integer(raw, 1 << 52))
    # Bits to drop: 42 in the normal range, more below 2^-14, everything (but a sticky bit) far below.
    place = maximum(b, b.sub(field, integer(raw, 1023 - 15)), integer(raw, 1), True)
    drop = b.add(integer(raw, 42), b.sub(place, b.sub(field, integer(raw, 1023 - 15))))
    drop = minimum(b, drop, integer(raw, 62), True)
    mantissa = b.select(b.icmp_unsigned("==", field, integer(raw, 0)), magnitude, mantissa)
    kept = b.lshr(mantissa, drop)
    dropped = b.sub(mantissa, b.shl(kept, drop))
    half = b.shl(integer(raw, 1), b.sub(drop, integer(raw, 1)))
    kept = b.add(kept, round_bits(b, kept, dropped, half, negative, rounding))
    place = minimum(b, place, integer(raw, 40), True)
    packed = b.add(kept, b.shl(b.sub(place, integer(raw, 1)), integer(raw, 10)))
    top = integer(raw, 0x7C00)
    limit = _overflow(b, raw, negative, rounding, 0x7C00)
    packed = b.select(b.icmp_unsigned(">=", packed, top), limit, packed)
    infinite = b.icmp_unsigned("==", magnitude, integer(raw, 0x7FF << 52))
    packed = b.select(infinite, top, packed)
    sign = b.lshr(b.and_(raw, integer(raw, 1 << 63)), integer(raw, 48))
    packed = b.or_(packed, sign)
    if nan == "canonical":
        special = integer(raw, 0x7FFF)
    else:
        payload = b.and_(b.lshr(raw, integer(raw, 42)), integer(raw, 0x3FF))
        special = b.or_(b.or_(payload, integer(raw, 0x7E00)), sign)
    return b.trunc(b.select(is_nan(b, value), special, packed), shaped(value, I16))


def _overflow(b: Builder, raw: Value, negative: Value, rounding: str, top: int) -> Value:
    """Infinity's bits `top`, or the largest finite number's where the rounding points inward."""
    if rounding == "rn":
        return integer(raw, top)
    if rounding == "rz":
        return integer(raw, top - 1)
    outward = negative if rounding == "rm" else b.not_(negative)
    return b.select(outward, integer(raw, top), integer(raw, top - 1))


def _float_to_float(b: Builder, value: Value, dst: str, src: str, rounding: str, ftz: bool, sat: bool) -> Value:
    if src == "f32" and ftz and dst == "f64":
        value = b.select(is_nan(b, value), as_real(b, integer(value, NAN32, 32), F32), flush(b, value))
    if src == "f16":
        out = f16_to_f32(b, value) if dst == "f32" else _f16_to_f64(b, value)
    elif dst == "f64":
        out = _quiet_f32_to_f64(b, value)
    elif dst == "f32":
        out = _f64_to_f32(b, value, rounding)
    elif src == "f32":
        out = _f64_to_f16(b, b.fpext(value, shaped(value, F64)), rounding, "canonical")
    else:
        out = _f64_to_f16(b, value, rounding, "payload")
    if dst == "f32" and ftz:
        out = flush(b, out)
    if not sat:
        return out
    return _saturate_f16(b, out) if dst == "f16" else saturate(b, out)


def _quiet_f32_to_f64(b: Builder, value: Value) -> Value:
    """Exact; a NaN keeps sign and payload, made quiet (spelled out: LLVM promises nothing about payloads)."""
    raw = resize(b, bits_of(b, value), 64)
    sign = b.shl(b.and_(raw, integer(raw, 1 << 31)), integer(raw, 32))
    payload = b.shl(b.and_(raw, integer(raw, 0x7FFFFF)), integer(raw, 29))
    nan = b.or_(b.or_(sign, payload), integer(raw, 0x7FF8 << 48))
    return b.select(is_nan(b, value), as_real(b, nan, F64), b.fpext(value, shaped(value, F64)))


def _f64_to_f32(b: Builder, value: Value, rounding: str) -> Value:
    """One rounding; a NaN keeps its sign and the top of its payload, made quiet."""
    raw = bits_of(b, value)
    sign = b.and_(b.lshr(raw, integer(raw, 32)), integer(raw, 1 << 31))
    payload = b.and_(b.lshr(b.or_(raw, integer(raw, QUIET64)), integer(raw, 29)), integer(raw, 0x7FFFFF))
    nan = b.or_(b.or_(sign, payload), integer(raw, 0x7F800000))
    nan32 = as_real(b, b.trunc(nan, shaped(value, I32)), F32)
    return b.select(is_nan(b, value), nan32, ieee.narrow(b, value, rounding))


def _saturate_f16(b: Builder, value: Value) -> Value:
    """Clamp f16 bits to [+0, 1]: negative and NaN become +0."""
    limited = minimum(b, value, integer(value, 0x3C00), True)
    negative = b.icmp_signed("<", value, integer(value, 0))
    nan = b.icmp_unsigned(">", b.and_(value, integer(value, 0x7FFF)), integer(value, 0x7C00))
    return b.select(b.or_(negative, nan), integer(value, 0), limited)


def _same_size(b: Builder, value: Value, kind: str, rounding: str | None, ftz: bool, sat: bool) -> Value:
    if kind == "f16":
        if rounding is not None:
            value = _f64_to_f16(b, _integral(b, _f16_to_f64(b, value), rounding), "rz", "canonical")
        else:
            nan = b.icmp_unsigned(">", b.and_(value, integer(value, 0x7FFF)), integer(value, 0x7C00))
            value = b.select(nan, integer(value, 0x7FFF), value)
        return _saturate_f16(b, value) if sat else value
    if ftz:
        value = flush(b, value)
    if rounding is None:
        if sat:
            return saturate(b, value)
        if kind == "f32" and ftz:
            canonical = as_real(b, integer(value, NAN32, 32), F32)
            return b.select(is_nan(b, value), canonical, value)
        return value
    out = _integral(b, value, rounding)
    return saturate(b, out) if sat else out


def _integral(b: Builder, value: Value, rounding: str) -> Value:
    """The float rounded to a whole number; f32 NaN canonical, f64 NaN quiet."""
    out = same(b, INTEGRAL[rounding], value)
    if scalar_type(value) == F32:
        nan = as_real(b, integer(value, NAN32, 32), F32)
    else:
        raw = bits_of(b, value)
        nan = as_real(b, b.or_(raw, integer(raw, QUIET64)), F64)
    return b.select(is_nan(b, value), nan, out)


def _float_to_integer(b: Builder, value: Value, dst: str, src: str, rounding: str, ftz: bool) -> Value:
    """Round to a whole number, clamp to the destination's range (with or without .sat: PTX always clamps)."""
    if src == "f16":
        value = f16_to_f32(b, value)
    elif src == "f32" and ftz:
        value = flush(b, value)
    bits, signed = int(dst[1:]), dst[0] == "s"
    nan = is_nan(b, value)
    whole = same(b, INTEGRAL[rounding], value)
    low = -(2.0 ** (bits - 1)) if signed else 0.0
    high = 2.0 ** (bits - 1) if signed else 2.0**bits
    over = b.fcmp_ordered(">=", whole, real(whole, high))
    under = b.fcmp_ordered("<", whole, real(whole, low))
    # fptosi of anything out of range is poison: feed it 0 there.
    safe = b.select(b.or_(b.or_(over, under), nan), real(whole, 0.0), whole)
    work = max(bits, 32)
    target = shaped(value, {32: I32, 64: I64}[work])
    out = b.fptosi(safe, target) if signed or bits < 32 else b.fptoui(safe, target)
    out = resize(b, out, bits)
    top = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    bottom = 1 << (bits - 1) if signed else 0
    out = b.select(over, integer(out, top), out)
    out = b.select(under, integer(out, bottom), out)
    indefinite = 1 << (bits - 1) if src == "f64" or bits == 64 else 0
    return b.select(nan, integer(out, indefinite), out)


def _integer_to_float(b: Builder, value: Value, dst: str, signed: bool, rounding: str, sat: bool) -> Value:
    if dst != "f16" and rounding == "rn":
        target = shaped(value, LANE[dst])
        out = b.sitofp(value, target) if signed else b.uitofp(value, target)
        return saturate(b, out) if sat else out
    wide = resize(b, value, 64, signed)
    negative = b.icmp_signed("<", wide, integer(wide, 0)) if signed else b.icmp_unsigned("<", wide, wide)
    magnitude = b.select(negative, b.sub(integer(wide, 0), wide), wide)
    fraction, bias, top = {"f16": (10, 15, 0x7C00), "f32": (23, 127, 255 << 23), "f64": (52, 1023, 2047 << 52)}[dst]
    lead = minimum(b, clz(b, magnitude), integer(wide, 63), False)
    normal = b.shl(magnitude, lead)
    cut = 63 - fraction
    kept = b.lshr(normal, integer(wide, cut))
    dropped = b.and_(normal, integer(wide, (1 << cut) - 1))
    up = round_bits(b, kept, dropped, integer(wide, 1 << (cut - 1)), negative, rounding)
    exponent = b.sub(integer(wide, bias + 63 - 1), lead)
    packed = b.add(b.add(kept, up), b.shl(exponent, integer(wide, fraction)))
    limit = _overflow(b, wide, negative, rounding, top)
    packed = b.select(b.icmp_unsigned(">=", packed, integer(wide, top)), limit, packed)
    packed = b.select(b.icmp_unsigned("==", magnitude, integer(wide, 0)), integer(wide, 0), packed)
    bits = int(dst[1:])
    sign = b.select(negative, integer(wide, 1 << (bits - 1)), integer(wide, 0))
    out = resize(b, b.or_(packed, sign), bits)
    if dst == "f16":
        return _saturate_f16(b, out) if sat else out
    out = as_real(b, out, LANE[dst])
    return saturate(b, out) if sat else out


def _integer_to_integer(b: Builder, value: Value, dst: str, src: str, sat: bool) -> Value:
    """Cut or extend (by the source's sign); `.sat` clamps to the destination's range first."""
    bits, signed = int(dst[1:]), src[0] == "s"
    if sat:
        wide = resize(b, value, 64, signed)
        top = (1 << (bits - 1)) - 1 if dst[0] == "s" else (1 << bits) - 1
        if not (signed and dst == "u64"):
            wide = minimum(b, wide, integer(wide, top), signed)
        if signed:
            wide = maximum(b, wide, integer(wide, -(1 << (bits - 1)) if dst[0] == "s" else 0), True)
        return resize(b, wide, bits)
    return resize(b, value, bits, signed)
