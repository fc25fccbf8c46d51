"""Exact integer semantics of PTX instructions on known values; what is not exact here is unknown.

A value is the bit pattern of a register as an unsigned int (a predicate is 0 or 1); `None` is one that is not known.
Formulas follow the PTX ISA manual, chapter "Integer Arithmetic Instructions" and its neighbours: arithmetic wraps,
shift amounts beyond the width are clamped to it (C leaves them undefined), and a quotient by zero is unspecified, so it
is unknown here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssmtool.ptx.opcode import TYPE_BITS, Opcode

Value = int | None

# Integer and untyped-bit types that this module computes on; `pred` is one bit.
_INTEGER = frozenset(f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64)) | {"pred"}

_LOWEST = frozenset(-(1 << (bits - 1)) for bits in (8, 16, 32, 64))

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
# `lo`, `ls`, `hi`, `hs` compare unsigned types; on them they are lt, le, gt, ge.
_COMPARE |= {name: _COMPARE[same] for name, same in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge"))}
_LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def read(value: int, type_: str) -> int:
    """The number that a bit pattern is when read as `type_`: the low bits, signed for `s8` to `s64`."""
    bits = TYPE_BITS[type_]
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_[0] == "s" and value >> (bits - 1) else value


def write(number: int, type_: str, register_bits: int) -> int:
    """The bit pattern of a register of that width after `number` is written to it as `type_`.

    A wider register is sign-extended for signed types and zero-extended for others, as `ld` and `cvt` do.
    """
    return read(number, type_) & ((1 << register_bits) - 1)


def evaluate(opcode: Opcode, sources: Sequence[Value]) -> Value:
    """The number an instruction with one result computes from its source operands; None when it is not known.

    The result is not yet cut to a register: pass it to `write` with `result_type(opcode)`.
    """
    if opcode.type not in _INTEGER or any(opcode.has(word) for word in ("sat", "cc", "relu")):
        return None
    handler = _HANDLERS.get(opcode.base)
    return handler(opcode, sources) if handler else None


def result_type(opcode: Opcode) -> str | None:
    """The type an instruction's result has; None for those that `evaluate` does not know."""
    if opcode.base in ("setp", "isspacep"):
        return "pred"
    if opcode.type is None or opcode.type not in TYPE_BITS:
        return None
    if opcode.base in ("mul", "mad") and opcode.has("wide"):
        return {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}.get(opcode.type)
    if opcode.base in ("popc", "clz"):
        return "u32"
    return opcode.type


def _numbers(opcode: Opcode, sources: Sequence[Value], count: int) -> list[int] | None:
    """`count` known sources read in the instruction's type."""
    if len(sources) != count or any(source is None for source in sources):
        return None
    type_ = opcode.types[-1] if opcode.base == "cvt" else opcode.type
    if type_ not in _INTEGER:
        return None
    return [read(source, type_) for source in sources if source is not None]


def _plain(count: int, formula: Callable[..., int | None]) -> Callable[[Opcode, Sequence[Value]], Value]:
    def handler(opcode: Opcode, sources: Sequence[Value]) -> Value:
        numbers = _numbers(opcode, sources, count)
        return None if numbers is None else formula(*numbers)

    return handler


def _and_or(zero_wins: bool) -> Callable[[Opcode, Sequence[Value]], Value]:
    """`and`/`or`, where one operand alone may decide: 0 for `and`, all ones for `or`."""

    def handler(opcode: Opcode, sources: Sequence[Value]) -> Value:
        if len(sources) != 2 or opcode.type is None:
            return None
        mask = (1 << TYPE_BITS[opcode.type]) - 1
        decides = 0 if zero_wins else mask
        if any(source is not None and source & mask == decides for source in sources):
            return decides
        first, second = sources
        if first is None or second is None:
            return None
        return first & second if zero_wins else first | second

    return handler


def _half(opcode: Opcode, product: int, addend: int = 0) -> Value:
    """The half of a product that `.lo`, `.hi` or `.wide` names, plus the addend of `mad`."""
    if opcode.has("hi") and opcode.type is not None:
        return (product >> TYPE_BITS[opcode.type]) + addend
    return product + addend if opcode.has("lo") or opcode.has("wide") else None


def _mul(opcode: Opcode, sources: Sequence[Value]) -> Value:
    if 0 in sources and opcode.has("lo"):
        return 0
    numbers = _numbers(opcode, sources, 2)
    return None if numbers is None else _half(opcode, numbers[0] * numbers[1])


