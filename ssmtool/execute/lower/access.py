"""Addresses, and the check that an access stays inside what it may touch.

An address is a 64-bit host address once its state space is resolved: shared memory is a region of the worker, local
memory a region of each thread, everything else the allocations of the launch. In bounds mode an access first looks at
the allocation that the same instruction met last (`SiteSlot`): for a value that lanes share or step through that is
one comparison of its ends. Only when it fails are lanes looked at one by one (`runtime.check`), which says exactly
which lanes may go on and reports the others; their access does not happen.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ssmtool.execute.layout import SITE_WORDS, LaunchSlot, SiteSlot, WorkerSlot
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import Region, check
from ssmtool.execute.lower.values import Lanes, any_lane, as_type, i64, mask_bits, splat, word
from ssmtool.execute.numerics.lanes import I1, I64, Builder, Splat, Value
from ssmtool.execute.program.flat import Op, Place, refuse
from ssmtool.ptx.operands import Address, Register


@dataclass(frozen=True, slots=True)
class Target:
    """Where an access goes: host addresses of its first byte, the region they must lie in, bytes and alignment."""

    address: Lanes
    region: Region
    bytes: int
    site: int
    store: bool


SPACES = ("global", "shared", "const", "local", "param")


def resolve(gang: Gang, op: Op, address: Address, size: int, store: bool) -> Target:
    """The target of an access of `size` bytes by `op` at `address`."""
    space = op.opcode.space or "generic"
    if space not in (*SPACES, "generic") or (space == "const" and store):
        raise refuse(op, f"no access to .{space} space here")
    site = gang.sites.of(op, store)
    lanes = _address(gang, op, address, space)
    region = Region.of(space)
    b = gang.builder
    if region is Region.SHARED:
        base = gang.shared[0]
    elif region is Region.PARAMS:
        base = gang.launch_word(LaunchSlot.PARAMS)
    elif region is Region.LOCAL:
        return Target(Lanes(local_address(gang, lanes), None), region, size, site, store)
    else:
        return Target(lanes, region, size, site, store)
    if lanes.stride is None:
        return Target(Lanes(b.add(lanes.value, splat(b, base, gang.lanes)), None), region, size, site, store)
    return Target(Lanes(b.add(lanes.value, base), lanes.stride), region, size, site, store)


def _address(gang: Gang, op: Op, address: Address, space: str) -> Lanes:
    """The address in its own space, 64 bits wide.

    A stepped 32-bit address of shared memory is extended by its lane 0: lanes that would wrap lie outside the 48 KB
    that there are, and the check, which looks at both ends, sends them to the exact way.
    """
    b = gang.builder
    if address.extra:
        raise refuse(op, "an address with more than one part")
    if address.base is None:
        found = Lanes(i64(0))
    elif isinstance(address.base, Place):
        if address.base.space not in (space, "const" if space == "global" else space) and space != "generic":
            raise refuse(op, f"a variable of .{address.base.space} in an access to .{space}")
        found = Lanes(gang.place(address.base))
    elif isinstance(address.base, Register):
        wide = gang.type_of(address.base)
        if wide[1:] not in ("32", "64"):
            raise refuse(op, f"an address in a .{wide} register")
        found = gang.read(op, address.base, f"u{wide[1:]}")
        if found.stride is not None and wide[1:] == "32" and found.stride and space != "shared":
            found = Lanes(gang.spread(found), None)
        if found.stride and found.stride >= 1 << 31:
            found = Lanes(gang.spread(found), None)
        if wide[1:] == "32" and found.stride is None:
            offset = Splat(found.value.type, ir.Constant(ir.IntType(32), address.offset & 0xFFFFFFFF))
            return Lanes(as_type(b, b.add(found.value, offset), I64), None)
        found = Lanes(as_type(b, found.value, I64), found.stride)
    else:
        raise refuse(op, "an address that names nothing known")
    if address.offset == 0:
        return found
    if found.stride is None:
        return Lanes(b.add(found.value, Splat(found.value.type, i64(address.offset & (2**64 - 1)))), None)
    return Lanes(b.add(found.value, i64(address.offset & (2**64 - 1))), found.stride)


def local_bases(gang: Gang) -> Value:
    """The host address of every lane's own local memory."""
    b = gang.builder
    base = splat(b, gang.worker_word(WorkerSlot.LOCAL), gang.lanes)
    size = Splat(gang.vector(I64), i64(gang.flat.local_bytes))
    return b.add(base, b.mul(gang.thread_numbers, size))


def local_address(gang: Gang, lanes: Lanes) -> Value:
    """Host addresses of offsets in local memory; an offset outside the thread's own part gets one that faults."""
    b = gang.builder
    offset = gang.spread(lanes)
    inside = b.icmp_unsigned("<", offset, Splat(offset.type, i64(max(gang.flat.local_bytes, 1))))
    return b.select(inside, b.add(local_bases(gang), offset), Splat(offset.type, i64(0)))


