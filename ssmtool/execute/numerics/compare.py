"""setp, set and slct: comparisons of integers, bits and floats, ordered and unordered.

Plain float operators are false when an operand is NaN; the ...u forms are true then. `num` and `nan` ask for that
alone. lo, ls, hi, hs are the unsigned names of lt, le, gt, ge.
"""

from __future__ import annotations

from ssmtool.execute.numerics.lanes import Builder, Value, integer, real, scalar_type
from ssmtool.execute.numerics.special import flush

INTEGER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
FLOAT = (*INTEGER, *(f"{op}u" for op in INTEGER if op != "ne" and op != "eq"), "equ", "neu", "num", "nan")


def compare(b: Builder, op: str, kind: str, x: Value, y: Value, ftz: bool = False) -> Value:
    """i1 lanes of `x op y` for operands of PTX kind `kind` (f32, f64, s.., u.., b..)."""
    if kind[0] != "f":
        symbol = INTEGER.get(op) or UNSIGNED[op]
        return b.icmp_signed(symbol, x, y) if kind[0] == "s" else b.icmp_unsigned(symbol, x, y)
    if ftz:
        x, y = flush(b, x), flush(b, y)
    if op == "num":
        return b.fcmp_ordered("ord", x, y)
    if op == "nan":
        return b.fcmp_unordered("uno", x, y)
    if op in INTEGER:
        return b.fcmp_ordered(INTEGER[op], x, y)
    return b.fcmp_unordered(INTEGER[op[:-1]], x, y)


def combine(b: Builder, boolean: str, result: Value, predicate: Value) -> Value:
    """`.and`, `.or`, `.xor` of a comparison with a predicate (both i1 lanes)."""
    return {"and": b.and_, "or": b.or_, "xor": b.xor}[boolean](result, predicate)


def set_value(b: Builder, result: Value, kind: str) -> Value:
    """What `set` writes for true: all ones (u32, s32) or 1.0f; 0 for false."""
    if kind == "f32":
        from ssmtool.execute.numerics.lanes import F32

        return b.select(result, real(result, 1.0, F32), real(result, 0.0, F32))
    return b.select(result, integer(result, 0xFFFFFFFF, 32), integer(result, 0, 32))


def slct(b: Builder, x: Value, y: Value, z: Value, ftz: bool = False) -> Value:
    """X where z >= 0, else y. z is s32 or f32; a NaN z picks y, -0 and (with ftz) negative subnormals pick x."""
    from ssmtool.execute.numerics.lanes import F32

    if scalar_type(z) == F32:
        z = flush(b, z) if ftz else z
        return b.select(b.fcmp_ordered(">=", z, real(z, 0.0)), x, y)
    return b.select(b.icmp_signed(">=", z, integer(z, 0)), x, y)
