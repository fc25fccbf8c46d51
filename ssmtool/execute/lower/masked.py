"""LLVM's masked memory intrinsics."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ssmtool.execute.lower.values import Type
from ssmtool.execute.numerics.lanes import F32, F64, I32, Builder, Value, undefined


def _mangled(kind: Type) -> str:
    lane = kind.element
    name = "f32" if lane == F32 else "f64" if lane == F64 else f"i{lane.width}"
    return f"v{kind.count}{name}"


def _declared(module: Value, name: str, result: Type, arguments: list[Type]) -> Any:
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)


def load(b: Builder, address: Value, kind: Type, mask: Value, align: int) -> Value:
    """Consecutive elements from an integer address; lanes outside the mask are undefined and not touched."""
    function = _declared(
        b.module, f"llvm.masked.load.{_mangled(kind)}.p0", kind, [kind.as_pointer(), I32, mask.type, kind]
    )
    place = b.inttoptr(address, kind.as_pointer())
    return b.call(function, [place, ir.Constant(I32, align), mask, undefined(kind)])


def store(b: Builder, value: Value, address: Value, mask: Value, align: int) -> None:
    """Consecutive elements to an integer address, in the lanes of the mask."""
    kind = value.type
    function = _declared(
        b.module,
        f"llvm.masked.store.{_mangled(kind)}.p0",
        ir.VoidType(),
        [kind, kind.as_pointer(), I32, mask.type],
    )
    b.call(function, [value, b.inttoptr(address, kind.as_pointer()), ir.Constant(I32, align), mask])


def _pointers(b: Builder, addresses: Value, kind: Type) -> Value:
    return b.inttoptr(addresses, ir.VectorType(kind.element.as_pointer(), kind.count))


def gather(b: Builder, addresses: Value, kind: Type, mask: Value, align: int) -> Value:
    """One element from each lane's integer address; lanes outside the mask are undefined and not touched."""
    pointers = _pointers(b, addresses, kind)
    function = _declared(
        b.module,
        f"llvm.masked.gather.{_mangled(kind)}.v{kind.count}p0",
        kind,
        [pointers.type, I32, mask.type, kind],
    )
    return b.call(function, [pointers, ir.Constant(I32, align), mask, undefined(kind)])


def scatter(b: Builder, value: Value, addresses: Value, mask: Value, align: int) -> None:
    """One element to each lane's integer address; of equal addresses the highest lane's stays."""
    pointers = _pointers(b, addresses, value.type)
    function = _declared(
        b.module,
        f"llvm.masked.scatter.{_mangled(value.type)}.v{value.type.count}p0",
        ir.VoidType(),
        [value.type, pointers.type, I32, mask.type],
    )
    b.call(function, [value, pointers, ir.Constant(I32, align), mask])
