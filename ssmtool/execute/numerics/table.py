"""Constant tables in a module, and looking one up in every lane at once (a gather)."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ssmtool.execute.numerics.lanes import I1, Builder, Value, shaped


def constant(b: Builder, name: str, entries: Sequence[int], bits: int) -> Value:
    """A private constant array in the builder's module, made once: the pointer to its first entry."""
    module = b.module
    table = module.globals.get(name)
    lane = ir.IntType(bits)
    if table is None:
        kind = ir.ArrayType(lane, len(entries))
        table = ir.GlobalVariable(module, kind, name)
        table.linkage = "private"
        table.global_constant = True
        table.align = 64
        table.initializer = ir.Constant(kind, [ir.Constant(lane, e) for e in entries])
    return table.bitcast(lane.as_pointer())


def look_up(b: Builder, table: Value, index: Value, bits: int) -> Value:
    """table[index] in every lane, as integers of `bits`. Every index must lie inside, in inactive lanes too."""
    lane = ir.IntType(bits)
    address = b.gep(table, [index], source_etype=lane)
    if not isinstance(index.type, ir.VectorType):
        return b.load(address)
    count = index.type.count
    # llvmlite types a GEP by its base alone; with a vector of indices it is a vector of pointers.
    address.type = ir.VectorType(address.type, count)
    result = shaped(index, lane)
    mask = ir.Constant(ir.VectorType(I1, count), [ir.Constant(I1, 1)] * count)
    name = f"llvm.masked.gather.v{count}i{bits}.v{count}p0"
    function = b.module.globals.get(name)
    if function is None:
        kinds = [address.type, ir.IntType(32), mask.type, result]
        function = ir.Function(b.module, ir.FunctionType(result, kinds), name)
    passthrough = ir.Constant(result, [ir.Constant(lane, 0)] * count)
    return b.call(function, [address, ir.Constant(ir.IntType(32), bits // 8), mask, passthrough])
