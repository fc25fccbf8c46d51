"""Arithmetic forms by family, and why some are refused: what the pages made from them share."""

from __future__ import annotations

from ssmtool.execute.numerics.form import UnsupportedError
from ssmtool.probe.body import forms_of
from ssmtool.probe.variants import Variant

_FLOAT = ("f16", "f32", "f64")
_INTEGER = "add sub mul mad sad div rem min max abs neg mul24 mad24"
_BITS = "and or xor not cnot shl shr shf prmt popc clz bfind bfe bfi brev fns"
_FAMILY = {
    **dict.fromkeys(_INTEGER.split(), "integer arithmetic"),
    **dict.fromkeys(_BITS.split(), "bits, logic and shifts"),
    **dict.fromkeys("ex2 lg2 sin cos rsqrt".split(), "approximate units"),  # noqa: SIM905
    **dict.fromkeys("set setp selp slct testp copysign".split(), "comparison and selection"),  # noqa: SIM905
    "cvt": "conversion",
}


def family_of(variant: Variant) -> str:
    """The row of an arithmetic form."""
    words = variant.name.replace(" ", ".").split(".")
    base = words[0]
    if base.startswith("v"):
        return "video instructions"
    if "cc" in variant.name or base in ("addc", "subc", "madc"):
        return "carry chains"
    if "approx" in words or "full" in words:
        return "approximate units"
    if words[-1] in _FLOAT and _FAMILY.get(base, "integer arithmetic") == "integer arithmetic":
        return f"IEEE arithmetic, {words[-1]}"
    return _FAMILY[base]


def refusal(variant: Variant) -> str | None:
    """Why a form is refused; None if it is executed."""
    try:
        forms_of(variant)
    except UnsupportedError as error:
        why = error.message.partition(": ")[2]
        return "the source's values all fit without .sat" if why.startswith(".sat is not allowed: every") else why
    return None
