"""Races and never-written memory at every access: the quick ways.

An access whose cells hold nothing of this epoch but the thread's own marks is clean: its cells are marked and that is
all. For consecutive addresses the cells are consecutive too; an address that all lanes share has one cell; any other
is gathered. What is not clean goes through `judge.look`, lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from llvmlite import ir

from ssmtool.execute.layout import SiteSlot
from ssmtool.execute.lower import masked
from ssmtool.execute.lower.access import Target, site_row
from ssmtool.execute.lower.checks.cells import MANY, SEVERAL, Cells, cells_of, i32
from ssmtool.execute.lower.checks.fused import partners
from ssmtool.execute.lower.checks.judge import ATOMICALLY, READS, WRITES, joined_codes, look
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import Region
from ssmtool.execute.lower.values import Lanes, any_lane, as_type, i64, mask_bits, pointer, splat, word
from ssmtool.execute.numerics.lanes import I1, I32, I64, Builder, Splat, Value, undefined
from ssmtool.execute.program.flat import Op

_ALIGNED = 16
"""Cells that are aligned together: 64 bytes."""
_UNSEEN = (Region.LOCAL, Region.PARAMS)


@dataclass(frozen=True, slots=True)
class _Access:
    """One access to be judged: the lanes that make it, what it does, and what its lanes wrote."""

    target: Target
    mask: Value
    does: int
    read_site: int
    values: Sequence[Lanes] = ()
    size: int = 0

    @property
    def reads(self) -> bool:
        return bool(self.does & READS)

    @property
    def writes(self) -> bool:
        return bool(self.does & WRITES)


def loaded(gang: Gang, op: Op, target: Target, mask: Value, quick: bool) -> None:
    """After a load by the lanes of `mask`; `quick`: the target's row in the table holds for all of them."""
    if not gang.mode.checks or target.region in _UNSEEN or id(op) in _partners(gang)[0]:
        return
    _judge(gang, _Access(target, mask, READS, target.site), quick)


def stored(gang: Gang, op: Op, target: Target, mask: Value, values: Sequence[Lanes], size: int, quick: bool) -> None:
    """After a store of elements of `size` bytes by the lanes of `mask`."""
    if not gang.mode.checks or target.region in _UNSEEN:
        return
    load = _partners(gang)[1].get(id(op))
    does = WRITES if load is None else WRITES | READS
    site = target.site if load is None else gang.sites.of(load)
    _judge(gang, _Access(target, mask, does, site, values, size), quick)


def changed_atomically(gang: Gang, op: Op, target: Target, mask: Value) -> None:
    """After an atomic operation by the lanes of `mask`. An exchange reads nothing that its result hangs on."""
    if not gang.mode.checks or target.region in _UNSEEN:
        return
    does = WRITES | ATOMICALLY | (0 if "exch" in op.modifiers else READS)
    with gang.builder.if_then(any_lane(gang.builder, mask)):
        _look(gang, _Access(target, mask, does, target.site))


def _partners(gang: Gang) -> tuple[dict[int, Op], dict[int, Op]]:
    cells = cells_of(gang)
    if cells.partners is None:
        cells.partners = partners(gang)
    return cells.partners


def _look(gang: Gang, access: _Access, mask: Value = None) -> None:
    values = [gang.spread(each) for each in access.values]
    everyone = access.mask
    todo = everyone if mask is None else mask
    look(gang, access.target, todo, access.does, access.read_site, everyone=everyone, values=values, size=access.size)


def _judge(gang: Gang, access: _Access, quick: bool) -> None:
    target = access.target
    if not quick:
        _look(gang, access)
    elif target.region is not Region.SHARED:
        _row(gang, access)
    elif target.address.shared:
        _one(gang, access)
    elif target.bytes != 1 << cells_of(gang).shift:
        _look(gang, access)
    elif target.address.stride == target.bytes:
        _consecutive(gang, access)
    else:
        _scattered(gang, access)


