"""Turns a variant's PTX body (a straight line of numeric instructions) into an emitter, through `instruction.parse`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from variants import Variant, width

from ssmtool.execute.numerics import instruction
from ssmtool.execute.numerics.form import Form
from ssmtool.execute.numerics.lanes import F32, F64, as_real, bits_of, integer, resize

SELECTOR = re.compile(r"^(-?)(%?\w+)(?:\.([bh]\d+))?$")


def register(kind: str) -> str:
    """The raw register kind a variant's operand lives in."""
    bits = width(kind)
    return "b64" if bits == 64 else "b16" if bits == 16 else "b32"


def _typed(b: Any, value: Any, kind: str) -> Any:
    if kind in ("pred", "carry"):
        return value
    value = resize(b, value, int(kind[1:]))
    return as_real(b, value, {"f32": F32, "f64": F64}[kind]) if kind in ("f32", "f64") else value


def _parse(opcode: str, operands: list[str], sources: int) -> tuple[Form, list[str], tuple[str, ...], tuple[bool, ...]]:
    found = [SELECTOR.match(o) for o in operands]
    names = [m[2] if m else o for m, o in zip(found, operands, strict=True)]
    selectors = tuple((m[3] or "") if m else "" for m in found)
    negated = tuple(bool(m and m[1]) for m in found)[1:]
    if opcode.startswith("v"):
        form = instruction.parse(opcode, selectors[:3], negated if any(negated) else ())
    else:
        form = instruction.parse(opcode)
    return form, names, selectors, negated


def emit(v: Variant) -> Any:
    """`emit(builder, values)` for raw register bits, giving the raw bits of %d's register."""

    def run(b: Any, values: Sequence[Any]) -> Any:
        state: dict[str, Any] = dict(zip(("%a", "%b", "%c"), values, strict=False))
        carry: Any = None
        for line in v.text.split(";"):
            words = line.split(None, 1)
            if not words or words[0] == ".reg":
                continue
            opcode, operands = words[0], [o.strip() for o in words[1].split(",")]
            form, names, _, _ = _parse(opcode, operands, len(values))
            sources = []
            for kind, name in zip(form.operands, names[1:], strict=False):
                if re.fullmatch(r"-?(0x)?[0-9a-f]+", name) and name not in state:
                    sources.append(integer(values[0], int(name, 0), int(kind[1:])))
                else:
                    sources.append(_typed(b, state[name], kind))
            if form.operands[-1] == "carry":
                sources.append(carry)
            results = list(form.emit(b, sources))
            if form.results[-1] == "carry":
                carry = results.pop()
            for name, kind, result in zip(names[0].split("|"), form.results, results, strict=False):
                if kind == "pred":
                    state[name] = result
                    continue
                bits = max(int(kind[1:]), int(register(v.result)[1:]) if name == "%d" else 0)
                state[name] = resize(b, bits_of(b, result), bits, kind[0] == "s")
        return state["%d"]

    return run
