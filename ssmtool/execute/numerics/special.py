"""NaN results, flushing and clamping: what surrounds a rounded result.

f32: every arithmetic result that is a NaN is 0x7fffffff. f64: a NaN operand made quiet, of several the second
operand, else the addend of a fused operation, else the first; an invalid operation gives 0xfff8000000000000. Both
are what an H200 answers (PTX leaves the payload open), and the sampled results in the tests hold them there.
"""

from __future__ import annotations

from typing import Any

from ssmtool.execute.numerics.lanes import (
    F32,
    F64,
    I32,
    I64,
    Builder,
    Value,
    as_real,
    bits_of,
    integer,
    is_nan,
    real,
    scalar_type,
    shaped,
)

NAN32 = 0x7FFFFFFF
QUIET64 = 1 << 51
INVALID64 = 0xFFF8 << 48


def flush(b: Builder, value: Value) -> Value:
    """`.ftz`: f32 subnormals become zeros of the same sign. f64 has no flush and comes back unchanged."""
    if scalar_type(value) == F64:
        return value
    raw = bits_of(b, value)
    small = b.icmp_unsigned("==", b.and_(raw, integer(raw, 0x7F800000)), integer(raw, 0))
    return as_real(b, b.select(small, b.and_(raw, integer(raw, 0x80000000)), raw), F32)


def saturate(b: Builder, value: Value) -> Value:
    """`.sat`: clamp to [+0, 1]; NaN and -0 become +0."""
    zero, one = real(value, 0.0), real(value, 1.0)
    above = b.fcmp_ordered(">", value, zero)
    value = b.select(above, value, zero)
    return b.select(b.fcmp_ordered("<", value, one), value, one)


def nan_result(b: Builder, result: Value, operands: tuple[Value, ...]) -> Value:
    """Replace NaN lanes of `result` by the NaN the card gives for these operands (in its order of preference)."""
    lane = scalar_type(result)
    if lane == F32:
        return b.select(is_nan(b, result), as_real(b, integer(result, NAN32, 32), F32), result)
    answer = b.select(is_nan(b, result), as_real(b, integer(result, INVALID64, 64), F64), result)
    for operand in reversed(operands):
        quiet = b.or_(bits_of(b, operand), integer(bits_of(b, operand), QUIET64))
        answer = b.select(is_nan(b, operand), as_real(b, quiet, F64), answer)
    return answer


def finish(b: Builder, result: Value, operands: tuple[Value, ...], ftz: bool = False, sat: bool = False) -> Value:
    """Canonical NaN, then `.ftz` on the result, then `.sat`."""
    if sat:
        return saturate(b, flush(b, result) if ftz else result)
    result = nan_result(b, result, operands)
    return flush(b, result) if ftz else result


def is_finite(b: Builder, value: Value) -> Value:
    """True in lanes that hold neither an infinity nor a NaN."""
    raw = bits_of(b, value)
    top = integer(raw, 0x7F800000 if scalar_type(value) == F32 else 0x7FF << 52)
    return b.icmp_unsigned("!=", b.and_(raw, top), top)


def nudge(b: Builder, value: Value, away: Value, toward: Value) -> Value:
    """The next float away from zero in lanes of `away`, toward zero in lanes of `toward` (never both)."""
    raw = bits_of(b, value)
    step_out = b.zext(away, shaped(value, I32 if scalar_type(value) == F32 else I64))
    step_in = b.sext(toward, step_out.type)
    return as_real(b, b.add(raw, b.add(step_out, step_in)), scalar_type(value))


def before_nan(value: Value) -> Value:
    """An f32 result as it was before `nan_result` made its NaNs canonical: for readers that cannot tell NaNs apart.

    Anything that did not end in that choice comes back as it is.
    """
    canonical = f"{NAN32}"
    operands: Any = getattr(value, "operands", ())
    if getattr(value, "opname", "") == "select" and len(operands) == 3 and canonical in _origin(operands[1]):
        return operands[2]
    return value


def _origin(value: Value) -> str:
    """The constant that a value is a bit cast of, as text; empty for anything else."""
    operands: Any = getattr(value, "operands", ())
    if getattr(value, "opname", "") == "bitcast" and operands:
        return str(operands[0])
    return ""