def _row(gang: Gang, access: _Access) -> None:
    """An access outside shared space: its row says whether there is anything to judge."""
    b = gang.builder
    row = site_row(gang, access.target.site)
    watched = b.icmp_unsigned("!=", word(b, row, SiteSlot.SHADOW), i64(0))
    if access.target.region is Region.GENERIC:
        watched = b.or_(watched, b.icmp_unsigned("==", word(b, row, SiteSlot.BASE), cells_of(gang).shared))
    with gang.rarely(watched):
        _look(gang, access)


def _cell_offset(gang: Gang, cells: Cells, offset: Value) -> Value:
    """Bytes from the first cell, for a byte offset in shared memory."""
    b = gang.builder
    amount = 2 - cells.shift
    if amount == 0:
        return offset
    number = i64(amount)
    return b.shl(offset, Splat(offset.type, number) if isinstance(offset.type, ir.VectorType) else number)


def _unclean(b: Builder, cell: Value, me: Value, base: Value, first: Value | None) -> Value:
    """Cells of another thread and this epoch; or, with `first`, of no write in this block."""
    found = b.and_(b.icmp_unsigned(">=", cell, base), b.icmp_unsigned("!=", cell, me))
    return found if first is None else b.or_(found, b.icmp_unsigned("<", cell, first))


# -- consecutive addresses


def _groups(lanes: int) -> list[tuple[int, int]]:
    """(first lane, lanes) of the pieces in which a gang's cells are judged: a reduction tree has no upper ones."""
    if lanes <= 32:
        return [(0, lanes)]
    edges = [0, 16, *(each for each in (32, 64, 128, 256) if each < lanes), lanes]
    return [(start, end - start) for start, end in pairwise(edges)]


def _consecutive(gang: Gang, access: _Access) -> None:
    b, cells = gang.builder, cells_of(gang)
    index = b.lshr(b.sub(access.target.address.value, cells.shared), i64(cells.shift))
    unclean = gang.alloca(I1)
    b.store(ir.Constant(I1, 0), unclean)
    groups = _groups(gang.lanes)
    for start, count in groups:
        part = _part(gang, access.mask, start, count)
        if len(groups) == 1:
            _group(gang, access, index, part, start, unclean)
            continue
        with b.if_then(any_lane(b, part)):
            _group(gang, access, index, part, start, unclean)
    with gang.rarely(b.load(unclean)):
        _look(gang, access)


def _part(gang: Gang, mask: Value, start: int, count: int) -> Value:
    if count == gang.lanes:
        return mask
    numbers = ir.Constant(ir.VectorType(I32, count), [ir.Constant(I32, start + each) for each in range(count)])
    return gang.builder.shuffle_vector(mask, undefined(mask.type), numbers)


def _group(gang: Gang, access: _Access, index: Value, mask: Value, start: int, unclean: Value) -> None:
    """The cells of some lanes, from an aligned one on: only such a load finds a store that is still under way.

    `index` is the number of lane 0's cell. The lanes begin `skew` cells behind the aligned one; those that then stick
    out at the end have a window of their own.
    """
    b = gang.builder
    bits = mask_bits(b, mask)
    count, kind = mask.type.count, bits.type
    first = b.add(index, i64(start))
    skew = b.and_(first, i64(_ALIGNED - 1))
    amount = as_type(b, skew, kind)
    thread = b.sub(b.add(b.trunc(gang.thread_zero, I32), i32(start)), b.trunc(skew, I32))
    window = b.sub(first, skew)
    _window(gang, access, window, b.shl(bits, amount), thread, unclean)
    rest = b.lshr(b.lshr(bits, ir.Constant(kind, 1)), b.sub(ir.Constant(kind, count - 1), amount))
    with b.if_then(b.icmp_unsigned("!=", rest, ir.Constant(kind, 0))):
        tail = as_type(b, rest, ir.IntType(_ALIGNED))
        _window(gang, access, b.add(window, i64(count)), tail, b.add(thread, i32(count)), unclean)


