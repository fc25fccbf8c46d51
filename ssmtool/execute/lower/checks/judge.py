"""Accesses looked at lane by lane and cell by cell: what the quick ways of `shared` leave, and where faults are told.

Two accesses of one place by different threads, one of them a write, not both atomic, are a race when no barrier of
the block lies between: RACE between warps, WARP_RACE within one unless a barrier of the warp lies between. Lanes of
one instruction that write one place race too; within a warp not when they write the same value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ssmtool.execute.layout import SITE_WORDS, Fault, LaunchSlot, SiteSlot, WorkerSlot
from ssmtool.execute.lower import masked
from ssmtool.execute.lower.access import Target
from ssmtool.execute.lower.checks.cells import (
    ATOMIC,
    CODE_MASK,
    MANY,
    SEVERAL,
    WARP_MASK,
    cells_of,
    i32,
)
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import POINTER, Region, bit, call_report, lane_loop, locate_function
from ssmtool.execute.lower.values import i64, mask_bits, word
from ssmtool.execute.numerics.lanes import I1, I8, I32, I64, Builder, Splat, Value, bits_of

READS, WRITES, ATOMICALLY = 1, 2, 4
"""What an access does."""
SHADOW_SHIFT = 2
"""log2 of the bytes of an allocation that one byte of its shadow stands for, see `AllocationSlot.SHADOW`."""


def look(
    gang: Gang,
    target: Target,
    mask: Value,
    does: int,
    read_site: int,
    *,
    everyone: Value = None,
    values: Sequence[Value] = (),
    size: int = 0,
) -> None:
    """Judge and mark the lanes of `mask` one by one.

    `everyone` are all lanes of the instruction, `values` what they wrote, elements of `size` bytes: lanes whose own
    value did not stay differ from the one whose did. `read_site` is where a read of unwritten memory is told.
    """
    b, cells, arguments = gang.builder, cells_of(gang), gang.arguments
    addresses = gang.spread(target.address)
    room = gang.alloca(addresses.type)
    b.store(addresses, room)
    differs = _differing(gang, addresses, mask if everyone is None else everyone, values, size)
    ticks = [b.load(slot) for slot in (cells.tick, cells.base, cells.first, cells.warp_base)]
    numbers = [i64(each) for each in (target.bytes, does, target.site, read_site)]
    bits = mask_bits(b, mask)
    all_bits = bits if everyone is None else mask_bits(b, everyone)
    places = [arguments.launch, arguments.worker, b.bitcast(room, POINTER)]
    shift = i64(cells.shift)
    b.call(
        _look_function(gang),
        [*places, bits, all_bits, differs, *numbers, arguments.block, gang.thread_zero, shift, *ticks],
    )


def _differing(gang: Gang, addresses: Value, mask: Value, values: Sequence[Value], size: int) -> Value:
    """Lanes whose value is not what memory holds after the store, as an integer mask."""
    b = gang.builder
    differs: Value = gang.no_lanes()
    for number, value in enumerate(values):
        whole = bits_of(b, value)
        places = b.add(addresses, Splat(addresses.type, i64(size * number)))
        held = masked.gather(b, places, whole.type, mask, size)
        differs = b.or_(differs, b.icmp_unsigned("!=", whole, held))
    return mask_bits(b, b.and_(differs, mask))


class _Lane:
    """Values that the pieces of the function below share."""

    def __init__(self, gang: Gang, function: Any) -> None:
        self.lanes = gang.lanes
        (
            self.launch,
            self.worker,
            self.addresses,
            self.todo,
            self.everyone,
            self.differs,
            self.size,
            self.does,
            self.site,
            self.read_site,
            self.block,
            self.first_thread,
            self.shift,
            self.tick,
            self.base,
            self.first,
            self.warp_base,
        ) = function.args
        self.builder: Builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.lane: Value = None
        self.address: Value = None
        self.thread: Value = None
        self.told = self.builder.alloca(I1)
        """A race of this lane has been told."""
        self.missed = self.builder.alloca(I1)
        """A read of something unwritten has been told."""
        self.several, self.unlike = self.builder.alloca(I1), self.builder.alloca(I1)

    def has(self, flag: int) -> Value:
        """i1: the access does that."""
        return self.builder.icmp_unsigned("!=", self.builder.and_(self.does, i64(flag)), i64(0))


def _look_function(gang: Gang) -> Any:
    module = gang.builder.module
    found = module.globals.get("look_at_lanes")
    if found is not None:
        return found
    bits = ir.IntType(gang.lanes)
    kind = ir.FunctionType(ir.VoidType(), [POINTER] * 3 + [bits] * 3 + [I64] * 7 + [I32] * 4)
    function = ir.Function(module, kind, "look_at_lanes")
    function.linkage = "internal"
    function.attributes.add("noinline")
    locate = locate_function(gang)
    own = _Lane(gang, function)
    b = own.builder
    shared, limit = word(b, own.worker, WorkerSlot.SHARED), word(b, own.launch, LaunchSlot.SHARED_BYTES)
    with lane_loop(b, gang.lanes, own.todo) as lane:
        own.lane = lane
        own.address = b.load(b.gep(own.addresses, [lane]))
        own.thread = b.trunc(b.add(own.first_thread, lane), I32)
        b.store(ir.Constant(I1, 0), own.told)
        b.store(ir.Constant(I1, 0), own.missed)
        offset = b.sub(own.address, shared)
        with b.if_else(b.icmp_unsigned("<", offset, limit)) as (then, otherwise):
            with then:
                _each(
                    b,
                    b.lshr(offset, own.shift),
                    _last(b, offset, own.size, own.shift),
                    lambda at: _cell(own, at, offset),
                )
            with otherwise:
                _global(own, locate)
    b.ret_void()
    return function


def _last(b: Builder, offset: Value, size: Value, shift: Value) -> Value:
    return b.lshr(b.add(offset, b.sub(size, i64(1))), shift)


def _each(b: Builder, first: Value, last: Value, body: Any) -> None:
    """`body(index)` from `first` to `last`."""
    before = b.block
    loop, done = b.append_basic_block("each"), b.append_basic_block("each_done")
    b.branch(loop)
    b.position_at_end(loop)
    index = b.phi(I64)
    index.add_incoming(first, before)
    body(index)
    index.add_incoming(b.add(index, i64(1)), b.block)
    b.cbranch(b.icmp_unsigned("<", index, last), loop, done)
    b.position_at_end(done)


def _cell(own: _Lane, index: Value, offset: Value) -> None:
    """Judge one lane at one cell of shared memory, then mark it."""
    b = own.builder
    tables = [
        b.inttoptr(word(b, own.worker, each), I32.as_pointer()) for each in (WorkerSlot.WRITERS, WorkerSlot.READERS)
    ]
    writers, readers = (b.gep(table, [index]) for table in tables)
    writer, reader = b.load(writers), b.load(readers)
    me = b.or_(own.tick, own.thread)
    reads, writes, atomic = own.has(READS), own.has(WRITES), own.has(ATOMICALLY)
    fresh = b.and_(b.icmp_unsigned("<", writer, own.first), b.not_(b.load(own.missed)))
    with b.if_then(b.and_(reads, fresh)):
        b.store(ir.Constant(I1, 1), own.missed)
        thread = b.zext(own.thread, I64)
        call_report(b, own.launch, i64(Fault.UNWRITTEN_SHARED), own.read_site, own.block, thread, offset, own.size)
    both = b.and_(atomic, b.icmp_unsigned("!=", b.and_(writer, i32(ATOMIC)), i32(0)))
    other_wrote = b.and_(b.icmp_unsigned(">=", writer, own.base), b.not_(_same_code(b, writer, me)))
    with b.if_then(b.and_(other_wrote, b.not_(both))):
        _conflict(own, writer, me, offset, True)
    other_read = b.and_(b.icmp_unsigned(">=", reader, own.base), b.not_(_same_code(b, reader, me)))
    with b.if_then(b.and_(writes, other_read)):
        _conflict(own, reader, me, offset, False)
    with b.if_else(writes) as (then, otherwise):
        with then:
            joined = joined_codes(b, writer, me, own.base, own.warp_base, own.tick)
            b.store(b.select(atomic, _with_atomic(own, writer, me, joined), joined), writers)
        with otherwise:
            b.store(joined_codes(b, reader, me, own.base, own.warp_base, own.tick), readers)


def _with_atomic(own: _Lane, writer: Value, me: Value, joined: Value) -> Value:
    """The writer's cell after an atomic operation: ATOMIC only where no plain write hides behind it.

    A plain one that a barrier of the warp has ordered stays as it is: other warps still race with it.
    """
    b = own.builder
    plain = b.icmp_unsigned("==", b.and_(writer, i32(ATOMIC)), i32(0))
    behind = b.and_(b.icmp_unsigned(">=", writer, own.base), plain)
    ordered = b.and_(same_warp(b, writer, me), b.icmp_unsigned("<", writer, own.warp_base))
    return b.select(behind, b.select(ordered, writer, joined), b.or_(joined, i32(ATOMIC)))


def _same_code(b: Builder, cell: Value, me: Value) -> Value:
    return b.icmp_unsigned("==", b.and_(b.xor(cell, me), i32(CODE_MASK)), i32(0))


def same_warp(b: Builder, cell: Value, me: Value) -> Value:
    """i1: both are of one warp, and neither is MANY."""
    return b.icmp_unsigned("==", b.and_(b.xor(cell, me), i32(WARP_MASK | MANY)), i32(0))


def joined_codes(b: Builder, cell: Value, me: Value, base: Value, warp_base: Value, tick: Value) -> Value:
    """The cell of `cell` and then `me`; cells before the last barrier are forgotten. Scalars or vectors."""
    kind = cell.type

    def number(value: int) -> Value:
        return i32(value) if not isinstance(kind, ir.VectorType) else Splat(kind, i32(value))

    different = b.and_(b.xor(cell, me), number(CODE_MASK))
    alone = b.icmp_unsigned("==", different, number(0))
    one_warp = b.icmp_unsigned("==", b.and_(different, number(WARP_MASK | MANY)), number(0))
    several = b.or_(b.and_(me, number(~31)), number(SEVERAL))
    ordered = b.icmp_unsigned("<", cell, warp_base)
    within = b.select(b.or_(alone, ordered), me, several)
    joined = b.select(b.or_(alone, one_warp), within, b.or_(tick, number(MANY)))
    return b.select(b.icmp_unsigned("<", cell, base), me, joined)


def _conflict(own: _Lane, cell: Value, me: Value, offset: Value, wrote: bool) -> None:
    """Tell a race with whoever `cell` names, once for each lane; within a warp it is a note, told once a worker."""
    b = own.builder
    within = same_warp(b, cell, me)
    group = b.icmp_unsigned("!=", b.and_(cell, i32(SEVERAL | MANY)), i32(0))
    other = b.select(group, i64(-1 & (2**64 - 1)), b.zext(b.and_(cell, i32(1023)), I64))
    extra = b.add(other, i64((1 << 32) if wrote else 0))
    thread = b.zext(own.thread, I64)
    first = b.not_(b.load(own.told))
    with b.if_then(b.and_(first, b.not_(within))):
        b.store(ir.Constant(I1, 1), own.told)
        call_report(b, own.launch, i64(Fault.RACE), own.site, own.block, thread, offset, extra)
    unordered = b.icmp_unsigned(">=", cell, own.warp_base)
    with b.if_then(b.and_(b.and_(first, within), unordered)):
        notes = b.gep(b.inttoptr(word(b, own.worker, WorkerSlot.SCRATCH), POINTER), [own.site])
        new = b.icmp_unsigned("==", b.load(notes), i64(0))
        if wrote:
            new = b.and_(new, b.not_(_same_values(own)))
        with b.if_then(new):
            b.store(i64(1), notes)
            b.store(ir.Constant(I1, 1), own.told)
            call_report(b, own.launch, i64(Fault.WARP_RACE), own.site, own.block, thread, offset, extra)


def _same_values(own: _Lane) -> Value:
    """i1: the mark met may be of this instruction's own lanes, and all of the warp that write there write one value.

    Marked already are lower lanes, and lanes that are not looked at: there is none of either when the mark is older.
    """
    b = own.builder
    several, unlike = own.several, own.unlike
    b.store(ir.Constant(I1, 0), several)
    b.store(ir.Constant(I1, 0), unlike)

    def among(lanes: Value, lane: Value) -> Value:
        return b.icmp_unsigned("!=", b.and_(lanes, bit(b, lane, lanes.type)), ir.Constant(lanes.type, 0))

    with b.if_then(own.has(WRITES)), lane_loop(b, own.lanes, own.everyone) as lane:
        near = b.icmp_unsigned("==", b.lshr(lane, i64(5)), b.lshr(own.lane, i64(5)))
        there = b.icmp_unsigned("==", b.load(b.gep(own.addresses, [lane])), own.address)
        with b.if_then(b.and_(near, there)):
            marked = b.or_(b.icmp_unsigned("<", lane, own.lane), b.not_(among(own.todo, lane)))
            b.store(b.or_(b.load(several), marked), several)
            b.store(b.or_(b.load(unlike), among(own.differs, lane)), unlike)
    return b.and_(b.load(several), b.not_(b.load(unlike)))


def _global(own: _Lane, locate: Any) -> None:
    """Judge one lane at the shadow of an allocation that starts unwritten, then mark it."""
    b = own.builder
    sites = b.inttoptr(word(b, own.worker, WorkerSlot.SITES), POINTER)
    row = b.gep(sites, [b.mul(own.site, i64(SITE_WORDS))])
    thread = b.zext(own.thread, I64)

    def inside() -> Value:
        offset = b.sub(own.address, word(b, row, SiteSlot.BASE))
        return b.icmp_unsigned("<", offset, word(b, row, SiteSlot.BYTES))

    with b.if_then(b.not_(inside())):
        region = i64(Region.ALLOCATIONS)
        b.call(locate, [own.launch, own.worker, own.address, own.size, own.site, region, i64(0), thread])
    shadow = word(b, row, SiteSlot.SHADOW)
    with b.if_then(b.and_(inside(), b.icmp_unsigned("!=", shadow, i64(0)))):
        offset = b.sub(own.address, word(b, row, SiteSlot.BASE))
        table = b.inttoptr(shadow, I8.as_pointer())
        shift = i64(SHADOW_SHIFT)

        def one(index: Value) -> None:
            place = b.gep(table, [index])
            fresh = b.and_(b.icmp_unsigned("==", b.load(place), ir.Constant(I8, 0)), b.not_(b.load(own.missed)))
            with b.if_then(b.and_(own.has(READS), fresh)):
                b.store(ir.Constant(I1, 1), own.missed)
                kind = i64(Fault.UNWRITTEN_GLOBAL)
                call_report(b, own.launch, kind, own.read_site, own.block, thread, own.address, own.size)
            with b.if_then(own.has(WRITES)):
                b.store(ir.Constant(I8, 1), place)

        _each(b, b.lshr(offset, shift), _last(b, offset, own.size, shift), one)
