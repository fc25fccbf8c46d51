"""One random kernel on the executor and on the plain interpreter: what differs, in words."""

from __future__ import annotations

import struct

import numpy as np
from execute import random_kernels
from execute.random_kernels import DUMP, TRACES, Kernel
from execute.reference_interpreter import Memory, Program

from ssmtool.execute.module import Module

_DATA = random_kernels.data()


def outputs(threads: int) -> list[bytes]:
    """Trace, dump and line before a launch."""
    return [b"\xee" * (16 * TRACES * threads), b"\xee" * (DUMP * threads), b"\xee" * (4 * threads)]


def reference(kernel: Kernel) -> list[bytes]:
    """The three outputs by the interpreter."""
    program, memory = Program(kernel.text), Memory()
    x, y, z = kernel.block
    bases = [memory.add(each) for each in (_DATA, *outputs(x * y * z * kernel.grid))]
    program.launch(kernel.grid, kernel.block, struct.pack("<4Q2I", *bases, *kernel.scalars), memory)
    return [bytes(data) for _, data in memory.segments[1:]]


def executed(kernel: Kernel, check: str) -> list[bytes]:
    """The three outputs by the executor."""
    x, y, z = kernel.block
    made = [np.frombuffer(bytearray(each), np.uint8) for each in outputs(x * y * z * kernel.grid)]
    args = [np.frombuffer(_DATA, np.uint8).copy(), *made, *kernel.scalars]
    Module(kernel.text).launch("k", kernel.grid, kernel.block, args, check=check, on_fault="raise")  # type: ignore[arg-type]
    return [each.tobytes() for each in made]


def difference(kernel: Kernel, check: str = "bounds") -> str:
    """'' if both agree."""
    wanted, got = reference(kernel), executed(kernel, check)
    for name, size, first, second in zip(("trace", "dump", "line"), (16 * TRACES, DUMP, 4), wanted, got, strict=True):
        if first != second:
            at = next(k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
            place = at - at % 4
            return (
                f"{name}, thread {at // size}, byte {at % size}: wanted {first[place : place + 4].hex()}, "
                f"got {second[place : place + 4].hex()}"
            )
    return ""
