"""Small words for building lane-wise IR: constants, casts and intrinsics that work on scalars and vectors alike.

Every function takes an `ir.IRBuilder` and values that are all scalars or all vectors of one length; nothing here
branches. LLVM's own fast-math flags are never set, so subnormals, signed zeros and infinities are kept.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

Value = Any
"""An `ir.Value` (llvmlite has no type stubs)."""
Builder = Any
"""An `ir.IRBuilder`."""

F32 = ir.FloatType()
F64 = ir.DoubleType()
I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))


def shaped(value: Value, scalar: Any) -> Any:
    """The type `scalar` with as many lanes as `value` has."""
    if isinstance(value.type, ir.VectorType):
        return ir.VectorType(scalar, value.type.count)
    return scalar


def scalar_type(value: Value) -> Any:
    """The type of one lane."""
    return value.type.element if isinstance(value.type, ir.VectorType) else value.type


class Splat(ir.Constant):  # type: ignore[misc]
    """A vector constant with one value in all lanes, written `splat (i32 5)`.

    Written out, constants are most of the text of a kernel of 256 lanes: eight times its parse time.
    """

    def __init__(self, vector: Any, lane: Any) -> None:
        super().__init__(vector, None)
        self._lane = lane

    def _get_reference(self) -> str:
        return f"splat ({self._lane})"


def undefined(vector: Any) -> Value:
    """A vector of which nothing is asked, in few words."""
    return Splat(vector, ir.Constant(vector.element, ir.Undefined))


def constant(target: Any, lane: Any) -> Value:
    """The scalar constant `lane` as `target`: itself, or in every lane of a vector type."""
    return Splat(target, lane) if isinstance(target, ir.VectorType) else lane


def integer(value: Value, number: int, bits: int | None = None) -> Value:
    """`number` in every lane, as an integer of `bits` (default: the width of `value`'s own integer lanes)."""
    lane = ir.IntType(bits) if bits is not None else scalar_type(value)
    return constant(shaped(value, lane), ir.Constant(lane, number & ((1 << lane.width) - 1)))


def real(value: Value, number: float, lane: Any = None) -> Value:
    """`number` in every lane, as `lane` (default: the type of `value`'s own lanes)."""
    lane = scalar_type(value) if lane is None else lane
    return constant(shaped(value, lane), ir.Constant(lane, number))


def width(value: Value) -> int:
    """Bits of one lane."""
    lane = scalar_type(value)
    return {F32: 32, F64: 64}[lane] if lane in (F32, F64) else int(lane.width)


def bits_of(b: Builder, value: Value) -> Value:
    """The same bits as integers."""
    lane = scalar_type(value)
    if isinstance(lane, ir.IntType):
        return value
    return b.bitcast(value, shaped(value, ir.IntType(width(value))))


def as_real(b: Builder, value: Value, lane: Any) -> Value:
    """The same bits as `lane` (F32 or F64)."""
    return value if scalar_type(value) == lane else b.bitcast(value, shaped(value, lane))


def resize(b: Builder, value: Value, bits: int, signed: bool = False) -> Value:
    """Integers truncated or extended to `bits`."""
    have = width(value)
    if have == bits:
        return value
    target = shaped(value, ir.IntType(bits))
    if have > bits:
        return b.trunc(value, target)
    return b.sext(value, target) if signed else b.zext(value, target)


def _mangled(kind: Any) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_mangled(kind.element)}"
    if kind == F32:
        return "f32"
    if kind == F64:
        return "f64"
    return f"i{kind.width}"


def intrinsic(b: Builder, name: str, result: Any, args: list[Value], overload: Any = None) -> Value:
    """Call `llvm.NAME.<overload>` (overload defaults to the first argument's type)."""
    full = f"llvm.{name}.{_mangled(args[0].type if overload is None else overload)}"
    module = b.module
    function = module.globals.get(full)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [a.type for a in args]), full)
    return b.call(function, args)


def same(b: Builder, name: str, *args: Value) -> Value:
    """An intrinsic whose result has its first argument's type."""
    return intrinsic(b, name, args[0].type, list(args))


def clz(b: Builder, value: Value) -> Value:
    """Leading zeros; the width itself for 0."""
    return intrinsic(b, "ctlz", value.type, [value, ir.Constant(I1, 0)])


def absolute(b: Builder, value: Value) -> Value:
    """The float with its sign bit cleared (a NaN keeps its payload)."""
    return same(b, "fabs", value)


def is_nan(b: Builder, value: Value) -> Value:
    """True in lanes that hold any NaN."""
    return b.fcmp_unordered("uno", value, value)


def minimum(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """Integer minimum."""
    return same(b, "smin" if signed else "umin", x, y)


def maximum(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """Integer maximum."""
    return same(b, "smax" if signed else "umax", x, y)
