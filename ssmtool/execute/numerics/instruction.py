"""From an opcode's text to its checked form: `parse("fma.rn.ftz.f32")`.

Whatever is not PTX 7.4 on sm_37 is refused by name here, before anything runs. Instructions about memory, control,
other lanes and data movement (mov, cvta, ld, shfl, vote, ...) are not numeric and not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ssmtool.execute.numerics import bits, compare
from ssmtool.execute.numerics.floating import FLOATING
from ssmtool.execute.numerics.form import Form, Parts, UnsupportedError, single
from ssmtool.execute.numerics.integral import INTEGRAL
from ssmtool.execute.numerics.video_forms import VIDEO, video

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
PLAIN = ("b16", "b32", "b64")
FLOATS = ("f32", "f64")

NEWER = {
    "tanh": "sm_75", "lop3": "sm_50", "dp4a": "sm_61", "dp2a": "sm_61", "bmsk": "PTX 7.6", "szext": "PTX 7.6",
    "fma.relu": "sm_80",
}  # fmt: skip


def _logic(p: Parts) -> Form:
    kind = p.take(("pred", *PLAIN))
    p.end()
    if p.op == "not":
        return single(p.opcode, (kind,), kind, lambda b, v: b.not_(v[0]))
    operation = {"and": "and_", "or": "or_", "xor": "xor"}[p.op]
    return single(p.opcode, (kind, kind), kind, lambda b, v: getattr(b, operation)(v[0], v[1]))


def _cnot(p: Parts) -> Form:
    kind = p.take(PLAIN)
    p.end()
    return single(p.opcode, (kind,), kind, lambda b, v: bits.cnot(b, v[0]))


def _shift(p: Parts) -> Form:
    kind = p.take(PLAIN if p.op == "shl" else (*PLAIN, *INTEGERS))
    p.end()
    if p.op == "shl":
        return single(p.opcode, (kind, "u32"), kind, lambda b, v: bits.shl(b, v[0], v[1]))
    return single(p.opcode, (kind, "u32"), kind, lambda b, v: bits.shr(b, v[0], v[1], kind[0] == "s"))


def _funnel(p: Parts) -> Form:
    left = p.take(("l", "r"), "direction") == "l"
    wrap = p.take(("clamp", "wrap"), "mode") == "wrap"
    p.take(("b32",))
    p.end()
    return single(p.opcode, ("b32", "b32", "u32"), "b32", lambda b, v: bits.shf(b, v[0], v[1], v[2], left, wrap))


def _prmt(p: Parts) -> Form:
    p.take(("b32",))
    mode = p.maybe(bits.PRMT_MODES)
    p.end()
    return single(p.opcode, ("b32",) * 3, "b32", lambda b, v: bits.prmt(b, v[0], v[1], v[2], mode))


def _count(p: Parts) -> Form:
    kind = p.take(("b32", "b64"))
    p.end()
    function = {"popc": bits.popc, "clz": bits.clz_, "brev": bits.brev}[p.op]
    return single(p.opcode, (kind,), kind if p.op == "brev" else "u32", lambda b, v: function(b, v[0]))


def _bfind(p: Parts) -> Form:
    amount = p.flag("shiftamt")
    kind = p.take(("u32", "u64", "s32", "s64"))
    p.end()
    return single(p.opcode, (kind,), "u32", lambda b, v: bits.bfind(b, v[0], kind[0] == "s", amount))


def _bfe(p: Parts) -> Form:
    kind = p.take(("u32", "u64", "s32", "s64"))
    p.end()
    signed = kind[0] == "s"
    return single(p.opcode, (kind, "u32", "u32"), kind, lambda b, v: bits.bfe(b, v[0], v[1], v[2], signed))


def _bfi(p: Parts) -> Form:
    kind = p.take(("b32", "b64"))
    p.end()
    return single(p.opcode, (kind, kind, "u32", "u32"), kind, lambda b, v: bits.bfi(b, v[0], v[1], v[2], v[3]))


def _fns(p: Parts) -> Form:
    p.take(("b32",))
    p.end()
    return single(p.opcode, ("b32", "u32", "s32"), "u32", lambda b, v: bits.fns(b, v[0], v[1], v[2]))


def _selp(p: Parts) -> Form:
    kind = p.take((*PLAIN, *INTEGERS, *FLOATS))
    p.end()
    return single(p.opcode, (kind, kind, "pred"), kind, lambda b, v: b.select(v[2], v[0], v[1]))


def _slct(p: Parts) -> Form:
    ftz = p.flag("ftz")
    kind = p.take((*PLAIN, *INTEGERS, *FLOATS))
    asked = p.take(("f32",) if ftz else ("s32", "f32"))
    p.end()
    return single(p.opcode, (kind, kind, asked), kind, lambda b, v: compare.slct(b, v[0], v[1], v[2], ftz))


def _comparison(p: Parts) -> tuple[str, str | None, bool]:
    op = p.take((*compare.FLOAT, *compare.UNSIGNED), "comparison")
    return op, p.maybe(("and", "or", "xor")), p.flag("ftz")


def _check_comparison(p: Parts, op: str, ftz: bool, kind: str) -> None:
    allowed: Sequence[str] = compare.FLOAT
    if kind[0] == "b":
        allowed = ("eq", "ne")
    elif kind[0] != "f":
        allowed = (*compare.INTEGER, *(compare.UNSIGNED if kind[0] == "u" else ()))
    if op not in allowed:
        raise UnsupportedError(p.opcode, f".{op} does not compare .{kind}")
    if ftz and kind != "f32":
        raise UnsupportedError(p.opcode, f".ftz does not go with .{kind}")


def _setp(p: Parts) -> Form:
    """Two results: p, and q, which has the comparison inverted (the predicate operand joined to both)."""
    op, boolean, ftz = _comparison(p)
    kind = p.take((*PLAIN, *INTEGERS, *FLOATS))
    p.end()
    _check_comparison(p, op, ftz, kind)

    def emit(b: object, v: Sequence[object]) -> tuple[object, object]:
        true = compare.compare(b, op, kind, v[0], v[1], ftz)
        false = b.not_(true)  # type: ignore[attr-defined]
        if boolean is None:
            return true, false
        return compare.combine(b, boolean, true, v[2]), compare.combine(b, boolean, false, v[2])

    return Form(p.opcode, (kind, kind, *(("pred",) if boolean else ())), ("pred", "pred"), emit)


def _set(p: Parts) -> Form:
    op, boolean, ftz = _comparison(p)
    result = p.take(("u32", "s32", "f32"))
    kind = p.take((*PLAIN, *INTEGERS, *FLOATS))
    p.end()
    _check_comparison(p, op, ftz, kind)

    def emit(b: object, v: Sequence[object]) -> object:
        true = compare.compare(b, op, kind, v[0], v[1], ftz)
        if boolean is not None:
            true = compare.combine(b, boolean, true, v[2])
        return compare.set_value(b, true, result)

    return single(p.opcode, (kind, kind, *(("pred",) if boolean else ())), result, emit)


READERS: dict[str, Callable[[Parts], Form]] = {
    **dict.fromkeys(("and", "or", "xor", "not"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "brev"), _count),
    "cnot": _cnot,
    "shf": _funnel,
    "prmt": _prmt,
    "bfind": _bfind,
    "bfe": _bfe,
    "bfi": _bfi,
    "fns": _fns,
    "selp": _selp,
    "slct": _slct,
    "setp": _setp,
    "set": _set,
}


@lru_cache(maxsize=4096)
def parse(opcode: str, selectors: tuple[str, ...] = (), negated: tuple[bool, ...] = ()) -> Form:
    """The form of `opcode`. Raises UnsupportedError, naming it, if sm_37 at PTX 7.4 has no such form.

    `selectors` are the byte/half selectors of a video instruction's operands, the destination first ("" for none);
    `negated` says which source operands of vmad carry a minus sign.
    """
    parts = Parts(opcode)
    if parts.op in VIDEO:
        return video(parts, selectors, negated)
    if parts.op in NEWER:
        raise UnsupportedError(opcode, f"needs {NEWER[parts.op]}; sm_37 with PTX 7.4 does not have it")
    for reader in (READERS, INTEGRAL, FLOATING):
        if parts.op in reader:
            # add, sub, mul, ... are read as integers when their last part says so, else as floats
            if reader is INTEGRAL and parts.op in FLOATING and parts.rest and parts.rest[-1][:1] == "f":
                continue
            return reader[parts.op](parts)
    raise UnsupportedError(opcode, "not a numeric instruction of PTX 7.4")


def known(opcode: str) -> bool:
    """True if the opcode's first word belongs to this room (its form may still be refused)."""
    op = opcode.split(".")[0]
    return op in READERS or op in INTEGRAL or op in FLOATING or op in VIDEO or op in NEWER
