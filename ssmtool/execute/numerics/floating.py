"""Readers of the floating-point opcodes, cvt included."""

from __future__ import annotations

from collections.abc import Callable

from ssmtool.execute.numerics import approx, convert, ieee, minmax
from ssmtool.execute.numerics.evidence import CONTRACTION, EVIDENCE, EXACT
from ssmtool.execute.numerics.form import Form, Parts, UnsupportedError, single

FLOATS = ("f32", "f64")
INTEGER_KINDS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")


def _modes(p: Parts) -> tuple[bool, bool, str]:
    """{.ftz}{.sat}.type: ftz and sat are f32's."""
    ftz = p.flag("ftz")
    sat = p.flag("sat")
    kind = p.take(("f32",) if ftz or sat else FLOATS)
    p.end()
    return ftz, sat, kind


def _arithmetic(p: Parts) -> Form:
    rounding = p.maybe(ieee.ROUNDINGS)
    ftz, sat, kind = _modes(p)
    function = {"add": ieee.add, "sub": ieee.sub, "mul": ieee.mul}[p.op]
    evidence = CONTRACTION if rounding is None else EXACT
    return single(
        p.opcode, (kind, kind), kind, lambda b, v: function(b, v[0], v[1], rounding or "rn", ftz, sat), evidence
    )


def _fma(p: Parts) -> Form:
    rounding = p.take(ieee.ROUNDINGS, "rounding")
    ftz, sat, kind = _modes(p)
    return single(p.opcode, (kind,) * 3, kind, lambda b, v: ieee.fma(b, v[0], v[1], v[2], rounding, ftz, sat))


def _div(p: Parts) -> Form:
    mode = p.take(("approx", "full", *ieee.ROUNDINGS), "rounding")
    ftz = p.flag("ftz")
    kind = p.take(("f32",) if ftz or mode in ("approx", "full") else FLOATS)
    p.end()
    if mode in ("approx", "full"):
        full = mode == "full"
        return single(
            p.opcode, (kind, kind), kind, lambda b, v: approx.div(b, v[0], v[1], ftz, full), EVIDENCE[f"div.{mode}"]
        )
    return single(p.opcode, (kind, kind), kind, lambda b, v: ieee.div(b, v[0], v[1], mode, ftz))


def _rooted(p: Parts) -> Form:
    """Readers of rcp and sqrt: .approx or a rounding."""
    mode = p.take(("approx", *ieee.ROUNDINGS), "rounding")
    if mode == "approx":
        return _approximate(p)
    ftz = p.flag("ftz")
    kind = p.take(("f32",) if ftz else FLOATS)
    p.end()
    function = ieee.rcp if p.op == "rcp" else ieee.sqrt
    return single(p.opcode, (kind,), kind, lambda b, v: function(b, v[0], mode, ftz))


def _approximate_only(p: Parts) -> Form:
    p.take(("approx",), "mode")
    return _approximate(p)


def _approximate(p: Parts) -> Form:
    ftz = p.flag("ftz")
    wide = p.op == "rsqrt" or (p.op == "rcp" and ftz)
    kind = p.take(FLOATS if wide else ("f32",))
    p.end()
    evidence = EVIDENCE[f"{p.op}.approx"]
    if kind == "f32":
        return single(p.opcode, (kind,), kind, lambda b, v: approx.approx(b, p.op, v[0], ftz), evidence)
    if p.op == "rcp":
        return single(p.opcode, (kind,), kind, lambda b, v: approx.rcp_f64(b, v[0]), evidence)
    return single(p.opcode, (kind,), kind, lambda b, v: approx.rsqrt_f64(b, v[0], ftz), evidence)


def _sign(p: Parts) -> Form:
    ftz = p.flag("ftz")
    kind = p.take(("f32",) if ftz else FLOATS)
    p.end()
    function = minmax.abs_ if p.op == "abs" else minmax.neg
    return single(p.opcode, (kind,), kind, lambda b, v: function(b, v[0], ftz))


def _extreme(p: Parts) -> Form:
    ftz = p.flag("ftz")
    if p.rest and p.rest[0] in ("NaN", "xorsign"):
        raise UnsupportedError(p.opcode, f".{p.rest[0]} needs sm_80")
    kind = p.take(("f32",) if ftz else FLOATS)
    p.end()
    function = minmax.minimum if p.op == "min" else minmax.maximum
    return single(p.opcode, (kind, kind), kind, lambda b, v: function(b, v[0], v[1], ftz))


def _copysign(p: Parts) -> Form:
    kind = p.take(FLOATS)
    p.end()
    return single(p.opcode, (kind, kind), kind, lambda b, v: minmax.copysign(b, v[0], v[1]))


def _testp(p: Parts) -> Form:
    test = p.take(minmax.TESTS, "property")
    kind = p.take(FLOATS)
    p.end()
    return single(p.opcode, (kind,), "pred", lambda b, v: minmax.testp(b, v[0], test))


def _cvt(p: Parts) -> Form:
    rounding = p.maybe((*ieee.ROUNDINGS, *convert.INTEGRAL))
    ftz, sat = p.flag("ftz"), p.flag("sat")
    kinds = (*INTEGER_KINDS, "f16", *FLOATS)
    dst, src = p.take(kinds), p.take(kinds)
    p.end()
    _check_cvt(p, rounding, ftz, sat, dst, src)
    return single(p.opcode, (src,), dst, lambda b, v: convert.cvt(b, v[0], dst, src, rounding, ftz, sat))


def _check_cvt(p: Parts, rounding: str | None, ftz: bool, sat: bool, dst: str, src: str) -> None:
    from_float, to_float = src[0] == "f", dst[0] == "f"
    if ftz and "f32" not in (dst, src):
        raise UnsupportedError(p.opcode, ".ftz needs an f32 operand")
    if not from_float and not to_float:
        needed: tuple[str, ...] = ()
        if sat and not _can_overflow(dst, src):
            raise UnsupportedError(p.opcode, f".sat is not allowed: every {src} is a {dst}")
    elif from_float and not to_float:
        needed = tuple(convert.INTEGRAL)
    elif not from_float or int(dst[1:]) < int(src[1:]):
        needed = ieee.ROUNDINGS
    else:
        needed = ()
        if rounding in convert.INTEGRAL and dst == src:
            return
    if needed and rounding not in needed:
        raise UnsupportedError(p.opcode, f"{src} to {dst} needs a rounding among .{', .'.join(needed)}")
    if not needed and rounding is not None:
        raise UnsupportedError(p.opcode, f".{rounding} is not allowed from {src} to {dst}")


def _can_overflow(dst: str, src: str) -> bool:
    """Whether some value of integer kind `src` lies outside `dst` (ptxas refuses a .sat that does nothing)."""
    top = {"u": 0, "s": 1}
    if src[0] == "s" and dst[0] == "u":
        return True
    return int(src[1:]) - top[src[0]] > int(dst[1:]) - top[dst[0]]


FLOATING: dict[str, Callable[[Parts], Form]] = {
    **dict.fromkeys(("add", "sub", "mul"), _arithmetic),
    **dict.fromkeys(("fma", "mad"), _fma),
    **dict.fromkeys(("rcp", "sqrt"), _rooted),
    **dict.fromkeys(("rsqrt", "sin", "cos", "lg2", "ex2"), _approximate_only),
    **dict.fromkeys(("abs", "neg"), _sign),
    **dict.fromkeys(("min", "max"), _extreme),
    "div": _div,
    "copysign": _copysign,
    "testp": _testp,
    "cvt": _cvt,
}
