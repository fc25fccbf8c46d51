"""Shadow cells of shared memory: who last read and wrote each place, and in which barrier epoch.

A cell is 32 bits, `tick << 13 | code`. Ticks count the barriers of a worker's blocks, one after the other, so that
cells need no clearing from block to block. The code says which thread it was: its number in the block (bits 0-9);
SEVERAL threads of the warp of bits 5-9; or MANY threads of several warps. ATOMIC marks a writer that was an atomic
operation. A cell of an older tick than the last barrier is behind that barrier, whatever ran first; one of an older
tick than the block's first was never touched in this block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ssmtool.execute.layout import LaunchSlot, WorkerSlot
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import POINTER
from ssmtool.execute.lower.values import i64, set_word, word
from ssmtool.execute.numerics.lanes import I32, I64, Builder, Value
from ssmtool.execute.program.flat import Op
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx.opcode import TYPE_BITS

CODE_BITS = 13
LANE_MASK, WARP_MASK = 31, 31 << 5
SEVERAL, MANY, ATOMIC = 1 << 10, 1 << 11, 1 << 12
CODE_MASK = ATOMIC - 1
"""The code without ATOMIC."""
MOST_TICKS = 1 << (32 - CODE_BITS)
_WORD = 4


def i32(number: int) -> Value:
    """A 32-bit constant."""
    return ir.Constant(I32, number & 0xFFFFFFFF)


@dataclass(slots=True)
class Cells:
    """What a gang function keeps at hand; ticks are shifted to their place in a cell, ready to be compared."""

    shared: Value
    writers: Value
    readers: Value
    tick: Value
    """Slot of the tick of accesses now."""
    base: Value
    """Slot of the tick since the block's last barrier: anything older is ordered before."""
    first: Value
    """Slot of the block's first tick."""
    warp_base: Value
    """Slot of the tick since the warp's own last barrier."""
    shift: int
    """log2 of the bytes that share a cell."""
    partners: tuple[dict[int, Op], dict[int, Op]] | None = None
    """What `fused` found, once it was asked."""


