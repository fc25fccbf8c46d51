"""What the tests of the executor's front half share: a flat kernel, its graph, its shapes."""

from __future__ import annotations

from execute.small import kernel

from ssmtool.execute.program.flat import Flat
from ssmtool.execute.program.flatten import flatten
from ssmtool.execute.program.geometry import Stride
from ssmtool.execute.program.kernel import analyse
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx import parse
from ssmtool.ptx.operands import Register

ONE = """
.func (.param .b32 r) one(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; st.param.b32 [r], %r1; ret; }
"""
CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), one, (a); ld.param.b32 %r2, [b]; }"
"""A function, and a call of it."""


def flat(body: str, params: str = ".param .u64 out", module: str = "", head: str = "") -> Flat:
    """The flat code of a small kernel."""
    made = parse(kernel(body, params, module, head))
    return flatten(made, made.entries[0])


def listing(code: Flat) -> list[str]:
    """Opcodes with guards, from the body on."""
    start = next(k for k, op in enumerate(code.instructions) if op.base == "ld") + 1
    return [("@" if op.predicate else "") + op.opcode.text for op in code.instructions[start:]]


def shapes(body: str, block: tuple[int, int, int] = (64, 1, 1), head: str = "") -> Shapes:
    """The shapes of a small kernel; threads are numbered by `%tid.x`, not by `%i`."""
    made = parse(kernel(body, head=head))
    return analyse(made, made.entries[0], block)


def stride(found: Shapes, name: str) -> Stride:
    """The stride of a register's first variable."""
    return found.of(Register(name))
