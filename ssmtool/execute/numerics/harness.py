"""Compile an emitter to machine code and map it over NumPy arrays.

For tests, tables and trying an operation by hand; the executor has its own pipeline. The engine and target machine
live as long as the returned `Mapped` does: code must not outlive them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numpy.typing import NDArray

from ssmtool.execute.numerics.lanes import F32, F64, Builder, Value

LANES = 32


def lane_type(kind: str) -> Any:
    """The LLVM type that carries a PTX kind: f32 float, f64 double, anything else an integer of its width."""
    return {"f32": F32, "f64": F64}.get(kind) or ir.IntType(int(kind[1:]))


def _store_bits(kind: str) -> int:
    return max(8, int(kind[1:])) if kind != "pred" else 8


class Mapped:
    """A compiled operation. Call it with arrays of raw bits or of the matching dtype, all of one length."""

    def __init__(
        self,
        emit: Callable[[Builder, Sequence[Value]], Value],
        operands: Sequence[str],
        result: str,
        lanes: int = LANES,
        features: str | None = None,
    ) -> None:
        """`emit(builder, values)` returns the result lanes (i1 lanes for `pred`); `features` limits the CPU."""
        self.operands, self.result, self.lanes = tuple(operands), result, lanes
        module = ir.Module("numerics")
        pointer = ir.PointerType(ir.IntType(8))
        i64 = ir.IntType(64)
        function = ir.Function(
            module, ir.FunctionType(ir.VoidType(), [i64, pointer] + [pointer] * len(operands)), "map"
        )
        entry, loop, done = (function.append_basic_block(n) for n in ("entry", "loop", "done"))
        b = ir.IRBuilder(entry)
        count, out, *sources = function.args
        b.cbranch(b.icmp_signed(">", count, i64(0)), loop, done)
        b.position_at_end(loop)
        index = b.phi(i64)
        values = []
        for kind, source in zip(operands, sources, strict=True):
            stored = ir.IntType(_store_bits(kind))
            vector = ir.VectorType(stored, lanes)
            address = b.gep(b.bitcast(source, stored.as_pointer()), [b.mul(index, i64(lanes))])
            load = b.load(b.bitcast(address, vector.as_pointer()))
            load.align = 1
            lane = lane_type(kind)
            values.append(load if lane == stored else b.bitcast(load, ir.VectorType(lane, lanes)))
        answer = emit(b, values)
        stored = ir.IntType(_store_bits(result))
        vector = ir.VectorType(stored, lanes)
        answer = b.zext(answer, vector) if result == "pred" else b.bitcast(answer, vector)
        address = b.gep(b.bitcast(out, stored.as_pointer()), [b.mul(index, i64(lanes))])
        b.store(answer, b.bitcast(address, vector.as_pointer())).align = 1
        following = b.add(index, i64(1))
        index.add_incoming(i64(0), entry)
        index.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, count), loop, done)
        b.position_at_end(done)
        b.ret_void()
        self._compile(module, features)

    def _compile(self, module: Any, features: str | None) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        parsed = binding.parse_assembly(str(module))
        parsed.verify()
        cpu = binding.get_host_cpu_name() if features is None else "x86-64"
        wanted = binding.get_host_cpu_features().flatten() if features is None else features
        self._machine = binding.Target.from_default_triple().create_target_machine(
            cpu=cpu, features=wanted, opt=2
        )
        tuning = binding.create_pipeline_tuning_options(speed_level=2)
        builder = binding.create_pass_builder(self._machine, tuning)
        builder.getModulePassManager().run(parsed, builder)
        self._engine = binding.create_mcjit_compiler(parsed, self._machine)
        self._engine.finalize_object()
        signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (1 + len(self.operands)))
        self._call = signature(self._engine.get_function_address("map"))

    def __call__(self, *arrays: NDArray[Any]) -> NDArray[Any]:
        """Result bits, one unsigned integer a case (bool for a predicate)."""
        size = len(arrays[0])
        rows = -(-size // self.lanes)
        padded = []
        for kind, array in zip(self.operands, arrays, strict=True):
            unsigned = np.dtype(f"u{_store_bits(kind) // 8}")
            raw = array.view(np.dtype(f"u{array.dtype.itemsize}")).astype(unsigned)
            room = np.zeros(rows * self.lanes, unsigned)
            room[:size] = raw
            padded.append(room)
        out = np.zeros(rows * self.lanes, np.dtype(f"u{_store_bits(self.result) // 8}"))
        self._call(rows, out.ctypes.data, *[p.ctypes.data for p in padded])
        return out[:size].astype(bool) if self.result == "pred" else out[:size]
