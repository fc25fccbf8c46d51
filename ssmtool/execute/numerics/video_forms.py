"""Readers of the video opcodes and of their operands' selectors.

Some forms are refused by name: there the H200, which emulates these instructions, answers something else than the
ISA's text (an unsaturated .sat, a scaled vmad of its low word alone), and no K80 has been asked.
"""

from __future__ import annotations

from ssmtool.execute.numerics import video as v
from ssmtool.execute.numerics.form import Form, Parts, UnsupportedError, single

UNSURE = "the ISA's text and the H200 disagree about this form, so it is not executed"
KINDS = ("u32", "s32")
SECOND = ("add", "min", "max")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
SIMD = tuple(f"{op}{n}" for n in "24" for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"))
VIDEO = (*v.SCALAR, "vshl", "vshr", "vmad", "vset", *SIMD)


def video(p: Parts, selectors: tuple[str, ...], negated: tuple[bool, ...]) -> Form:
    """The form of a video instruction; `selectors` and `negated` as `instruction.parse` takes them.

    Scalar forms have two operands, or three with a secondary operation or a destination selector.
    """
    if p.op in SIMD:
        return _simd(p, selectors)
    chosen = _selectors(p, selectors)
    if p.op == "vmad":
        return _vmad(p, chosen, negated)
    if p.op == "vset":
        return _vset(p, chosen)
    if p.op in ("vshl", "vshr"):
        return _shift(p, chosen)
    types = (p.take(KINDS), p.take(KINDS), p.take(KINDS))
    sat = p.flag("sat")
    second = p.maybe(SECOND) or ""
    p.end()
    if sat and (chosen[0] or (types[0] == "u32" and p.op in v.SCALAR[:3])):
        raise UnsupportedError(p.opcode, UNSURE)
    if second in ("min", "max") and types[0] == "u32" and ("s32" in types[1:] or p.op == "vsub"):
        raise UnsupportedError(p.opcode, UNSURE)
    return single(
        p.opcode, _operands(p, types[1:], types[0], chosen, second), types[0],
        lambda b, x: v.scalar(b, p.op, types, sat, chosen, x, second),
    )  # fmt: skip


def _selectors(p: Parts, given: tuple[str, ...]) -> tuple[str, str, str]:
    padded = (*given, "", "", "")[:3]
    for name in given:
        if name not in v.PIECES:
            raise UnsupportedError(p.opcode, f".{name} selects no part of a scalar video operand")
    return padded[0], padded[1], padded[2]


def _operands(
    p: Parts, sources: tuple[str, ...], result: str, chosen: tuple[str, str, str], second: str
) -> tuple[str, ...]:
    if second and chosen[0]:
        raise UnsupportedError(p.opcode, f".{second} and a destination selector exclude each other")
    return (*sources, result) if second or chosen[0] else sources


def _shift(p: Parts, chosen: tuple[str, str, str]) -> Form:
    types = (p.take(KINDS), p.take(KINDS))
    p.take(("u32",))
    sat = p.flag("sat")
    wrap = p.take(("clamp", "wrap"), "mode") == "wrap"
    second = p.maybe(SECOND) or ""
    p.end()
    if (p.op == "vshl" and sat) or (sat and chosen[0]) or second in ("min", "max"):
        raise UnsupportedError(p.opcode, UNSURE)
    left = p.op == "vshl"
    return single(
        p.opcode, _operands(p, (types[1], "u32"), types[0], chosen, second), types[0],
        lambda b, x: v.shift(b, left, wrap, types, sat, chosen, x, second),
    )  # fmt: skip


def _vmad(p: Parts, chosen: tuple[str, str, str], negated: tuple[bool, ...]) -> Form:
    result, atype, btype = p.take(KINDS), p.take(KINDS), p.take(KINDS)
    plus_one = p.flag("po")
    sat = p.flag("sat")
    scale = {"shr7": 7, "shr15": 15, None: 0}[p.maybe(("shr7", "shr15"))]
    p.end()
    if (sat or scale) and (atype, btype) != ("s32", "s32"):
        raise UnsupportedError(p.opcode, UNSURE)
    if chosen[0]:
        raise UnsupportedError(p.opcode, "vmad has no destination selector")
    signs = ((*negated, False, False, False)[0], (*negated, False, False, False)[1], (*negated, False, False, False)[2])
    if plus_one and any(signs):
        raise UnsupportedError(p.opcode, ".po and a negated operand exclude each other")
    return single(
        p.opcode, (atype, btype, result), result,
        lambda b, x: v.vmad(b, atype, btype, sat, scale, plus_one, signs, chosen, x),
    )  # fmt: skip


def _vset(p: Parts, chosen: tuple[str, str, str]) -> Form:
    atype, btype = p.take(KINDS), p.take(KINDS)
    op = p.take(COMPARISONS, "comparison")
    second = p.maybe(SECOND) or ""
    p.end()
    if second in ("min", "max"):
        raise UnsupportedError(p.opcode, UNSURE)
    return single(
        p.opcode, _operands(p, (atype, btype), "u32", chosen, second), "u32",
        lambda b, x: v.vset(b, op, atype, btype, chosen, x, second),
    )  # fmt: skip


def _simd(p: Parts, given: tuple[str, ...]) -> Form:
    n = int(p.op[-1])
    op = p.op[:-1]
    result = "u32" if op == "vset" else p.take(KINDS)
    atype, btype = p.take(KINDS), p.take(KINDS)
    compare = p.take(COMPARISONS, "comparison") if op == "vset" else ""
    sat = op != "vset" and p.flag("sat")
    total = not sat and p.flag("add")
    p.end()
    lanes = _lanes(p, n, given)
    return single(
        p.opcode, (atype, btype, result), result,
        lambda b, x: v.simd(b, op, (result, atype, btype), sat, total, lanes, x, compare),
    )  # fmt: skip


def _lanes(p: Parts, n: int, given: tuple[str, ...]) -> tuple[tuple[int, int] | None, ...]:
    """Sources of each part of d: a mask .h10/.b3210 (fewer digits mask parts out), selectors .hXY/.bXYZW."""
    letter = "h" if n == 2 else "b"
    whole = {"": "".join(str(k) for k in reversed(range(n)))}
    mask, first, second = (*given, "", "", "")[:3]
    mask = mask[1:] or whole[""]
    first = first[1:] or whole[""]
    second = second[1:] or "".join(str(k) for k in reversed(range(n, 2 * n)))
    good = all(not s or s[0] == letter for s in given)
    good = good and len(first) == len(second) == n and all(c in "01234567"[: 2 * n] for c in first + second)
    if not good or any(c not in whole[""] for c in mask):
        raise UnsupportedError(p.opcode, f"selectors {', '.join('.' + s for s in given if s)} do not fit")
    return tuple((int(first[n - 1 - k]), int(second[n - 1 - k])) if str(k) in mask else None for k in range(n))
