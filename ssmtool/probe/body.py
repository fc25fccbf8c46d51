"""Turns a variant's PTX body (a straight line of numeric instructions) into an emitter, through `instruction.parse`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ssmtool.execute.numerics import instruction
from ssmtool.execute.numerics.form import Form
from ssmtool.execute.numerics.lanes import F32, F64, as_real, bits_of, integer, resize
from ssmtool.probe.variants import Variant, register

SELECTOR = re.compile(r"^(-?)(%?\w+)(?:\.([bh]\d+))?$")


def _typed(b: Any, value: Any, kind: str) -> Any:
    if kind in ("pred", "carry"):
        return value
    value = resize(b, value, int(kind[1:]))
    return as_real(b, value, {"f32": F32, "f64": F64}[kind]) if kind in ("f32", "f64") else value


def lines(v: Variant) -> list[tuple[Form, list[str]]]:
    """The body's instructions: each one's form and its operands' names without selector and sign."""
    found = []
    for line in v.text.split(";"):
        opcode, _, rest = line.strip().partition(" ")
        if not rest or opcode == ".reg":
            continue
        operands = [o.strip() for o in rest.split(",")]
        matches = [SELECTOR.match(o) for o in operands]
        names = [m[2] if m else o for m, o in zip(matches, operands, strict=True)]
        if opcode.startswith("v"):
            selectors = tuple((m[3] or "") if m else "" for m in matches)[:3]
            negated = tuple(bool(m and m[1]) for m in matches)[1:]
            form = instruction.parse(opcode, selectors, negated if any(negated) else ())
        else:
            form = instruction.parse(opcode)
        found.append((form, names))
    return found


def forms_of(v: Variant) -> list[Form]:
    """The forms of the body's instructions; raises UnsupportedError for the first that is refused."""
    return [form for form, _ in lines(v)]


def emit(v: Variant) -> Any:
    """`emit(builder, values)` for raw register bits, giving the raw bits of %d's register."""
    program = lines(v)

    def run(b: Any, values: Sequence[Any]) -> Any:
        state: dict[str, Any] = dict(zip(("%a", "%b", "%c"), values, strict=False))
        carry: Any = None
        for form, names in program:
            sources = []
            for kind, name in zip(form.operands, names[1:], strict=False):
                if name in state:
                    sources.append(_typed(b, state[name], kind))
                elif kind != "carry":
                    sources.append(integer(values[0], int(name, 0), int(kind[1:])))
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