def _window(gang: Gang, access: _Access, index: Value, bits: Value, thread: Value, unclean: Value) -> None:
    """Cells that nobody has touched since the barrier, the likeliest, are marked here; others by `_exact_function`.

    All cells of the window are loaded, and stored as they were, whether lanes are active or not: the worker's memory
    goes on well beyond the cells on both sides, and belongs to nobody else.
    """
    b, cells = gang.builder, cells_of(gang)
    count = bits.type.width
    kind = ir.VectorType(I32, count)
    mask = b.bitcast(bits, ir.VectorType(I1, count))
    ticks = [b.load(slot) for slot in (cells.tick, cells.base, cells.first, cells.warp_base)]
    tick, base, first = (splat(b, each, count) for each in ticks[:3])
    me = b.or_(tick, b.add(splat(b, thread, count), _numbers(count)))
    writers, readers = (b.add(table, b.shl(index, i64(2))) for table in (cells.writers, cells.readers))
    writer, reader = (b.load(pointer(b, each, kind)) for each in (writers, readers))
    if access.reads:
        written = splat(b, b.sub(ticks[1], ticks[2]), count)
        calm = b.icmp_unsigned("<", b.sub(writer, first), written)
    else:
        calm = b.icmp_unsigned("<", writer, base)
    calm = b.and_(calm, b.icmp_unsigned("<", reader, base))
    with b.if_else(any_lane(b, b.and_(mask, b.not_(calm))), likely=False) as (then, otherwise):
        with then:
            function = _exact_function(gang, access.does, count)
            answer = b.call(function, [writers, readers, bits, thread, *ticks])
            b.store(b.or_(b.load(unclean), answer), unclean)
        with otherwise:
            old, place = (writer, writers) if access.writes else (reader, readers)
            b.store(b.select(mask, me, old), pointer(b, place, kind))
    for each in (writer, reader):
        each.align = 4 * _ALIGNED


def _numbers(count: int) -> Value:
    return ir.Constant(ir.VectorType(I32, count), [ir.Constant(I32, each) for each in range(count)])


def _exact_function(gang: Gang, does: int, count: int) -> Any:
    """`i1 f(writers, readers, mask, first thread, tick, base, first, warp base)`: mark the cells that are clean.

    The answer is whether some are not. Cells that other threads have only read too are no fault: they are joined.
    """
    module = gang.builder.module
    name = f"cells_{does}_{count}"
    found = module.globals.get(name)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(I1, [I64, I64, ir.IntType(count)] + [I32] * 5), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    writers, readers, bits, thread, *ticks = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    kind = ir.VectorType(I32, count)
    mask = b.bitcast(bits, ir.VectorType(I1, count))
    tick, base, first, warp_base = (splat(b, each, count) for each in ticks)
    me = b.or_(tick, b.add(splat(b, thread, count), _numbers(count)))
    writer = masked.load(b, writers, kind, mask, 4)
    reader = masked.load(b, readers, kind, mask, 4)
    bad = b.and_(_unclean(b, writer, me, base, first if does & READS else None), mask)
    others = b.and_(_unclean(b, reader, me, base, None), mask)
    if does & WRITES:
        bad = b.or_(bad, others)
        masked.store(b, me, writers, b.and_(mask, b.not_(bad)), 4)
    else:
        masked.store(b, joined_codes(b, reader, me, base, warp_base, tick), readers, mask, 4)
    b.ret(any_lane(b, bad))
    return function


# -- any addresses


def _scattered(gang: Gang, access: _Access) -> None:
    b, cells = gang.builder, cells_of(gang)
    mask, lanes = access.mask, gang.lanes
    kind = gang.vector(I32)
    offsets = b.sub(gang.spread(access.target.address), splat(b, cells.shared, lanes))
    offsets = _cell_offset(gang, cells, offsets)
    tick, base, first = (splat(b, b.load(slot), lanes) for slot in (cells.tick, cells.base, cells.first))
    me = b.or_(tick, b.add(splat(b, b.trunc(gang.thread_zero, I32), lanes), _numbers(lanes)))
    writers = b.add(offsets, splat(b, cells.writers, lanes))
    readers = b.add(offsets, splat(b, cells.readers, lanes))
    writer = masked.gather(b, writers, kind, mask, 4)
    reader = masked.gather(b, readers, kind, mask, 4)
    bad = b.and_(_unclean(b, writer, me, base, first if access.reads else None), mask)
    others = b.and_(_unclean(b, reader, me, base, None), mask)
    if not access.writes:
        _mark_scattered(gang, access, readers, me, bad, others)
        return
    bad = b.or_(bad, others)
    with b.if_else(any_lane(b, bad), likely=False) as (then, otherwise):
        with then:
            _look(gang, access)
        with otherwise:
            _mark_scattered(gang, access, writers, me, bad, bad)