def granule(shapes: Shapes) -> int:
    """Bytes of shared memory that share a shadow cell: 4, or the narrowest access that may touch it."""
    narrowest = _WORD
    for op in shapes.flat.instructions:
        if op.base in ("ld", "ldu", "st", "atom", "red") and (op.opcode.space or "generic") in ("shared", "generic"):
            narrowest = min(narrowest, *(max(1, TYPE_BITS[kind] // 8) for kind in op.opcode.types[-1:]))
    return narrowest


def syncs_warps(shapes: Shapes) -> bool:
    """Whether the code holds barriers of single warps."""
    return any(op.base in ("bar", "barrier") and "warp" in op.modifiers for op in shapes.flat.instructions)


def cells_of(gang: Gang) -> Cells:
    """The gang's cells, loaded once in its entry block, which every way into it passes."""
    found: Cells | None = gang.shadow
    if found is not None:
        return found
    b, shared = gang.builder, gang.shared[0]
    tick, first = gang.alloca(I32, "tick"), gang.alloca(I32, "first")
    # Where warps have no barriers of their own, the three are one.
    base, warp_base = (gang.alloca(I32), gang.alloca(I32)) if syncs_warps(gang.shapes) else (tick, tick)
    with b.goto_block(gang.entry):
        writers, readers = gang.worker_word(WorkerSlot.WRITERS), gang.worker_word(WorkerSlot.READERS)
        cells = Cells(shared, writers, readers, tick, base, first, warp_base, granule(gang.shapes).bit_length() - 1)
        reload_ticks(gang, cells)
    gang.shadow = cells
    return cells


def reload_ticks(gang: Gang, cells: Cells) -> None:
    """Fetch all ticks from the worker's table."""
    b = gang.builder
    for slot, place in (
        (cells.tick, WorkerSlot.EPOCH),
        (cells.base, WorkerSlot.BARRIER_EPOCH),
        (cells.first, WorkerSlot.FIRST_EPOCH),
        (cells.warp_base, WorkerSlot.BARRIER_EPOCH),
    ):
        b.store(in_cell(b, gang.worker_word(place)), slot)


def in_cell(b: Builder, tick: Value) -> Value:
    """A tick from the worker's table at its place in a cell."""
    return b.shl(b.trunc(tick, I32), i32(CODE_BITS))


def begin_block(b: Builder, launch: Value, worker: Value, shift: int) -> None:
    """A block starts: nothing of its shared memory is written."""
    tick = b.add(word(b, worker, WorkerSlot.EPOCH), i64(1))
    for slot in (WorkerSlot.EPOCH, WorkerSlot.BARRIER_EPOCH, WorkerSlot.FIRST_EPOCH):
        set_word(b, worker, slot, tick)
    _renumber_if_full(b, launch, worker, tick, shift)


def next_epoch(b: Builder, launch: Value, worker: Value, shift: int) -> None:
    """A barrier of the block opens."""
    tick = b.add(word(b, worker, WorkerSlot.EPOCH), i64(1))
    set_word(b, worker, WorkerSlot.EPOCH, tick)
    set_word(b, worker, WorkerSlot.BARRIER_EPOCH, tick)
    _renumber_if_full(b, launch, worker, tick, shift)


def passed_together(gang: Gang) -> None:
    """The gang is the whole block and passes a barrier."""
    cells = cells_of(gang)
    b = gang.builder
    tick = b.add(b.load(cells.tick), i32(1 << CODE_BITS))
    for slot in (cells.tick, cells.base, cells.warp_base):
        b.store(tick, slot)
    number = b.zext(b.lshr(tick, i32(CODE_BITS)), I64)
    set_word(b, gang.arguments.worker, WorkerSlot.EPOCH, number)
    set_word(b, gang.arguments.worker, WorkerSlot.BARRIER_EPOCH, number)
    _renumber_if_full(
        b, gang.arguments.launch, gang.arguments.worker, number, cells.shift, lambda: reload_ticks(gang, cells)
    )


def warp_synced(gang: Gang) -> None:
    """A warp passes a barrier of its own: it is ordered behind what it did before, other warps are not."""
    cells = cells_of(gang)
    b = gang.builder
    launch, worker = gang.arguments.launch, gang.arguments.worker
    tick = b.add(word(b, worker, WorkerSlot.EPOCH), i64(1))
    set_word(b, worker, WorkerSlot.EPOCH, tick)
    _renumber_if_full(b, launch, worker, tick, cells.shift, lambda: reload_ticks(gang, cells))
    now = in_cell(b, word(b, worker, WorkerSlot.EPOCH))
    b.store(now, cells.tick)
    b.store(now, cells.warp_base)


def _renumber_if_full(
    b: Builder, launch: Value, worker: Value, tick: Value, shift: int, then: Callable[[], None] | None = None
) -> None:
    with b.if_then(b.icmp_unsigned(">=", tick, i64(MOST_TICKS - 1)), likely=False):
        b.call(_renumber_function(b.module), [launch, worker, i64(shift)])
        if then is not None:
            then()


def _renumber_function(module: Any) -> Any:
    """`void renumber(launch, worker, shift)`: ticks start anew; cells keep what is still asked of them.

    Touched in this block before the last barrier: tick 1. Since: tick 2. The next access has tick 3, so that a barrier
    of a warp that ran into the limit orders the warp behind all its cells.
    """
    found = module.globals.get("renumber")
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64]), "renumber")
    function.linkage = "internal"
    function.attributes.add("noinline")
    launch, worker, shift = function.args
    entry, head, body, done = (function.append_basic_block(name) for name in ("entry", "head", "body", "done"))
    b = ir.IRBuilder(entry)
    # The words hold more than 32 - CODE_BITS bits when the limit is passed: compare as numbers, not as cells.
    base, first = word(b, worker, WorkerSlot.BARRIER_EPOCH), word(b, worker, WorkerSlot.FIRST_EPOCH)
    size = word(b, launch, LaunchSlot.SHARED_BYTES)
    count = b.lshr(b.add(size, b.sub(b.shl(i64(1), shift), i64(1))), shift)
    tables = [b.inttoptr(word(b, worker, slot), I32.as_pointer()) for slot in (WorkerSlot.WRITERS, WorkerSlot.READERS)]
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(I64)
    index.add_incoming(i64(0), entry)
    b.cbranch(b.icmp_unsigned("<", index, count), body, done)
    b.position_at_end(body)
    for table in tables:
        place = b.gep(table, [index])
        cell = b.load(place)
        tick = b.zext(b.lshr(cell, i32(CODE_BITS)), I64)
        code = b.and_(cell, i32((1 << CODE_BITS) - 1))
        moved = b.select(
            b.icmp_unsigned(">=", tick, base),
            b.or_(code, i32(2 << CODE_BITS)),
            b.select(b.icmp_unsigned(">=", tick, first), b.or_(code, i32(1 << CODE_BITS)), i32(0)),
        )
        b.store(moved, place)
    index.add_incoming(b.add(index, i64(1)), body)
    b.branch(head)
    b.position_at_end(done)
    # At a barrier of the block nothing is of its tick yet, and none is told from 3 on.
    tick = word(b, worker, WorkerSlot.EPOCH)
    opened = b.icmp_unsigned("==", base, tick)
    set_word(b, worker, WorkerSlot.FIRST_EPOCH, i64(1))
    set_word(b, worker, WorkerSlot.BARRIER_EPOCH, b.select(opened, i64(3), i64(2)))
    set_word(b, worker, WorkerSlot.EPOCH, i64(3))
    b.ret_void()
    return function