def _mad(opcode: Opcode, sources: Sequence[Value]) -> Value:
    if len(sources) != 3 or sources[2] is None:
        return None
    numbers = _numbers(opcode, sources[:2], 2)
    # The addend of mad.wide is as wide as the result; its sign does not matter modulo the width.
    return None if numbers is None else _half(opcode, numbers[0] * numbers[1], sources[2])


def _divide(a: int, b: int) -> int | None:
    # The lowest number over -1 does not fit its type; the manual does not say what comes out.
    if b == 0 or (b == -1 and a in _LOWEST):
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    quotient = _divide(a, b)
    return None if quotient is None else a - b * quotient


def _shift(opcode: Opcode, sources: Sequence[Value]) -> Value:
    if len(sources) != 2 or opcode.type is None or sources[1] is None:
        return None
    bits = TYPE_BITS[opcode.type]
    amount = min(sources[1] & 0xFFFF_FFFF, bits)
    if sources[0] is None:
        # Every bit is shifted out, whatever it was; an arithmetic shift leaves the unknown sign.
        return 0 if amount == bits and (opcode.base == "shl" or opcode.type[0] != "s") else None
    number = read(sources[0], opcode.type)
    return number << amount if opcode.base == "shl" else number >> amount


def _select(_opcode: Opcode, sources: Sequence[Value]) -> Value:
    if len(sources) != 3:
        return None
    if sources[2] is None:
        return sources[0] if sources[0] == sources[1] else None
    return sources[0] if sources[2] & 1 else sources[1]


def _compare(opcode: Opcode, sources: Sequence[Value]) -> Value:
    """`setp.CMP[.BOOL].TYPE p, a, b[, c]`: the first destination."""
    return compare(opcode, sources)[0]


def compare(opcode: Opcode, sources: Sequence[Value]) -> tuple[Value, Value]:
    """Both predicates that `setp` writes: the comparison and its complement, each combined with the third source."""
    numbers = _numbers(opcode, sources[:2], 2)
    relation = _COMPARE.get(opcode.modifiers[0]) if opcode.modifiers else None
    result: Value = None if numbers is None or relation is None else int(relation(*numbers))
    complement: Value = None if result is None else 1 - result
    if len(sources) == 2:
        return result, complement
    logic = next((name for name in opcode.modifiers if name in _LOGIC), None)
    if logic is None:
        return None, None
    return _combine(logic, result, sources[2]), _combine(logic, complement, sources[2])


def _combine(logic: str, first: Value, second: Value) -> Value:
    if logic == "and" and 0 in (first, second):
        return 0
    if logic == "or" and 1 in (first, second):
        return 1
    return None if first is None or second is None else _LOGIC[logic](first, second)


def _convert(opcode: Opcode, sources: Sequence[Value]) -> Value:
    if len(opcode.types) != 2 or opcode.types[1] not in _INTEGER or len(opcode.modifiers) != 2:
        return None
    numbers = _numbers(opcode, sources, 1)
    return None if numbers is None else numbers[0]


def _not(opcode: Opcode, sources: Sequence[Value]) -> Value:
    numbers = _numbers(opcode, sources, 1)
    return None if numbers is None else ~numbers[0]


def _count_zeros(opcode: Opcode, sources: Sequence[Value]) -> Value:
    numbers = _numbers(opcode, sources, 1)
    return None if numbers is None or opcode.type is None else TYPE_BITS[opcode.type] - numbers[0].bit_length()


_HANDLERS: dict[str, Callable[[Opcode, Sequence[Value]], Value]] = {
    "mov": lambda _opcode, sources: sources[0] if len(sources) == 1 else None,
    "add": _plain(2, lambda a, b: a + b),
    "sub": _plain(2, lambda a, b: a - b),
    "neg": _plain(1, lambda a: -a),
    "abs": _plain(1, abs),
    "min": _plain(2, min),
    "max": _plain(2, max),
    "div": _plain(2, _divide),
    "rem": _plain(2, _remainder),
    "popc": _plain(1, lambda a: a.bit_count()),
    "clz": _count_zeros,
    "mul": _mul,
    "mad": _mad,
    "and": _and_or(True),
    "or": _and_or(False),
    "xor": _plain(2, lambda a, b: a ^ b),
    "not": _not,
    "cnot": _plain(1, lambda a: int(a == 0)),
    "shl": _shift,
    "shr": _shift,
    "selp": _select,
    "setp": _compare,
    "cvt": _convert,
}
