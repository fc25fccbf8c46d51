"""Compile emitters to machine code and map them over NumPy arrays.

For tests, tables and trying an operation by hand; the executor has its own pipeline. Many operations share one
module, since starting LLVM's pipeline costs more than most of them. Code must not outlive the engine and target
machine it came from: every `Mapped` keeps them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numpy.typing import NDArray

from ssmtool.execute.numerics.lanes import F32, F64, Builder, Value

LANES = 32


@dataclass(frozen=True)
class Operation:
    """`emit(builder, values)` gives the result lanes (i1 lanes for `pred`) for operands of these kinds."""

    emit: Callable[[Builder, Sequence[Value]], Value]
    operands: tuple[str, ...]
    result: str


def lane_type(kind: str) -> Any:
    """The LLVM type that carries a PTX kind: f32 float, f64 double, anything else an integer of its width."""
    return {"f32": F32, "f64": F64}.get(kind) or ir.IntType(int(kind[1:]))


def _store_bits(kind: str) -> int:
    return max(8, int(kind[1:])) if kind != "pred" else 8


class Mapped:
    """A compiled operation. Call it with arrays of raw bits or of the matching dtype, all of one length."""

    def __init__(self, operation: Operation, lanes: int, code: _Code, name: str) -> None:
        self.operation, self.lanes, self._code = operation, lanes, code
        arguments = [ctypes.c_void_p] * (1 + len(operation.operands))
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_int64, *arguments)(code.address(name))

    def __call__(self, *arrays: NDArray[Any]) -> NDArray[Any]:
        """Result bits, one unsigned integer a case (bool for a predicate)."""
        size = len(arrays[0])
        rows = -(-size // self.lanes)
        padded = []
        for kind, array in zip(self.operation.operands, arrays, strict=True):
            unsigned = np.dtype(f"u{_store_bits(kind) // 8}")
            raw = array.view(np.dtype(f"u{array.dtype.itemsize}"))
            if raw.dtype != unsigned or size % self.lanes or not raw.flags.c_contiguous:
                room = np.zeros(rows * self.lanes, unsigned)
                room[:size] = raw.astype(unsigned)
                raw = room
            padded.append(raw)
        result = self.operation.result
        out = np.zeros(rows * self.lanes, np.dtype(f"u{_store_bits(result) // 8}"))
        self._call(rows, out.ctypes.data, *[p.ctypes.data for p in padded])
        return out[:size].astype(bool) if result == "pred" else out[:size]


class _Code:
    """An engine and its target machine."""

    def __init__(self, module: Any, features: str | None, level: int) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        parsed = binding.parse_assembly(str(module))
        parsed.verify()
        cpu = binding.get_host_cpu_name() if features is None else "x86-64"
        wanted = binding.get_host_cpu_features().flatten() if features is None else features
        target = binding.Target.from_default_triple()
        self._machine = target.create_target_machine(cpu=cpu, features=wanted, opt=level)
        tuning = binding.create_pipeline_tuning_options(speed_level=level)
        builder = binding.create_pass_builder(self._machine, tuning)
        builder.getModulePassManager().run(parsed, builder)
        self._engine = binding.create_mcjit_compiler(parsed, self._machine)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function's code lies."""
        return int(self._engine.get_function_address(name))


def compile_all(
    operations: Sequence[Operation], lanes: int = LANES, features: str | None = None, level: int = 2
) -> list[Mapped]:
    """Compile for this CPU, or for a plain x86-64 with `features` (LLVM's syntax, e.g. '+avx2,+fma')."""
    module = ir.Module("numerics")
    for k, operation in enumerate(operations):
        _loop(module, f"map{k}", operation, lanes)
    code = _Code(module, features, level)
    return [Mapped(operation, lanes, code, f"map{k}") for k, operation in enumerate(operations)]


def compile_one(
    emit: Callable[[Builder, Sequence[Value]], Value],
    operands: Sequence[str],
    result: str,
    lanes: int = LANES,
    features: str | None = None,
) -> Mapped:
    """One operation in a module of its own."""
    return compile_all([Operation(emit, tuple(operands), result)], lanes, features)[0]


def _loop(module: Any, name: str, operation: Operation, lanes: int) -> None:
    """A function (rows, out, operands...) that applies the operation to `lanes` cases a row."""
    pointer, i64 = ir.PointerType(ir.IntType(8)), ir.IntType(64)
    kinds = [i64, pointer] + [pointer] * len(operation.operands)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
    entry, loop, done = (function.append_basic_block(n) for n in ("entry", "loop", "done"))
    b = ir.IRBuilder(entry)
    count, out, *sources = function.args
    b.cbranch(b.icmp_signed(">", count, i64(0)), loop, done)
    b.position_at_end(loop)
    index = b.phi(i64)

    def place(base: Value, kind: str) -> tuple[Value, Any]:
        stored = ir.IntType(_store_bits(kind))
        vector = ir.VectorType(stored, lanes)
        address = b.gep(b.bitcast(base, stored.as_pointer()), [b.mul(index, i64(lanes))])
        return b.bitcast(address, vector.as_pointer()), vector

    values = []
    for kind, source in zip(operation.operands, sources, strict=True):
        address, vector = place(source, kind)
        load = b.load(address)
        load.align = 1
        lane = lane_type(kind)
        values.append(load if lane == vector.element else b.bitcast(load, ir.VectorType(lane, lanes)))
    answer = operation.emit(b, values)
    address, vector = place(out, operation.result)
    answer = b.zext(answer, vector) if operation.result == "pred" else b.bitcast(answer, vector)
    b.store(answer, address).align = 1
    following = b.add(index, i64(1))
    index.add_incoming(i64(0), entry)
    index.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, count), loop, done)
    b.position_at_end(done)
    b.ret_void()
