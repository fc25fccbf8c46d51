"""Where the bits of a NaN can be seen, and hence where arithmetic must give the card's own.

Every f32 operation answers a NaN with 0x7fffffff on the card. Making that so costs two vector instructions behind each
operation (a fifth of the time of the scan kernels), and mostly nobody can see it: arithmetic takes one NaN for
another. So the bits are set right only where something looks at them:

- `loose` registers have no reader that can tell NaNs apart; they are never set right;
- `late` registers are set right by the readers that can. Such a register may also hold what was loaded, whose NaN
  bits must stay, so it carries a flag that says which of the two it holds;
- everything else is set right when it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssmtool.execute.program.flat import Op
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx import isa
from ssmtool.ptx.operands import Register

_ARITHMETIC = frozenset(("add", "sub", "mul", "mad", "fma", "div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos"))
_MOVES = frozenset(("mov", "selp", "shfl"))


@dataclass(frozen=True, slots=True)
class Nans:
    """See the module's text. `blind` are the instructions (by id) that cannot tell one NaN from another."""

    loose: frozenset[Register]
    late: frozenset[Register]
    blind: frozenset[int]


def plan(shapes: Shapes) -> Nans:
    """What to do about the f32 registers of a kernel."""
    ops = [
        (block, op)
        for block in shapes.order
        for op in shapes.flat.instructions[shapes.graph.blocks[block].start : shapes.graph.blocks[block].end]
    ]
    floats = {register for register, kind in shapes.flat.types.items() if kind == "f32"}
    loose, blind = _loose([op for _, op in ops], floats)
    late = set()
    held: set[Register] = set()
    for block, op in ops:
        for register in isa.defs(op) & floats:
            if _is_arithmetic(op):
                late.add(register)
            if shapes.guard(op) != 0 or register in shapes.kept[block]:
                held.add(register)  # lanes may differ in where their values come from: no one flag says it
    return Nans(frozenset(loose), frozenset(late - held - loose), frozenset(blind))


def _is_arithmetic(op: Op) -> bool:
    return op.base in _ARITHMETIC and op.opcode.types[-1:] == ("f32",)


def _loose(ops: Sequence[Op], floats: set[Register]) -> tuple[set[Register], set[int]]:
    """(registers whose NaN bits nobody sees, instructions that cannot see them): the largest sets that agree."""
    loose = set(floats)
    shared = _only_floats_in_shared(ops)
    while True:
        blind = {id(op) for op in ops if _is_blind(op, loose, shared)}
        seen = {register for op in ops if id(op) not in blind for register in isa.uses(op)}
        still = shared and all(isa.defs(op) <= loose - seen for op in ops if _touches_shared(op, "ld"))
        if not seen & loose and still == shared:
            return loose, blind
        loose -= seen
        shared = still


def _is_blind(op: Op, loose: set[Register], shared: bool) -> bool:
    if _is_arithmetic(op) or (op.base == "setp" and op.opcode.types == ("f32",)):
        return True
    if op.base == "cvt" and op.opcode.types[1:] == ("f32",) and op.opcode.types[0] != "f32":
        return op.opcode.types[0][0] in "us"
    if op.base in _MOVES and isa.defs(op):
        return all(register in loose for register in isa.defs(op) if register.name[:2] != "%p")
    return shared and _touches_shared(op, "st")


def _touches_shared(op: Op, base: str) -> bool:
    return op.base == base and op.opcode.space == "shared"


def _only_floats_in_shared(ops: Sequence[Op]) -> bool:
    """Whether shared memory is seen as f32 alone, through its own space: then it keeps NaNs as registers do."""
    for op in ops:
        if op.base in ("ld", "st") and op.opcode.space == "shared" and op.opcode.types != ("f32",):
            return False
        if op.base in ("atom", "red", "ld", "st", "ldu") and op.opcode.space in (None, "shared"):
            if op.base in ("ld", "st") and op.opcode.space == "shared":
                continue
            return False
        if op.base == "cvta" and any(word.startswith("shared") for word in op.modifiers):
            return False
    return True
