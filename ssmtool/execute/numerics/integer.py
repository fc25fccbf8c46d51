"""Integer arithmetic: every width, high halves, saturation, division by zero, 24-bit forms, carry chains.

Operands and results are integer lanes of the kind's width (a `wide` result has twice that). Nothing is undefined:
a division by zero gives what the H200 gives, INT_MIN / -1 wraps.
"""

from __future__ import annotations

from ssmtool.execute.numerics.lanes import (
    Builder,
    Value,
    integer,
    maximum,
    minimum,
    resize,
    same,
    width,
)


def add(b: Builder, x: Value, y: Value, sat: bool = False) -> Value:
    """The sum x + y, wrapping; `sat` clamps as s32."""
    return same(b, "sadd.sat", x, y) if sat else b.add(x, y)


def sub(b: Builder, x: Value, y: Value, sat: bool = False) -> Value:
    """The difference x - y, wrapping; `sat` clamps as s32."""
    return same(b, "ssub.sat", x, y) if sat else b.sub(x, y)


def mul(b: Builder, x: Value, y: Value, part: str, signed: bool) -> Value:
    """The low half, the high half or (`wide`) the whole product."""
    if part == "lo":
        return b.mul(x, y)
    bits = width(x)
    product = b.mul(resize(b, x, 2 * bits, signed), resize(b, y, 2 * bits, signed))
    if part == "wide":
        return product
    return resize(b, b.lshr(product, integer(product, bits)), bits)


def mad(b: Builder, x: Value, y: Value, z: Value, part: str, signed: bool, sat: bool = False) -> Value:
    """As mul, plus z; `sat` (hi.s32 only) clamps the sum as s32."""
    return add(b, mul(b, x, y, part, signed), z, sat)


def mul24(b: Builder, x: Value, y: Value, part: str, signed: bool) -> Value:
    """The product of the low 24 bits: its low 32 bits (`lo`) or bits 47..16 (`hi`)."""
    wide_x, wide_y = (_low24(b, v, signed) for v in (x, y))
    product = b.mul(wide_x, wide_y)
    if part == "hi":
        product = b.lshr(product, integer(product, 16))
    return resize(b, product, 32)


def mad24(b: Builder, x: Value, y: Value, z: Value, part: str, signed: bool, sat: bool = False) -> Value:
    """mul24 plus z."""
    return add(b, mul24(b, x, y, part, signed), z, sat)


def _low24(b: Builder, value: Value, signed: bool) -> Value:
    wide = resize(b, value, 64)
    wide = b.shl(wide, integer(wide, 40))
    return b.ashr(wide, integer(wide, 40)) if signed else b.lshr(wide, integer(wide, 40))


def div(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """The quotient toward zero; all ones where y is 0 (PTX leaves that open, the H200 answers so)."""
    quotient, _ = _divide(b, x, y, signed)
    return quotient


def rem(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """The remainder, with x's sign; all ones where y is 0 (as the H200 answers)."""
    _, remainder = _divide(b, x, y, signed)
    return remainder


def _divide(b: Builder, x: Value, y: Value, signed: bool) -> tuple[Value, Value]:
    zero = b.icmp_unsigned("==", y, integer(y, 0))
    safe = b.select(zero, integer(y, 1), y)
    if signed:
        # INT_MIN / -1 traps on a CPU and is undefined in LLVM; dividing by 1 and turning the sign is not.
        turn = b.icmp_unsigned("==", y, integer(y, -1))
        safe = b.select(turn, integer(y, 1), safe)
        quotient = b.sdiv(x, safe)
        quotient = b.select(turn, b.sub(integer(x, 0), quotient), quotient)
    else:
        quotient = b.udiv(x, safe)
    remainder = b.sub(x, b.mul(quotient, y))
    ones = integer(x, -1)
    return b.select(zero, ones, quotient), b.select(zero, ones, remainder)


def sad(b: Builder, x: Value, y: Value, z: Value, signed: bool) -> Value:
    """The sum z + |x - y|, wrapping."""
    high, low = maximum(b, x, y, signed), minimum(b, x, y, signed)
    return b.add(z, b.sub(high, low))


def abs_(b: Builder, x: Value) -> Value:
    """|x|; INT_MIN stays INT_MIN."""
    return b.select(b.icmp_signed("<", x, integer(x, 0)), b.sub(integer(x, 0), x), x)


def neg(b: Builder, x: Value) -> Value:
    """-x, wrapping."""
    return b.sub(integer(x, 0), x)


def add_carry(b: Builder, x: Value, y: Value, carry: Value | None = None) -> tuple[Value, Value]:
    """(x + y + carry, carry out); carries are i1 lanes."""
    total = b.add(x, y)
    out = b.icmp_unsigned("<", total, x)
    if carry is None:
        return total, out
    more = b.add(total, b.zext(carry, total.type))
    return more, b.or_(out, b.icmp_unsigned("<", more, total))


def sub_borrow(b: Builder, x: Value, y: Value, carry: Value | None = None) -> tuple[Value, Value]:
    """(x - y - borrow, carry flag out). The flag holds the borrow inverted, as the H200 shows it to a later addc."""
    negative = b.not_(y)
    one = b.icmp_unsigned("==", x, x) if carry is None else carry
    return add_carry(b, x, negative, one)