def _mark_scattered(gang: Gang, access: _Access, places: Value, me: Value, bad: Value, others: Value) -> None:
    """Mark the lanes that are neither `bad` nor `others` at once, then look at those."""
    b = gang.builder
    clean = b.and_(access.mask, b.not_(b.or_(bad, others)))
    masked.scatter(b, me, places, clean, 4)
    # Where several lanes meet, one mark stays: the others are judged beside it.
    stayed = masked.gather(b, places, me.type, clean, 4)
    met = b.and_(clean, b.icmp_unsigned("!=", stayed, me))
    left = b.or_(b.or_(bad, others), met)
    with gang.rarely(any_lane(b, left)):
        _look(gang, access, left)


# -- one address


def _one(gang: Gang, access: _Access) -> None:
    """All lanes access one place."""
    b, cells = gang.builder, cells_of(gang)
    if access.target.bytes != 1 << cells.shift:
        _look(gang, access)
        return
    tick, base, first, warp_base = (b.load(slot) for slot in (cells.tick, cells.base, cells.first, cells.warp_base))
    code, several = _who(gang, access.mask)
    me = b.or_(tick, code)
    offset = _cell_offset(gang, cells, b.sub(access.target.address.value, cells.shared))
    writers, readers = (pointer(b, b.add(table, offset), I32) for table in (cells.writers, cells.readers))
    writer, reader = b.load(writers), b.load(readers)

    def others(cell: Value) -> Value:
        return b.and_(b.icmp_unsigned(">=", cell, base), b.or_(several, b.icmp_unsigned("!=", cell, me)))

    bad = others(writer)
    if access.reads:
        bad = b.or_(bad, b.icmp_unsigned("<", writer, first))
    if access.writes:
        bad = b.or_(bad, others(reader))
        apart = several if not all(each.shared for each in access.values) else _many(gang, code)
        bad = b.or_(bad, apart)
    with b.if_else(bad, likely=False) as (then, otherwise):
        with then:
            _look(gang, access)
        with otherwise:
            if access.writes:
                b.store(me, writers)
            else:
                b.store(joined_codes(b, reader, me, base, warp_base, tick), readers)


def _many(gang: Gang, code: Value) -> Value:
    b = gang.builder
    return b.icmp_unsigned("!=", b.and_(code, i32(MANY)), i32(0))


def _who(gang: Gang, mask: Value) -> tuple[Value, Value]:
    """(the code of the threads of a mask, i1: they are several)."""
    b = gang.builder
    first_thread = i32(0) if gang.geometry.gangs == 1 else b.trunc(gang.thread_zero, I32)
    bits = mask_bits(b, mask)
    kind = bits.type
    several = b.icmp_unsigned("!=", b.and_(bits, b.sub(bits, ir.Constant(kind, 1))), ir.Constant(kind, 0))
    lowest = _count_zeros(gang, "cttz", bits)
    own = b.add(first_thread, lowest)
    warp = b.or_(b.and_(own, i32(~31)), i32(SEVERAL))
    if gang.lanes > 32:
        highest = b.sub(i32(gang.lanes - 1), _count_zeros(gang, "ctlz", bits))
        apart = b.icmp_unsigned("!=", b.lshr(lowest, i32(5)), b.lshr(highest, i32(5)))
        warp = b.select(apart, i32(MANY), warp)
    return b.select(several, warp, own), several


def _count_zeros(gang: Gang, name: str, bits: Value) -> Value:
    b = gang.builder
    full = f"llvm.{name}.i{bits.type.width}"
    function = b.module.globals.get(full) or ir.Function(b.module, ir.FunctionType(bits.type, [bits.type, I1]), full)
    return as_type(b, b.call(function, [bits, ir.Constant(I1, 0)]), I32)