def site_row(gang: Gang, site: int) -> Value:
    """The row of an access in the worker's table."""
    b = gang.builder
    table = b.inttoptr(gang.worker_word(WorkerSlot.SITES), I64.as_pointer())
    return b.gep(table, [i64(site * SITE_WORDS)])


def region_bounds(gang: Gang, target: Target) -> tuple[Value, Value]:
    """Base and size of what the access was last, or must be, in."""
    b = gang.builder
    if target.region is Region.SHARED:
        return gang.shared
    if target.region is Region.PARAMS:
        return gang.launch_word(LaunchSlot.PARAMS), i64(gang.flat.param_bytes)
    if target.region is Region.LOCAL:
        return (
            gang.worker_word(WorkerSlot.LOCAL),
            i64(gang.flat.local_bytes * gang.geometry.gangs * gang.lanes),
        )
    row = site_row(gang, target.site)
    return word(b, row, SiteSlot.BASE), word(b, row, SiteSlot.BYTES)


def all_inside(gang: Gang, target: Target) -> Value:
    """i1: every lane, active or not for stepped addresses, is inside and aligned. False may still be right."""
    b = gang.builder
    base, size = region_bounds(gang, target)
    low = i64(target.bytes - 1)
    address = target.address
    if address.stride is None:
        offset = b.sub(address.value, splat(b, base, gang.lanes))
        room = splat(b, b.select(b.icmp_unsigned(">=", size, i64(target.bytes)), b.sub(size, low), i64(0)), gang.lanes)
        bad = b.icmp_unsigned(">=", offset, room)
        if target.bytes > 1:
            part = b.and_(address.value, Splat(offset.type, low))
            bad = b.or_(bad, b.icmp_unsigned("!=", part, Splat(offset.type, i64(0))))
        return b.not_(any_lane(b, b.and_(bad, gang.mask)))
    return _ends_inside(gang, target, base, size)


def _ends_inside(gang: Gang, target: Target, base: Value, size: Value) -> Value:
    """For a stepped address: both ends of the gang are inside, or at least both ends of its active lanes.

    The second look is for the likes of `if (tid < stride) p[tid] += p[tid + stride]`, where idle lanes point outside.
    """
    b = gang.builder
    address = target.address
    assert address.stride is not None
    if address.stride % target.bytes:
        return ir.Constant(I1, 0)
    whole = _span_inside(gang, target, base, size, i64(0), i64(gang.lanes - 1))
    if address.stride == 0 or gang.full:
        return whole
    room = gang.alloca(I1)
    b.store(whole, room)
    with b.if_then(b.not_(whole)):
        bits = mask_bits(b, gang.mask)
        empty = b.icmp_unsigned("==", bits, ir.Constant(bits.type, 0))
        low = as_type(b, zero_bits(b, "cttz", bits), I64)
        high = b.sub(i64(gang.lanes - 1), as_type(b, zero_bits(b, "ctlz", bits), I64))
        b.store(b.or_(empty, _span_inside(gang, target, base, size, low, high)), room)
    return b.load(room)


def zero_bits(b: Builder, name: str, bits: Value) -> Value:
    """Trailing (cttz) or leading (ctlz) zeros of a mask."""
    function = b.module.globals.get(f"llvm.{name}.i{bits.type.width}") or ir.Function(
        b.module, ir.FunctionType(bits.type, [bits.type, I1]), f"llvm.{name}.i{bits.type.width}"
    )
    return b.call(function, [bits, ir.Constant(I1, 0)])


def _span_inside(gang: Gang, target: Target, base: Value, size: Value, low: Value, high: Value) -> Value:
    """i1: the access is inside and aligned for every lane from `low` to `high`."""
    b = gang.builder
    stride = target.address.stride
    assert stride is not None
    start, end = (low, high) if stride >= 0 else (high, low)
    first = b.add(target.address.value, b.mul(start, i64(stride & (2**64 - 1))))
    span = b.add(b.mul(b.sub(end, start), i64(stride & (2**64 - 1))), i64(target.bytes))
    offset = b.sub(first, base)
    inside = b.and_(b.icmp_unsigned("<", offset, size), b.icmp_unsigned(">=", b.sub(size, offset), span))
    if target.bytes > 1:
        aligned = b.icmp_unsigned("==", b.and_(target.address.value, i64(target.bytes - 1)), i64(0))
        inside = b.and_(inside, aligned)
    return inside


def lane_check(gang: Gang, target: Target, mask: Value) -> Value:
    """The lanes of `mask` that may make the access, looked at one by one; the others are reported."""
    addresses = gang.spread(target.address)
    return check(gang, target.region, addresses, mask, target.bytes, target.site, target.store)
