"""The video instructions: one operation on a selected byte, half or word (scalar), or on all halves or bytes (SIMD).

Intermediate values are i64 lanes, wide enough for every sum; vmad's product and sum too, except that its sign beyond
64 bits is worked out apart (see `vmad`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.execute.numerics.lanes import Builder, Value, integer, maximum, minimum, resize

SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
PIECES = {"b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16), "": (0, 32)}


def piece(b: Builder, x: Value, start: int, bits: int, signed: bool) -> Value:
    """Bits start..start+bits-1 of i32 lanes, extended to i64."""
    wide = resize(b, x, 64)
    wide = b.shl(wide, integer(wide, 64 - start - bits))
    back = integer(wide, 64 - bits)
    return b.ashr(wide, back) if signed else b.lshr(wide, back)


def operate(b: Builder, op: str, x: Value, y: Value) -> Value:
    """The operation of a scalar or SIMD instruction, on extended values."""
    if op == "vadd":
        return b.add(x, y)
    if op == "vsub":
        return b.sub(x, y)
    if op == "vabsdiff":
        return b.sub(maximum(b, x, y, True), minimum(b, x, y, True))
    if op == "vavrg":
        # Halves round away from zero: up for sums of 0 and more, down below.
        total = b.add(x, y)
        up = b.add(total, integer(total, 1))
        negative = b.icmp_signed("<", total, integer(total, 0))
        return b.ashr(b.select(negative, total, up), integer(total, 1))
    return minimum(b, x, y, True) if op == "vmin" else maximum(b, x, y, True)


def clamp(b: Builder, x: Value, bits: int, signed: bool) -> Value:
    """Saturate to `bits`, signed or not."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return minimum(b, maximum(b, x, integer(x, low), True), integer(x, high), True)


def finish(b: Builder, x: Value, c: Value | None, dsel: str, second: str, signed: bool) -> Value:
    """The secondary operation (add, min, max with c) or the merge of x into the selected part of c; i32 lanes."""
    if second == "add":
        return b.add(resize(b, x, 32), c)
    if second:
        # The first result is compared as 32 bits of the destination's type.
        low = resize(b, x, 32)
        return (minimum if second == "min" else maximum)(b, low, c, signed)
    if not dsel:
        return resize(b, x, 32)
    start, bits = PIECES[dsel]
    mask = ((1 << bits) - 1) << start
    low = resize(b, x, 32)
    put = b.and_(b.shl(low, integer(low, start)), integer(low, mask))
    return b.or_(b.and_(c, integer(low, ~mask)), put)


def scalar(
    b: Builder,
    op: str,
    types: tuple[str, str, str],
    sat: bool,
    selectors: tuple[str, str, str],
    v: Sequence[Value],
    second: str,
) -> Value:
    """vadd, vsub, vabsdiff, vmin, vmax on the parts (selectors of d, a, b) of v = a, b[, c]; types of d, a, b."""
    dtype, atype, btype = types
    x = piece(b, v[0], *PIECES[selectors[1]], atype[0] == "s")
    y = piece(b, v[1], *PIECES[selectors[2]], btype[0] == "s")
    result = operate(b, op, x, y)
    if sat:
        result = clamp(b, result, PIECES[selectors[0]][1], dtype[0] == "s")
    return finish(b, result, v[2] if len(v) > 2 else None, selectors[0], second, dtype[0] == "s")


def shift(
    b: Builder,
    left: bool,
    wrap: bool,
    types: tuple[str, str],
    sat: bool,
    selectors: tuple[str, str, str],
    v: Sequence[Value],
    second: str,
) -> Value:
    """Shift a part (vshl, vshr); types of d and a. Clamped amounts stop at 32."""
    x = piece(b, v[0], *PIECES[selectors[1]], types[1][0] == "s")
    amount = piece(b, v[1], *PIECES[selectors[2]], False)
    amount = b.and_(amount, integer(amount, 31)) if wrap else minimum(b, amount, integer(amount, 32), False)
    result = b.shl(x, amount) if left else b.ashr(x, amount)
    signed = types[0][0] == "s"
    if sat:
        result = clamp(b, result, PIECES[selectors[0]][1], signed)
    return finish(b, result, v[2] if len(v) > 2 else None, selectors[0], second, signed)


def vmad(
    b: Builder,
    atype: str,
    btype: str,
    sat: bool,
    scale: int,
    plus_one: bool,
    negated: tuple[bool, bool, bool],
    selectors: tuple[str, str, str],
    v: Sequence[Value],
) -> Value:
    """(+-)a*b (+-) c [+ 1] >> scale. The sum is signed if an operand is signed or a sign is turned."""
    signed_a, signed_b = atype[0] == "s", btype[0] == "s"
    turn_product, turn_c = negated[0] != negated[1], negated[2]
    signed = signed_a or signed_b or turn_product or turn_c
    x = resize(b, piece(b, v[0], *PIECES[selectors[1]], signed_a), 128, True)
    y = resize(b, piece(b, v[1], *PIECES[selectors[2]], signed_b), 128, True)
    z = resize(b, v[2], 128, signed)
    product = b.mul(x, y)
    total = b.sub(z, product) if turn_product else b.sub(product, z) if turn_c else b.add(product, z)
    if plus_one:
        total = b.add(total, integer(total, 1))
    total = b.ashr(total, integer(total, scale))
    if sat:
        total = clamp(b, total, 32, signed)
    return resize(b, total, 32)


def vset(
    b: Builder, op: str, atype: str, btype: str, selectors: tuple[str, str, str], v: Sequence[Value], second: str
) -> Value:
    """1 or 0 for a comparison of parts, then the secondary operation or the merge."""
    x = piece(b, v[0], *PIECES[selectors[1]], atype[0] == "s")
    y = piece(b, v[1], *PIECES[selectors[2]], btype[0] == "s")
    result = b.zext(b.icmp_signed(_SYMBOLS[op], x, y), x.type)
    return finish(b, result, v[2] if len(v) > 2 else None, selectors[0], second, False)


_SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def simd(
    b: Builder,
    op: str,
    types: tuple[str, str, str],
    sat: bool,
    total: bool,
    lanes: Sequence[tuple[int, int] | None],
    v: Sequence[Value],
    compare: str = "",
) -> Value:
    """v...2 and v...4. `lanes` gives for every part of d its sources in a:b (0..n-1 is a, n.. is b), None if masked.

    Masked parts come from c; with `total` (.add) c plus all unmasked results instead.
    """
    n = len(lanes)
    bits = 32 // n
    dtype, atype, btype = types
    result = v[2]
    for place, chosen in enumerate(lanes):
        if chosen is None:
            continue
        x, y = (
            piece(b, v[index // n], index % n * bits, bits, kind[0] == "s")
            for index, kind in zip(chosen, (atype, btype), strict=True)
        )
        if compare:
            one = b.zext(b.icmp_signed(_SYMBOLS[compare], x, y), x.type)
        else:
            one = operate(b, op, x, y)
            if sat:
                one = clamp(b, one, bits, dtype[0] == "s")
        if total:
            result = b.add(result, resize(b, one, 32))
        else:
            mask = ((1 << bits) - 1) << (place * bits)
            low = resize(b, one, 32)
            put = b.and_(b.shl(low, integer(low, place * bits)), integer(low, mask))
            result = b.or_(b.and_(result, integer(low, ~mask)), put)
    return result
