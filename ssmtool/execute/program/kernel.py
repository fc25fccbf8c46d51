"""One entry, ready to be lowered for one block shape: flat code, shapes, and how wide to run it."""

from __future__ import annotations

from collections.abc import Iterable

from ssmtool.execute.program.flat import Flat
from ssmtool.execute.program.flatten import flatten
from ssmtool.execute.program.geometry import Geometry
from ssmtool.execute.program.order import weak_topological_order
from ssmtool.execute.program.shapes import Shapes
from ssmtool.execute.program.webs import split
from ssmtool.ptx import Function, Module
from ssmtool.ptx.cfg import ControlFlowGraph
from ssmtool.ptx.operands import registers_of

WARP = 32
WIDTHS = (512, 256, 128)
"""Threads that run as one vector, the widest first.

Measured on a reduction tree, in ns for a warp instruction: blocks of 128 to 512 threads as one vector 0.26 to 0.30, by
warps 1.9; a block of 1024 as two vectors 0.6, as one 0.36, but then checked mode takes 8 s to compile.
"""
MOST_WORK = 82_000
"""Instructions times lanes beyond which a narrower vector is taken: LLVM needs seconds for more."""

_WARP_OPS = frozenset(("shfl", "vote", "match", "activemask", "redux", "elect"))
_WARP_REGISTERS = ("%laneid", "%warpid", "%lanemask")
_BARRIERS = frozenset(("bar", "barrier"))


def analyse(module: Module, entry: Function, block: tuple[int, int, int]) -> Shapes:
    """Everything known of `entry` launched with blocks of that shape.

    A block that holds barriers which all of its threads reach together, and nothing that speaks of warps, runs as one
    vector (very large ones as two): a barrier is then a place between two instructions. Any other runs warp by warp.
    """
    threads = block[0] * block[1] * block[2]
    flat = flatten(module, entry)
    graph = ControlFlowGraph(flat)
    split(flat, graph)
    order = weak_topological_order(0, lambda index: graph.blocks[index].successors)
    if threads > WARP and has_barrier(flat) and not _speaks_of_warps(flat):
        wide = Shapes(flat, graph, Geometry(block, _width(threads, len(flat.instructions))), order)
        wide.solve()
        if all(wide.schedule.together(each) for each in barrier_blocks(wide)) and not _named_barriers(flat):
            return wide
    narrow = Shapes(flat, graph, Geometry(block, WARP), order)
    narrow.solve()
    return narrow


def _width(threads: int, instructions: int) -> int:
    """Lanes for a block that runs as few vectors as may be: whole warps, within what LLVM takes."""
    whole = -(-threads // WARP) * WARP
    fitting = (width for width in WIDTHS if min(width, whole) * instructions <= MOST_WORK)
    return min(whole, next(fitting, WIDTHS[-1]))


def has_barrier(flat: Flat) -> bool:
    """Whether the code holds a barrier of the block."""
    return any(op.base in _BARRIERS and "warp" not in op.modifiers for op in flat.instructions)


def barrier_blocks(shapes: Shapes) -> Iterable[int]:
    """Blocks that hold a barrier of the thread block."""
    for index in shapes.order:
        block = shapes.graph.blocks[index]
        if any(
            op.base in _BARRIERS and "warp" not in op.modifiers
            for op in shapes.flat.instructions[block.start : block.end]
        ):
            yield index


def _named_barriers(flat: Flat) -> bool:
    """Whether a barrier counts threads, arrives without waiting, or is chosen at run time."""
    return any(
        op.base in _BARRIERS and "warp" not in op.modifiers and ("arrive" in op.modifiers or len(op.operands) > 1)
        for op in flat.instructions
        if "red" not in op.modifiers
    )


def _speaks_of_warps(flat: Flat) -> bool:
    return any(
        op.base in _WARP_OPS
        or (op.base in _BARRIERS and "warp" in op.modifiers)
        or any(
            register.name.startswith(_WARP_REGISTERS) for operand in op.operands for register in registers_of(operand)
        )
        for op in flat.instructions
    )
