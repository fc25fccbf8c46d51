"""Bit operations: shifts, fields, permutations, counts. Amounts beyond the width have PTX's answers, not C's."""

from __future__ import annotations

from collections.abc import Callable

from ssmtool.execute.numerics.lanes import Builder, Value, clz, integer, minimum, resize, same, width

PRMT_MODES = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


def shl(b: Builder, x: Value, amount: Value) -> Value:
    """Shift left by amount (i32 lanes, any value): 0 from the width on."""
    bits = width(x)
    beyond = b.icmp_unsigned(">=", amount, integer(amount, bits))
    safe = resize(b, b.select(beyond, integer(amount, 0), amount), bits)
    return b.select(beyond, integer(x, 0), b.shl(x, safe))


def shr(b: Builder, x: Value, amount: Value, signed: bool) -> Value:
    """Shift right by amount: from the width on 0, or the sign in every bit."""
    bits = width(x)
    if signed:
        return b.ashr(x, resize(b, minimum(b, amount, integer(amount, bits - 1), False), bits))
    beyond = b.icmp_unsigned(">=", amount, integer(amount, bits))
    safe = resize(b, b.select(beyond, integer(amount, 0), amount), bits)
    return b.select(beyond, integer(x, 0), b.lshr(x, safe))


def shf(b: Builder, low: Value, high: Value, amount: Value, left: bool, wrap: bool) -> Value:
    """Funnel shift of high:low; left gives the upper word, right the lower. `wrap` masks the amount to 0..31."""
    amount = b.and_(amount, integer(amount, 31)) if wrap else minimum(b, amount, integer(amount, 32), False)
    pair = _pair(b, low, high)
    amount = resize(b, amount, 64)
    if left:
        return resize(b, b.lshr(b.shl(pair, amount), integer(pair, 32)), 32)
    return resize(b, b.lshr(pair, amount), 32)


def _pair(b: Builder, low: Value, high: Value) -> Value:
    wide = resize(b, high, 64)
    return b.or_(b.shl(wide, integer(wide, 32)), resize(b, low, 64))


def not_(b: Builder, x: Value) -> Value:
    """Every bit turned."""
    return b.not_(x)


def cnot(b: Builder, x: Value) -> Value:
    """1 for 0, else 0 (C's `!`)."""
    return b.zext(b.icmp_unsigned("==", x, integer(x, 0)), x.type)


def popc(b: Builder, x: Value) -> Value:
    """The number of one bits, as i32 lanes."""
    return resize(b, same(b, "ctpop", x), 32)


def clz_(b: Builder, x: Value) -> Value:
    """Leading zeros, as i32 lanes; the width for 0."""
    return resize(b, clz(b, x), 32)


def brev(b: Builder, x: Value) -> Value:
    """The bits in reverse order."""
    return same(b, "bitreverse", x)


def bfind(b: Builder, x: Value, signed: bool, shift_amount: bool = False) -> Value:
    """The place of the highest bit that differs from the sign (of the highest one if unsigned); -1 for none.

    `shift_amount` counts the places to shift it to the top instead.
    """
    if signed:
        x = b.xor(x, b.ashr(x, integer(x, width(x) - 1)))
    lead = resize(b, clz(b, x), 32)
    answer = lead if shift_amount else b.sub(integer(lead, width(x) - 1), lead)
    return b.select(b.icmp_unsigned("==", x, integer(x, 0)), integer(lead, -1), answer)


def _place(b: Builder, amount: Value, bits: int) -> Value:
    """A position or length: 0..255 by the ISA. Beyond, a 32-bit form looks at the low byte, a 64-bit one saturates."""
    if bits == 32:
        return b.and_(amount, integer(amount, 0xFF))
    return resize(b, amount, bits)


def bfe(b: Builder, x: Value, position: Value, length: Value, signed: bool) -> Value:
    """The field of `length` bits at `position` (i32 lanes), zero- or sign-extended; 0 if empty."""
    bits = width(x)
    position, length = _place(b, position, bits), _place(b, length, bits)
    empty = b.icmp_unsigned("==", length, integer(x, 0))
    rest = b.sub(integer(x, bits), minimum(b, length, integer(x, bits), False))
    rest = b.select(empty, integer(x, 0), rest)
    inside = minimum(b, position, integer(x, bits - 1), False)
    if signed:
        moved = b.ashr(x, inside)
        field = b.ashr(b.shl(moved, rest), rest)
    else:
        beyond = b.icmp_unsigned(">=", position, integer(x, bits))
        moved = b.select(beyond, integer(x, 0), b.lshr(x, inside))
        field = b.lshr(b.shl(moved, rest), rest)
    return b.select(empty, integer(x, 0), field)


