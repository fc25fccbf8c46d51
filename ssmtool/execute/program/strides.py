"""How an instruction's result steps from lane to lane when its sources do: a rule for each opcode that keeps steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ssmtool.execute.program.flat import Op
from ssmtool.execute.program.geometry import WIDEST, Stride
from ssmtool.execute.program.ranges import integral
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Operand, Vector

if TYPE_CHECKING:
    from ssmtool.execute.program.shapes import Shapes


def _plain_integer(op: Op) -> bool:
    return integral(op) and not {"cc", "sat", "hi"} & set(op.modifiers)


def _rule_move(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    if len(sources) != 1 or isinstance(sources[0], Vector) or "local" in op.modifiers:
        return None
    return shapes.of(sources[0])


def _rule_add(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    first, second = shapes.of(sources[0]), shapes.of(sources[1])
    if first is None or second is None or not _plain_integer(op):
        return None
    return first + second if op.base == "add" else first - second


def _product(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    """The stride of a product of a stepped and a constant factor; of two shared ones, 0."""
    first, second = shapes.of(sources[0]), shapes.of(sources[1])
    if first == 0 and second == 0:
        return 0
    if not _plain_integer(op):
        return None
    for stepped, other, stride in ((sources[0], sources[1], first), (sources[1], sources[0], second)):
        factor = shapes.ranges.constant(other)
        if stride is None or factor is None:
            continue
        if "wide" in op.modifiers:
            if op.opcode.types[0] not in ("u32", "s32") or not shapes.never_wraps(stepped):
                continue
            factor &= 0xFFFFFFFF  # what a negative literal, or one beyond the type, is as a factor of 32 bits
            if op.opcode.types[0] == "s32" and factor >= WIDEST:
                factor -= 2 * WIDEST
        return stride * factor
    return None


def _rule_multiply(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    return _product(shapes, op, sources)


def _rule_multiply_add(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    product, addend = _product(shapes, op, sources), shapes.of(sources[2])
    if product is None or addend is None or (product + addend and not _plain_integer(op)):
        return None
    return product + addend


def _rule_shift_left(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    stride, amount = shapes.of(sources[0]), shapes.ranges.constant(sources[1])
    if stride is None or amount is None or not 0 <= amount < TYPE_BITS[op.opcode.types[0]]:
        return None
    return stride << amount


def _rule_shift_right(shapes: Shapes, _: Op, sources: Sequence[Operand]) -> Stride:
    stride, amount = shapes.of(sources[0]), shapes.ranges.constant(sources[1])
    if not stride or stride < 0 or amount is None or not 0 <= amount < 32:
        return None
    reach = stride * (shapes.geometry.lanes - 1)
    return 0 if reach < shapes.ranges.alignment(sources[0]) and reach < 1 << amount else None


def _rule_and(shapes: Shapes, _: Op, sources: Sequence[Operand]) -> Stride:
    for stepped, other in ((sources[0], sources[1]), (sources[1], sources[0])):
        stride, mask = shapes.of(stepped), shapes.ranges.constant(other)
        if stride and stride > 0 and mask is not None and mask > 0 and mask & (mask + 1) == 0:
            aligned = shapes.ranges.alignment(stepped)
            if stride * (shapes.geometry.lanes - 1) < aligned and aligned <= mask + 1:
                return stride
    return None


def _rule_or(shapes: Shapes, _: Op, sources: Sequence[Operand]) -> Stride:
    """Bits that cannot meet are added: compilers write `or` for `add` where they know the alignment."""
    for stepped, other in ((sources[0], sources[1]), (sources[1], sources[0])):
        stride, bounds = shapes.of(stepped), shapes.ranges.bounds(stepped)
        if stride and shapes.of(other) == 0 and bounds is not None and bounds[1] < shapes.ranges.alignment(other):
            return stride
    return None


def _rule_convert(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    stride = shapes.of(sources[0])
    if not stride or not _plain_integer(op) or len(op.opcode.types) != 2:
        return None
    to, source = (TYPE_BITS[kind] for kind in op.opcode.types)
    if source < 32 or to < 32:
        return None
    return stride if to <= source or shapes.never_wraps(sources[0]) else None


def _rule_shuffle(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    """`shfl.idx` of one lane to all."""
    if "idx" in op.modifiers and shapes.of(sources[1]) == 0 and shapes.ranges.constant(sources[2]) == 31:
        return 0
    return None


RULES: dict[str, Callable[[Shapes, Op, Sequence[Operand]], Stride]] = {
    "mov": _rule_move,
    "cvta": _rule_move,
    "add": _rule_add,
    "sub": _rule_add,
    "mul": _rule_multiply,
    "mad": _rule_multiply_add,
    "shl": _rule_shift_left,
    "shr": _rule_shift_right,
    "and": _rule_and,
    "or": _rule_or,
    "cvt": _rule_convert,
    "shfl": _rule_shuffle,
}
"""The stride of a result from those of the sources; None when there is none, or the rule cannot tell."""
