"""Arithmetic: the forms of `numerics`, on one scalar where lanes share or step through a value, else on vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ssmtool.execute.lower import checks
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.values import Lanes
from ssmtool.execute.numerics import instruction, special
from ssmtool.execute.numerics.form import Form, UnsupportedError
from ssmtool.execute.program.flat import Op, refuse
from ssmtool.ptx import isa
from ssmtool.ptx.operands import Negated, Operand, Pair, Register, Sink, Vector


def form_of(op: Op) -> Form:
    """The checked form of an instruction; UnsupportedError with its line when sm_37 has no such form."""
    selectors = tuple(getattr(each, "selector", None) or "" for each in op.operands)
    negated = tuple(isinstance(each, Negated) for each in op.operands[1:])
    try:
        if any(selectors) or any(negated) or isa.category(op.opcode.text) == "video":
            return instruction.parse(op.opcode.text, selectors, negated)
        return instruction.parse(op.opcode.text)
    except UnsupportedError as error:
        raise refuse(op, error.message.partition(": ")[2] or error.message) from None


def emit(gang: Gang, op: Op) -> None:
    """Any instruction that `numerics` knows."""
    form = form_of(op)
    sources, results = _operands(op, form)
    stride = gang.shapes.result(op, op.operands[1:]) if len(results) == 1 else _all_shared(gang, sources)
    lanes = [gang.read(op, operand, kind) for operand, kind in zip(sources, form.operands, strict=True)]
    checks.divided(gang, op, lanes)
    if stride is not None and all(each.stride is not None for each in lanes):
        values = [each.value for each in lanes]
    else:
        stride = None
        values = [gang.spread(each) for each in lanes]
    emitted = form.emit(gang.builder, values)
    for operand, value, kind in zip(results, emitted, form.results, strict=False):
        plain = special.before_nan(value) if kind == "f32" and gang.may_defer(operand) else value
        gang.write(op, operand, Lanes(plain, stride), kind, any_nan=plain is not value)


def _all_shared(gang: Gang, sources: Sequence[Operand]) -> int | None:
    return 0 if all(gang.shapes.of(each) == 0 for each in sources) else None


def _whole(operand: Operand) -> Operand:
    """The register of which a video instruction selects a part: the form does the selecting."""
    return replace(operand, selector=None) if isinstance(operand, Register) and operand.selector else operand


def _operands(op: Op, form: Form) -> tuple[list[Operand], list[Operand]]:
    """(sources, results) in the form's order, the condition-code register among them."""
    first = op.operands[0]
    results: list[Operand] = [first.first, first.second] if isinstance(first, Pair) else [_whole(first)]
    sources = [_whole(each.operand if isinstance(each, Negated) else each) for each in op.operands[1:]]
    if form.operands[-1:] == ("carry",):
        sources.append(isa.CARRY)
    if form.results[-1:] == ("carry",):
        results.append(isa.CARRY)
    if any(isinstance(each, (Vector,)) for each in (*sources, *results)):
        raise refuse(op, "vector operands are for memory and moves")
    if len(sources) != len(form.operands):
        raise refuse(op, f"takes {len(form.operands)} operands, {len(sources)} are given")
    if len(results) > len(form.results):
        raise refuse(op, "has one result")
    return sources, [each for each in results if not isinstance(each, Sink)] if len(results) == 1 else results
