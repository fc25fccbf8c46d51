"""What counting mode adds: warps by basic block, branches that part a warp, and how well accesses fall together.

The worker's counters are one row of words: a count for each basic block; then for each conditional branch the warps
that took it and those it parted; then for each access the warp requests and the parts they need. A part is a 32-byte
sector in global and local memory, and in shared memory a pass over 32 banks of 4 bytes: lanes of a warp that want
different words of one bank need a pass each. (Kepler's banks are 8 bytes wide, which forgives some of these.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from ssmtool.execute.layout import SiteSlot, WorkerSlot
from ssmtool.execute.lower.access import Target, site_row
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import POINTER, Region, lane_loop
from ssmtool.execute.lower.values import any_lane, i64, mask_bits, splat, word
from ssmtool.execute.numerics.lanes import I8, I32, I64, Builder, Splat, Value
from ssmtool.execute.program.flat import Op

WARP = 32
SECTOR_BYTES = 32
BANK_BYTES = 4
BANKS = 32


@dataclass(slots=True)
class Counted:
    """What the words of the counters mean, in their order: blocks, then branches, then accesses.

    `branches` and `accesses` are instruction indices of the entry's own text (those of a callee: -1).
    """

    blocks: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    accesses: list[tuple[int, str]] = field(default_factory=list)
    places: list[tuple[str, int, Any]] = field(default_factory=list)

    @property
    def words(self) -> int:
        """Words of the whole row."""
        return len(self.blocks) + 2 * len(self.branches) + 2 * len(self.accesses)

    def settle(self) -> None:
        """Give every counter its word, now that all are known."""
        start = {"block": 0, "branch": len(self.blocks), "access": len(self.blocks) + 2 * len(self.branches)}
        step = {"block": 1, "branch": 2, "access": 2}
        for kind, number, variable in self.places:
            variable.initializer = i64(8 * (start[kind] + step[kind] * number))


def _word(gang: Gang, kind: str, number: int, second: bool = False) -> Value:
    """A pointer to a counter. Its offset is a constant of the module that `settle` fills in."""
    b = gang.builder
    name = f"counter_{kind}_{number}"
    variable = b.module.globals.get(name)
    if variable is None:
        variable = ir.GlobalVariable(b.module, I64, name)
        variable.linkage = "internal"
        variable.global_constant = True
        gang.counted.places.append((kind, number, variable))
    base = gang.worker_word(WorkerSlot.COUNTERS)
    return b.inttoptr(b.add(b.add(base, b.load(variable)), i64(8 * second)), POINTER)


def _add(b: Builder, place: Value, number: Value) -> None:
    b.store(b.add(b.load(place), number), place)


def warps(gang: Gang, mask: Value) -> Value:
    """How many warps have a lane in the mask, i64."""
    b = gang.builder
    if gang.lanes == WARP:
        return b.zext(any_lane(b, mask), I64)
    count = gang.lanes // WARP
    kind = ir.VectorType(I32, count)
    some = b.icmp_unsigned("!=", b.bitcast(mask, kind), Splat(kind, ir.Constant(I32, 0)))
    parts = [b.zext(b.extract_element(some, ir.Constant(I32, part)), I64) for part in range(count)]
    total = parts[0]
    for part in parts[1:]:
        total = b.add(total, part)
    return total


def entered(gang: Gang, block: int) -> None:
    """A basic block begins."""
    if not gang.mode.counters:
        return
    number = len(gang.counted.blocks)
    gang.counted.blocks.append(block)
    _add(gang.builder, _word(gang, "block", number), warps(gang, gang.mask))


def branched(gang: Gang, op: Op, taken: Value | None) -> None:
    """A conditional branch: `taken` are the lanes that jump; None when all lanes go one way."""
    if not gang.mode.counters:
        return
    b = gang.builder
    number = len(gang.counted.branches)
    gang.counted.branches.append(_index(gang, op))
    _add(b, _word(gang, "branch", number), warps(gang, gang.mask))
    if taken is None:
        return
    falling = b.and_(gang.mask, b.not_(taken))
    both: Value
    if gang.lanes == WARP:
        both = b.zext(b.and_(any_lane(b, taken), any_lane(b, falling)), I64)
    else:  # warps with both kinds of lanes: those of either kind twice, less those with any
        either = b.add(warps(gang, taken), warps(gang, falling))
        both = b.sub(either, warps(gang, gang.mask))
    _add(b, _word(gang, "branch", number, True), both)


def _index(gang: Gang, op: Op) -> int:
    return op.origin.index if op.origin.function is gang.flat.entry else -1


def accessed(gang: Gang, op: Op, target: Target, mask: Value) -> None:
    """A load, store or atomic that the lanes of `mask` have made.

    Sectors count from the beginning of the allocation, since cudaMalloc aligns what it gives and NumPy does not.
    """
    if not gang.mode.counters:
        return
    b = gang.builder
    shared = target.region is Region.SHARED
    number = len(gang.counted.accesses)
    gang.counted.accesses.append((_index(gang, op), "shared" if shared else "global"))
    requests, parts = _word(gang, "access", number), _word(gang, "access", number, True)
    _add(b, requests, warps(gang, mask))
    if target.address.shared or (shared and target.address.stride == BANK_BYTES == target.bytes):
        _add(b, parts, warps(gang, mask))
        return
    room = gang.alloca(gang.vector(I64))
    addresses = gang.spread(target.address)
    if gang.mode.bounds and target.region in (Region.ALLOCATIONS, Region.GENERIC):
        addresses = b.sub(addresses, splat(b, word(b, site_row(gang, target.site), SiteSlot.BASE), gang.lanes))
    b.store(addresses, room)
    unit = BANK_BYTES if shared else SECTOR_BYTES
    arguments = [b.bitcast(room, POINTER), mask_bits(b, mask), i64(target.bytes)]
    _add(b, parts, b.call(_parts_function(b.module, gang.lanes, unit, shared), arguments))


def _parts_function(module: Value, lanes: int, unit: int, banks: bool) -> Any:
    """`i64 parts(addresses, mask, bytes)`: over the warps, sectors touched, or passes over the banks."""
    name = "bank_passes" if banks else "sectors"
    found = module.globals.get(name)
    if found is not None:
        return found
    bits = ir.IntType(lanes)
    function = ir.Function(module, ir.FunctionType(I64, [POINTER, bits, I64]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    addresses, mask, size = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    total, most = b.alloca(I64), b.alloca(I64)
    taken = b.alloca(ir.ArrayType(I8, BANKS))
    b.store(i64(0), total)
    zero = ir.Constant(I32, 0)
    for warp in range(lanes // WARP):
        part = b.lshr(mask, ir.Constant(bits, warp * WARP)) if warp else mask
        own = b.trunc(part, I32) if lanes > WARP else part
        b.store(ir.Constant(taken.type.pointee, None), taken)
        b.store(i64(0), most)
        with lane_loop(b, WARP, own) as lane:
            place = b.add(lane, i64(warp * WARP))
            first = b.udiv(b.load(b.gep(addresses, [place])), i64(unit))
            last = b.udiv(b.add(b.load(b.gep(addresses, [place])), b.sub(size, i64(1))), i64(unit))
            for step in range(16 // unit if banks else 1):
                unit_of = b.add(first, i64(step))
                with b.if_then(b.icmp_unsigned("<=", unit_of, last)):
                    earlier = b.and_(own, b.sub(b.shl(ir.Constant(I32, 1), b.trunc(lane, I32)), ir.Constant(I32, 1)))
                    seen = b.alloca(ir.IntType(1))
                    b.store(ir.Constant(ir.IntType(1), 0), seen)
                    with lane_loop(b, WARP, earlier) as other:
                        elsewhere = b.add(other, i64(warp * WARP))
                        start = b.udiv(b.load(b.gep(addresses, [elsewhere])), i64(unit))
                        end = b.udiv(b.add(b.load(b.gep(addresses, [elsewhere])), b.sub(size, i64(1))), i64(unit))
                        same = b.and_(b.icmp_unsigned("<=", start, unit_of), b.icmp_unsigned(">=", end, unit_of))
                        b.store(b.or_(b.load(seen), same), seen)
                    with b.if_then(b.not_(b.load(seen))):
                        if banks:
                            bank = b.gep(taken, [zero, b.and_(unit_of, i64(BANKS - 1))])
                            now = b.add(b.load(bank), ir.Constant(I8, 1))
                            b.store(now, bank)
                            wide = b.zext(now, I64)
                            b.store(b.select(b.icmp_unsigned(">", wide, b.load(most)), wide, b.load(most)), most)
                        else:
                            _add(b, total, i64(1))
        if banks:
            _add(b, total, b.load(most))
    b.ret(b.load(total))
    return function