def bfi(b: Builder, source: Value, into: Value, position: Value, length: Value) -> Value:
    """`into` with `length` bits of `source` put at `position`; what would pass the top is cut off."""
    bits = width(source)
    position, length = _place(b, position, bits), _place(b, length, bits)
    ones = integer(source, -1)
    empty = b.icmp_unsigned("==", length, integer(source, 0))
    rest = b.sub(integer(source, bits), minimum(b, length, integer(source, bits), False))
    mask = b.lshr(ones, b.select(empty, integer(source, 0), rest))
    nothing = b.or_(empty, b.icmp_unsigned(">=", position, integer(source, bits)))
    inside = minimum(b, position, integer(source, bits - 1), False)
    mask = b.select(nothing, integer(source, 0), b.shl(mask, inside))
    return b.or_(b.and_(into, b.not_(mask)), b.and_(b.shl(source, inside), mask))


def prmt(b: Builder, low: Value, high: Value, selector: Value, mode: str | None = None) -> Value:
    """Four bytes picked from high:low. Without a mode each nibble picks (bit 3: only that byte's sign, repeated)."""
    pair = _pair(b, low, high)
    result = integer(selector, 0)
    for place in range(4):
        if mode is None:
            index = b.and_(b.lshr(selector, integer(selector, 4 * place)), integer(selector, 15))
        else:
            index = _PRMT[mode](b, b.and_(selector, integer(selector, 3)), place)
        shift = resize(b, b.shl(b.and_(index, integer(index, 7)), integer(index, 3)), 64)
        byte = resize(b, b.lshr(pair, shift), 32)
        byte = b.and_(byte, integer(byte, 0xFF))
        if mode is None:
            signs = b.select(
                b.icmp_unsigned("!=", b.and_(byte, integer(byte, 0x80)), integer(byte, 0)),
                integer(byte, 0xFF),
                integer(byte, 0),
            )
            repeat = b.icmp_unsigned("!=", b.and_(index, integer(index, 8)), integer(index, 0))
            byte = b.select(repeat, signs, byte)
        result = b.or_(result, b.shl(byte, integer(byte, 8 * place)))
    return result


_PRMT: dict[str, Callable[[Builder, Value, int], Value]] = {
    "f4e": lambda b, s, i: b.add(s, integer(s, i)),
    "b4e": lambda b, s, i: b.sub(s, integer(s, i)),
    "rc8": lambda _b, s, _i: s,
    "ecl": lambda b, s, i: same(b, "umax", s, integer(s, i)),
    "ecr": lambda b, s, i: same(b, "umin", s, integer(s, i)),
    "rc16": lambda b, s, i: b.add(b.shl(b.and_(s, integer(s, 1)), integer(s, 1)), integer(s, i & 1)),
}


def fns(b: Builder, mask: Value, base: Value, offset: Value) -> Value:
    """Find the |offset|-th set bit of `mask` from bit `base` (0..31) on, upward or (offset < 0) downward.

    Offset 0 asks for bit `base` itself. -1 for none.
    """
    down = b.icmp_signed("<", offset, integer(offset, 0))
    mask = b.select(down, brev(b, mask), mask)
    start = b.and_(base, integer(base, 31))
    start = b.select(down, b.sub(integer(base, 31), start), start)
    rest = b.lshr(mask, start)
    alone = b.icmp_unsigned("==", offset, integer(offset, 0))
    rest = b.select(alone, b.and_(rest, integer(rest, 1)), rest)
    count = b.select(down, b.sub(integer(offset, 0), offset), offset)
    count = b.select(alone, integer(count, 0), b.sub(count, integer(count, 1)))
    found = b.icmp_unsigned("<", count, same(b, "ctpop", rest))
    place = integer(rest, 0)
    for half in (16, 8, 4, 2, 1):
        ones = same(b, "ctpop", b.and_(b.lshr(rest, place), integer(rest, (1 << half) - 1)))
        upper = b.icmp_unsigned(">=", count, ones)
        count = b.select(upper, b.sub(count, ones), count)
        place = b.add(place, b.select(upper, integer(place, half), integer(place, 0)))
    place = b.add(place, start)
    place = b.select(down, b.sub(integer(place, 31), place), place)
    return b.select(found, place, integer(place, -1))
