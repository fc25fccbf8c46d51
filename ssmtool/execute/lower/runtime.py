"""Functions that every kernel's module holds once: looking at lanes one by one, away from the quick way."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ssmtool.execute.layout import (
    ALLOCATION_WORDS,
    READ_ONLY,
    SITE_WORDS,
    AllocationSlot,
    Fault,
    LaunchSlot,
    SiteSlot,
    WorkerSlot,
)
from ssmtool.execute.lower.values import i64, mask_bits, set_word, word
from ssmtool.execute.numerics.lanes import I64, Builder, Value

if TYPE_CHECKING:
    from ssmtool.execute.lower.gang import Gang


class Region(IntEnum):
    """What an address must lie in."""

    ALLOCATIONS = 0
    """An allocation of the launch."""
    GENERIC = 1
    """An allocation, or the block's shared or the threads' local memory."""
    SHARED = 2
    LOCAL = 3
    PARAMS = 4

    @staticmethod
    def of(space: str) -> Region:
        """The region of a state space."""
        return {
            "shared": Region.SHARED,
            "local": Region.LOCAL,
            "param": Region.PARAMS,
            "generic": Region.GENERIC,
        }.get(space, Region.ALLOCATIONS)


POINTER = I64.as_pointer()


def check(gang: Gang, region: Region, addresses: Value, mask: Value, size: int, site: int, store: bool) -> Value:
    """The lanes of `mask` whose access of `size` bytes is inside and aligned; the others are reported."""
    b = gang.builder
    function = _check_function(gang)
    room = gang.alloca(addresses.type)
    b.store(addresses, room)
    arguments = gang.arguments
    bits = b.call(
        function,
        [
            arguments.launch,
            arguments.worker,
            b.bitcast(room, POINTER),
            mask_bits(b, mask),
            i64(size),
            i64(site),
            i64(region),
            i64(store),
            arguments.block,
            gang.thread_zero,
        ],
    )
    return b.bitcast(bits, gang.mask_type)


def call_report(b: Builder, launch: Value, *numbers: Value) -> None:
    """Call the report callback of the launch."""
    signature = ir.FunctionType(ir.VoidType(), [I64] * 6)
    b.call(b.inttoptr(word(b, launch, LaunchSlot.REPORT), signature.as_pointer()), list(numbers))


def _check_function(gang: Gang) -> Any:
    """`mask check(launch, worker, addresses, mask, bytes, site, region, store, block, first thread)`."""
    module, lanes = gang.builder.module, gang.lanes
    found = module.globals.get("check_lanes")
    if found is not None:
        return found
    bits = ir.IntType(lanes)
    kind = ir.FunctionType(bits, [POINTER, POINTER, POINTER, bits] + [I64] * 6)
    function = ir.Function(module, kind, "check_lanes")
    function.linkage = "internal"
    function.attributes.add("noinline")
    launch, worker, addresses, mask, size, site, region, store, block, first = function.args
    entry = function.append_basic_block("entry")
    b = ir.IRBuilder(entry)
    locate = locate_function(gang)
    good = b.alloca(bits)
    b.store(ir.Constant(bits, 0), good)
    with lane_loop(b, lanes, mask) as lane:
        address = b.load(b.gep(addresses, [lane]))
        thread = b.add(first, lane)
        fault = b.call(locate, [launch, worker, address, size, site, region, store, thread])
        fine = b.icmp_unsigned("==", fault, i64(0))
        with b.if_else(fine) as (then, otherwise):
            with then:
                b.store(b.or_(b.load(good), bit(b, lane, bits)), good)
            with otherwise:
                where = b.select(
                    b.icmp_unsigned("==", region, i64(Region.SHARED)),
                    b.sub(address, word(b, worker, WorkerSlot.SHARED)),
                    address,
                )
                call_report(b, launch, fault, site, block, thread, where, size)
    b.ret(b.load(good))
    return function


def bit(b: Builder, lane: Value, bits: Any) -> Value:
    """1 << lane, in a mask as wide as the gang."""
    number = lane if bits.width == 64 else (b.trunc(lane, bits) if bits.width < 64 else b.zext(lane, bits))
    return b.shl(ir.Constant(bits, 1), number)


class lane_loop:  # noqa: N801 - reads as a statement
    """`with lane_loop(b, lanes, mask) as lane:` runs the body for each set bit of an integer mask, lowest first."""

    def __init__(self, b: Builder, lanes: int, mask: Value) -> None:
        self.b, self.lanes, self.mask = b, lanes, mask

    def __enter__(self) -> Value:
        b = self.b
        function = b.function
        before = b.block
        self.head, body, self.step, self.done = (
            function.append_basic_block(name) for name in ("lanes", "lane", "next_lane", "lanes_done")
        )
        b.branch(self.head)
        b.position_at_end(self.head)
        self.lane = b.phi(I64)
        self.lane.add_incoming(i64(0), before)
        test = function.append_basic_block("lane_active")
        b.cbranch(b.icmp_unsigned("<", self.lane, i64(self.lanes)), test, self.done)
        b.position_at_end(test)
        own = b.and_(self.mask, bit(b, self.lane, self.mask.type))
        b.cbranch(b.icmp_unsigned("!=", own, ir.Constant(self.mask.type, 0)), body, self.step)
        b.position_at_end(body)
        return self.lane

    def __exit__(self, *exception: object) -> None:
        b = self.b
        if exception[0] is None:
            b.branch(self.step)
            b.position_at_end(self.step)
            following = b.add(self.lane, i64(1))
            self.lane.add_incoming(following, self.step)
            b.branch(self.head)
            b.position_at_end(self.done)


def _inside(b: Builder, address: Value, size: Value, base: Value, total: Value) -> tuple[Value, Value]:
    """(the first byte is inside, the whole access is)."""
    offset = b.sub(address, base)
    first = b.icmp_unsigned("<", offset, total)
    return first, b.and_(first, b.icmp_unsigned(">=", b.sub(total, offset), size))


def locate_function(gang: Gang) -> Any:
    """`i64 locate(launch, worker, address, bytes, site, region, store, thread)`: 0, or the fault.

    Finds the allocation, notes it in the access's row, and tells a misaligned from an outside from a forbidden one.
    """
    module = gang.builder.module
    found = module.globals.get("locate")
    if found is not None:
        return found
    kind = ir.FunctionType(I64, [POINTER, POINTER] + [I64] * 6)
    function = ir.Function(module, kind, "locate")
    function.linkage = "internal"
    function.attributes.add("noinline")
    launch, worker, address, size, site, region, store, thread = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def answer_if(condition: Value, fault: int) -> None:
        with b.if_then(condition):
            b.ret(i64(fault))

    answer_if(b.icmp_unsigned("!=", b.and_(address, b.sub(size, i64(1))), i64(0)), Fault.MISALIGNED)
    local = i64(gang.flat.local_bytes)
    own = b.add(word(b, worker, WorkerSlot.LOCAL), b.mul(thread, local))
    regions = {
        Region.SHARED: (word(b, worker, WorkerSlot.SHARED), word(b, launch, LaunchSlot.SHARED_BYTES)),
        Region.LOCAL: (own, local),
        Region.PARAMS: (word(b, launch, LaunchSlot.PARAMS), i64(gang.flat.param_bytes)),
    }
    for each, (base, total) in regions.items():
        with b.if_then(b.icmp_unsigned("==", region, i64(each))):
            _, whole = _inside(b, address, size, base, total)
            b.ret(b.select(whole, i64(0), i64(Fault.OUT_OF_BOUNDS)))
    with b.if_then(b.icmp_unsigned("==", region, i64(Region.GENERIC))):
        for each in (Region.SHARED, Region.LOCAL):
            first, whole = _inside(b, address, size, *regions[each])
            with b.if_then(first):
                with b.if_then(b.not_(whole)):
                    b.ret(i64(Fault.OUT_OF_BOUNDS))
                if each is Region.SHARED:  # one region for all threads, so the next access may go the quick way
                    _note(b, worker, site, *regions[each], i64(0))
                b.ret(i64(0))
    _search(b, launch, worker, address, size, site, store)
    return function


def _search(b: Builder, launch: Value, worker: Value, address: Value, size: Value, site: Value, store: Value) -> None:
    """Look the address up in the allocations and return."""
    function, before = b.function, b.block
    head, body, step, missing = (function.append_basic_block(n) for n in ("search", "row", "next_row", "missing"))
    table = b.inttoptr(word(b, launch, LaunchSlot.ALLOCATIONS), POINTER)
    count = word(b, launch, LaunchSlot.ALLOCATION_COUNT)
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(I64)
    index.add_incoming(i64(0), before)
    b.cbranch(b.icmp_unsigned("<", index, count), body, missing)
    b.position_at_end(body)
    row = b.gep(table, [b.mul(index, i64(ALLOCATION_WORDS))])
    base, total = word(b, row, AllocationSlot.BASE), word(b, row, AllocationSlot.BYTES)
    first, whole = _inside(b, address, size, base, total)
    hit = function.append_basic_block("hit")
    b.cbranch(first, hit, step)
    b.position_at_end(step)
    index.add_incoming(b.add(index, i64(1)), step)
    b.branch(head)
    b.position_at_end(missing)
    b.ret(i64(Fault.OUT_OF_BOUNDS))
    b.position_at_end(hit)
    with b.if_then(b.not_(whole)):
        b.ret(i64(Fault.OUT_OF_BOUNDS))
    locked = b.icmp_unsigned("!=", b.and_(word(b, row, AllocationSlot.FLAGS), i64(READ_ONLY)), i64(0))
    with b.if_then(b.and_(locked, b.icmp_unsigned("!=", store, i64(0)))):
        b.ret(i64(Fault.READ_ONLY))
    own = _note(b, worker, site, base, total, word(b, row, AllocationSlot.SHADOW))
    number = b.select(b.icmp_unsigned("<", index, i64(63)), index, i64(63))
    touched = b.or_(word(b, own, SiteSlot.TOUCHED), b.shl(i64(1), number))
    set_word(b, own, SiteSlot.TOUCHED, touched)
    b.ret(i64(0))


def _note(b: Builder, worker: Value, site: Value, base: Value, total: Value, shadow: Value) -> Value:
    """Remember in an access's row what it met; the row."""
    sites = b.inttoptr(word(b, worker, WorkerSlot.SITES), POINTER)
    own = b.gep(sites, [b.mul(site, i64(SITE_WORDS))])
    set_word(b, own, SiteSlot.BASE, base)
    set_word(b, own, SiteSlot.BYTES, total)
    set_word(b, own, SiteSlot.SHADOW, shadow)
    return own
