"""Values of all lanes at once: one scalar for what lanes share or step through, one vector for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ssmtool.execute.numerics.lanes import F32, F64, I32, I64, Builder, Splat, Value, constant, undefined, width
from ssmtool.execute.program.geometry import Stride

Type = Any
"""An LLVM type (llvmlite has no stubs)."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """A value in every lane: `value` is lane 0's with `stride` added from lane to lane, or a vector (stride None)."""

    value: Value
    stride: Stride = 0

    @property
    def shared(self) -> bool:
        """Whether all lanes hold the same."""
        return self.stride == 0


def lane_type(kind: str) -> Type:
    """The LLVM type that carries a PTX kind in one lane."""
    if kind in ("pred", "carry"):
        return ir.IntType(1)
    if kind == "f32":
        return F32
    if kind == "f64":
        return F64
    bits = {"f16x2": 32, "bf16x2": 32, "f16": 16, "bf16": 16}.get(kind)
    return ir.IntType(bits if bits is not None else int(kind[1:]))


def vector_of(lane: Type, lanes: int) -> Type:
    """The vector type."""
    return ir.VectorType(lane, lanes)


def splat(b: Builder, value: Value, lanes: int) -> Value:
    """A scalar in every lane."""
    target = ir.VectorType(value.type, lanes)
    if type(value) is ir.Constant:
        return Splat(target, value)
    one = b.insert_element(undefined(target), value, ir.Constant(I32, 0))
    mask = Splat(ir.VectorType(I32, lanes), ir.Constant(I32, 0))
    return b.shuffle_vector(one, undefined(target), mask)


def pointer(b: Builder, address: Value, to: Type) -> Value:
    """An integer address as a pointer to `to`."""
    return b.inttoptr(address, to.as_pointer())


def word(b: Builder, table: Value, slot: int) -> Value:
    """Word `slot` of a table of 64-bit words."""
    return b.load(b.gep(table, [ir.Constant(I64, slot)]))


def set_word(b: Builder, table: Value, slot: int, value: Value) -> None:
    """Write word `slot` of a table."""
    b.store(value, b.gep(table, [ir.Constant(I64, slot)]))


def i64(number: int) -> Value:
    """A 64-bit constant."""
    return ir.Constant(I64, int(number))


def any_lane(b: Builder, mask: Value) -> Value:
    """Whether some lane of a mask is set."""
    if not isinstance(mask.type, ir.VectorType):
        return mask
    bits = ir.IntType(mask.type.count)
    return b.icmp_unsigned("!=", b.bitcast(mask, bits), ir.Constant(bits, 0))


def mask_bits(b: Builder, mask: Value) -> Value:
    """A mask as an integer, lane 0 the lowest bit."""
    return b.bitcast(mask, ir.IntType(mask.type.count))


def as_type(b: Builder, value: Value, lane: Type, signed: bool = False) -> Value:
    """The same bits as lanes of another type; integers are truncated or extended."""
    vector = isinstance(value.type, ir.VectorType)
    have = value.type.element if vector else value.type
    if have == lane:
        return value

    def shape(kind: Type) -> Type:
        return ir.VectorType(kind, value.type.count) if vector else kind

    if have in (F32, F64):
        value = b.bitcast(value, shape(ir.IntType(width(value))))
        have = ir.IntType(width(value))
    target = ir.IntType({F32: 32, F64: 64}[lane]) if lane in (F32, F64) else lane
    if have.width > target.width:
        value = b.trunc(value, shape(target))
    elif have.width < target.width:
        value = b.sext(value, shape(target)) if signed else b.zext(value, shape(target))
    return value if target == lane else b.bitcast(value, shape(lane))


def zeros(target: Type) -> Value:
    """Zero in every lane."""
    lane = target.element if isinstance(target, ir.VectorType) else target
    zero = ir.Constant(lane, 0.0) if lane in (F32, F64) else ir.Constant(lane, 0)
    return constant(target, zero)
