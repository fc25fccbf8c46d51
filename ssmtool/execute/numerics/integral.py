"""Readers of the integer arithmetic opcodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ssmtool.execute.numerics import integer
from ssmtool.execute.numerics.form import Form, Parts, single
from ssmtool.execute.numerics.lanes import maximum, minimum

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
CARRIED = ("u32", "s32", "u64", "s64", "b32", "b64")


def _twice(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _add_sub(p: Parts) -> Form:
    if p.flag("cc"):
        return _carry(p, p.op, reads=False, writes=True)
    if p.flag("sat"):
        kind = p.take(("s32",))
        p.end()
        saturated = integer.add if p.op == "add" else integer.sub
        return single(p.opcode, (kind, kind), kind, lambda b, v: saturated(b, v[0], v[1], True))
    kind = p.take(INTEGERS)
    p.end()
    plain = integer.add if p.op == "add" else integer.sub
    return single(p.opcode, (kind, kind), kind, lambda b, v: plain(b, v[0], v[1]))


def _carried(p: Parts) -> Form:
    return _carry(p, p.op[:3], reads=True, writes=p.flag("cc"))


def _carry(p: Parts, op: str, reads: bool, writes: bool) -> Form:
    kind = p.take(CARRIED)
    p.end()
    function = integer.add_carry if op == "add" else integer.sub_borrow

    def emit(b: Any, v: Sequence[Any]) -> tuple[Any, ...]:
        total, carry = function(b, v[0], v[1], v[2] if reads else None)
        return (total, carry) if writes else (total,)

    operands = (kind, kind, *(("carry",) if reads else ()))
    return Form(p.opcode, operands, (kind, "carry") if writes else (kind,), emit)


def _mul(p: Parts) -> Form:
    part = p.take(("hi", "lo", "wide"), "part")
    kind = p.take(INTEGERS if part != "wide" else INTEGERS[:2] + INTEGERS[3:5])
    p.end()
    result = _twice(kind) if part == "wide" else kind
    signed = kind[0] == "s"
    return single(p.opcode, (kind, kind), result, lambda b, v: integer.mul(b, v[0], v[1], part, signed))


def _mad(p: Parts) -> Form:
    part = p.take(("hi", "lo", "wide"), "part")
    if part != "wide" and p.flag("cc"):
        return _mad_carry(p, part, reads=False, writes=True)
    sat = part == "hi" and p.flag("sat")
    kind = p.take(("s32",) if sat else INTEGERS if part != "wide" else INTEGERS[:2] + INTEGERS[3:5])
    p.end()
    result = _twice(kind) if part == "wide" else kind
    signed = kind[0] == "s"
    return single(
        p.opcode,
        (kind, kind, result),
        result,
        lambda b, v: integer.mad(b, v[0], v[1], v[2], part, signed, sat),
    )


def _madc(p: Parts) -> Form:
    part = p.take(("hi", "lo"), "part")
    return _mad_carry(p, part, reads=True, writes=p.flag("cc"))


def _mad_carry(p: Parts, part: str, reads: bool, writes: bool) -> Form:
    kind = p.take(("u32", "s32", "u64", "s64"))
    p.end()

    def emit(b: Any, v: Sequence[Any]) -> tuple[Any, ...]:
        product = integer.mul(b, v[0], v[1], part, kind[0] == "s")
        total, carry = integer.add_carry(b, product, v[2], v[3] if reads else None)
        return (total, carry) if writes else (total,)

    operands = (kind, kind, kind, *(("carry",) if reads else ()))
    return Form(p.opcode, operands, (kind, "carry") if writes else (kind,), emit)


def _mul24(p: Parts) -> Form:
    part = p.take(("hi", "lo"), "part")
    sat = p.op == "mad24" and part == "hi" and p.flag("sat")
    kind = p.take(("s32",) if sat else ("u32", "s32"))
    p.end()
    signed = kind[0] == "s"
    if p.op == "mul24":
        return single(p.opcode, (kind, kind), kind, lambda b, v: integer.mul24(b, v[0], v[1], part, signed))
    return single(p.opcode, (kind,) * 3, kind, lambda b, v: integer.mad24(b, v[0], v[1], v[2], part, signed, sat))


def _two(p: Parts) -> Form:
    kind = p.take(INTEGERS)
    p.end()
    function = {"div": integer.div, "rem": integer.rem, "min": minimum, "max": maximum}[p.op]
    return single(p.opcode, (kind, kind), kind, lambda b, v: function(b, v[0], v[1], kind[0] == "s"))


def _sad(p: Parts) -> Form:
    kind = p.take(INTEGERS)
    p.end()
    return single(p.opcode, (kind,) * 3, kind, lambda b, v: integer.sad(b, v[0], v[1], v[2], kind[0] == "s"))


def _one(p: Parts) -> Form:
    kind = p.take(INTEGERS[3:])
    p.end()
    function = integer.abs_ if p.op == "abs" else integer.neg
    return single(p.opcode, (kind,), kind, lambda b, v: function(b, v[0]))


INTEGRAL: dict[str, Callable[[Parts], Form]] = {
    "add": _add_sub,
    "sub": _add_sub,
    "addc": _carried,
    "subc": _carried,
    "mul": _mul,
    "mad": _mad,
    "madc": _madc,
    "mul24": _mul24,
    "mad24": _mul24,
    "div": _two,
    "rem": _two,
    "min": _two,
    "max": _two,
    "sad": _sad,
    "abs": _one,
    "neg": _one,
}
