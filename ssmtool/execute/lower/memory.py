"""ld and st in every state space.

What all lanes share is one scalar access; consecutive addresses are one vector access; anything else is a gather or a
scatter. In bounds mode each has a quick way and an exact one, see `access`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ssmtool.execute.layout import LaunchSlot
from ssmtool.execute.lower import checks, counting, masked, watching
from ssmtool.execute.lower.access import Target, all_inside, lane_check, local_bases, resolve, zero_bits
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import Region
from ssmtool.execute.lower.values import Lanes, Type, any_lane, as_type, i64, lane_type, mask_bits, pointer, zeros
from ssmtool.execute.numerics.lanes import I32, Splat, Value, undefined
from ssmtool.execute.program.flat import Op, Place, refuse
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Address, Operand, Vector

_TYPES = frozenset(
    "b8 u8 s8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 f16x2 bf16x2 b64 u64 s64 f64".split()  # noqa: SIM905
)
_WORDS = frozenset(
    [
        "global",
        "shared",
        "shared::cta",
        "const",
        "local",
        "param",
        "param::entry",
        "param::func",
        "volatile",
        "relaxed",
        "acquire",
        "release",
        "weak",
        "cta",
        "gpu",
        "sys",
        "nc",
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "wb",
        "wt",
        "v2",
        "v4",
        "v8",
    ]
)


def _shape(op: Op) -> tuple[str, int, int]:
    """(PTX type, bytes of one element, elements); refuses what is not a plain access."""
    for word in op.modifiers:
        plain = word in _WORDS or word in _TYPES or word.startswith(("L1::", "L2::"))
        if not plain or word == "L2::cache_hint":
            raise refuse(op, f".{word} is not known here")
    if len(op.opcode.types) != 1:
        raise refuse(op, "an access has one type")
    kind = op.opcode.types[0]
    return kind, TYPE_BITS[kind] // 8, op.opcode.vector


def _elements(operand: Operand, count: int, op: Op) -> Sequence[Operand]:
    elements = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(elements) != count:
        raise refuse(op, f"{count} elements are accessed and {len(elements)} registers given")
    return elements


def load(gang: Gang, op: Op) -> None:
    """`ld`, `ldu`."""
    kind, size, count = _shape(op)
    address = op.operands[1]
    if not isinstance(address, Address):
        raise refuse(op, "expected an address")
    registers = _elements(op.operands[0], count, op)
    if isinstance(address.base, Place) and address.base.space == "param":
        values = _load_parameter(gang, address.base.offset + address.offset, kind, size, count, op)
        stride: int | None = 0
    else:
        target = resolve(gang, op, address, size * count, store=False)
        if target.address.shared:
            values, stride = _load_shared_value(gang, op, target, kind, size, count), 0
        else:
            values, stride = _load_lanes(gang, op, target, kind, size, count), None
        counting.accessed(gang, op, target, gang.active(op))
        watching.accessed(gang, target, gang.active(op))
    for register, value in zip(registers, values, strict=True):
        gang.write(op, register, Lanes(value, stride), kind)


def _load_parameter(gang: Gang, offset: int, kind: str, size: int, count: int, op: Op) -> list[Value]:
    if offset < 0 or offset + size * count > gang.flat.param_bytes:
        raise refuse(op, "reads beyond the entry's parameters")
    b = gang.builder
    base = gang.launch_word(LaunchSlot.PARAMS)
    return [_scalar(gang, b.add(base, i64(offset + size * number)), kind, size) for number in range(count)]


def _scalar(gang: Gang, address: Value, kind: str, size: int) -> Value:
    found = gang.builder.load(pointer(gang.builder, address, lane_type(kind)))
    found.align = size
    return found


def _merged(
    gang: Gang, kinds: Sequence[Type], quick: Value, fast: Callable[[], list[Value]], slow: Callable[[], list[Value]]
) -> list[Value]:
    """The values of `fast()` where `quick` holds, else those of `slow()`."""
    b = gang.builder
    slots = [gang.alloca(kind) for kind in kinds]
    with b.if_else(quick, likely=True) as (then, otherwise):
        with then:
            for slot, value in zip(slots, fast(), strict=True):
                b.store(value, slot)
        with otherwise:
            for slot, value in zip(slots, slow(), strict=True):
                b.store(value, slot)
    return [b.load(slot) for slot in slots]


def first_lane(gang: Gang, mask: Value) -> Value:
    """The mask with only its lowest lane."""
    b = gang.builder
    bits = mask_bits(b, mask)
    return b.bitcast(b.and_(bits, b.neg(bits)), gang.mask_type)


def _load_shared_value(gang: Gang, op: Op, target: Target, kind: str, size: int, count: int) -> list[Value]:
    """One load for all lanes: they share the address. Nothing is loaded when no lane runs."""
    b = gang.builder
    address = target.address.value
    lane = lane_type(kind)

    def fast() -> list[Value]:
        return [_scalar(gang, b.add(address, i64(size * number)), kind, size) for number in range(count)]

    def nothing() -> list[Value]:
        return [zeros(lane)] * count

    def seen(quick: bool) -> list[Value]:
        values = fast()
        checks.loaded(gang, op, target, gang.active(op), quick)
        return values

    def slow() -> list[Value]:
        allowed = any_lane(b, lane_check(gang, target, first_lane(gang, gang.active(op))))
        return _merged(gang, [lane] * count, allowed, lambda: seen(False), nothing)

    def all_ways() -> list[Value]:
        if not gang.mode.bounds:
            return fast()
        return _merged(gang, [lane] * count, all_inside(gang, target), lambda: seen(True), slow)

    if op.predicate is None:
        return all_ways()
    return _merged(gang, [lane] * count, any_lane(b, gang.active(op)), all_ways, nothing)


def _load_lanes(gang: Gang, op: Op, target: Target, kind: str, size: int, count: int) -> list[Value]:
    mask = gang.active(op)
    lanes = gang.vector(lane_type(kind))
    b = gang.builder

    def spread_out() -> list[Value]:
        return _gather(gang, target, kind, size, count, mask)

    def fast() -> list[Value]:
        if target.address.stride == size * count:
            return _consecutive(gang, target, kind, size, count, mask)
        return spread_out()

    if not gang.mode.bounds:
        return fast()

    def seen() -> list[Value]:
        values = fast()
        checks.loaded(gang, op, target, mask, True)
        return values

    def slow() -> list[Value]:
        allowed = lane_check(gang, target, mask)
        values = _gather(gang, target, kind, size, count, allowed)
        checks.loaded(gang, op, target, allowed, False)
        return [b.select(allowed, value, zeros(lanes)) for value in values]

    quick = _no_lane_strays(gang, target, mask) if target.region is Region.LOCAL else all_inside(gang, target)
    return _merged(gang, [lanes] * count, quick, seen, slow)


def _no_lane_strays(gang: Gang, target: Target, mask: Value) -> Value:
    """i1: every active lane's local access is inside its own part and aligned."""
    b = gang.builder
    if target.bytes > gang.flat.local_bytes:
        return ir.Constant(ir.IntType(1), 0)
    addresses = target.address.value
    offset = b.sub(addresses, local_bases(gang))
    last = Splat(offset.type, i64(gang.flat.local_bytes - target.bytes))
    bad = b.icmp_unsigned(">", offset, last)
    part = b.and_(offset, Splat(offset.type, i64(target.bytes - 1)))
    bad = b.or_(bad, b.icmp_unsigned("!=", part, Splat(offset.type, i64(0))))
    return b.not_(any_lane(b, b.and_(bad, mask)))


def _gather(gang: Gang, target: Target, kind: str, size: int, count: int, mask: Value) -> list[Value]:
    b = gang.builder
    addresses = gang.spread(target.address)
    lanes = gang.vector(lane_type(kind))
    return [
        masked.gather(b, b.add(addresses, Splat(addresses.type, i64(size * number))), lanes, mask, size)
        for number in range(count)
    ]


def _interleave(gang: Gang, count: int) -> Value:
    """Shuffle mask that repeats each lane `count` times."""
    numbers = [number // count for number in range(gang.lanes * count)]
    return ir.Constant(ir.VectorType(I32, gang.lanes * count), [ir.Constant(I32, each) for each in numbers])


def _wide_mask(gang: Gang, mask: Value, count: int) -> Value:
    return gang.builder.shuffle_vector(mask, undefined(mask.type), _interleave(gang, count))


def _consecutive(gang: Gang, target: Target, kind: str, size: int, count: int, mask: Value) -> list[Value]:
    b = gang.builder
    lane = lane_type(kind)
    if count == 1:
        return [masked.load(b, target.address.value, gang.vector(lane), mask, size)]
    wide = ir.VectorType(lane, gang.lanes * count)
    loaded = masked.load(b, target.address.value, wide, _wide_mask(gang, mask, count), size)
    values = []
    for number in range(count):
        picks = [ir.Constant(I32, each * count + number) for each in range(gang.lanes)]
        pattern = ir.Constant(ir.VectorType(I32, gang.lanes), picks)
        values.append(b.shuffle_vector(loaded, undefined(wide), pattern))
    return values


def store(gang: Gang, op: Op) -> None:
    """`st`."""
    kind, size, count = _shape(op)
    address = op.operands[0]
    if not isinstance(address, Address):
        raise refuse(op, "expected an address")
    given = _elements(op.operands[1], count, op)
    values = [gang.read(op, each, kind) for each in given]
    target = resolve(gang, op, address, size * count, store=True)
    if target.region is Region.PARAMS:
        raise refuse(op, "an entry's parameters cannot be written")
    if target.address.shared:
        _store_one(gang, op, target, values, size)
    else:
        _store_lanes(gang, op, target, values, size)
    counting.accessed(gang, op, target, gang.active(op))
    watching.accessed(gang, target, gang.active(op))


def _store_one(gang: Gang, op: Op, target: Target, values: list[Lanes], size: int) -> None:
    """All lanes write one place: the highest lane's value stays, as a scatter would leave it."""
    b = gang.builder
    mask = gang.active(op)
    chosen = [each.value if each.shared else _highest(gang, gang.spread(each), mask) for each in values]

    def write() -> None:
        for number, value in enumerate(chosen):
            place = pointer(b, b.add(target.address.value, i64(size * number)), value.type)
            b.store(value, place).align = size

    def checked() -> None:
        if not gang.mode.bounds:
            write()
            return
        with b.if_else(all_inside(gang, target), likely=True) as (then, otherwise):
            with then:
                write()
                checks.stored(gang, op, target, mask, values, size, True)
            with otherwise, b.if_then(any_lane(b, lane_check(gang, target, first_lane(gang, mask)))):
                write()
                checks.stored(gang, op, target, mask, values, size, False)

    if op.predicate is None:
        checked()
    else:
        with b.if_then(any_lane(b, mask)):
            checked()


def _highest(gang: Gang, vector: Value, mask: Value) -> Value:
    b = gang.builder
    bits = mask_bits(b, mask)
    bits = b.or_(bits, ir.Constant(bits.type, 1))  # an empty mask: lane 0, whose value is then not stored
    zeros_above = as_type(b, zero_bits(b, "ctlz", bits), I32)
    return b.extract_element(vector, b.sub(ir.Constant(I32, gang.lanes - 1), zeros_above))


def _store_lanes(gang: Gang, op: Op, target: Target, values: list[Lanes], size: int) -> None:
    b = gang.builder
    mask = gang.active(op)
    vectors = [gang.spread(each) for each in values]
    count = len(vectors)

    def spread_out(allowed: Value) -> None:
        addresses = gang.spread(target.address)
        for number, vector in enumerate(vectors):
            places = b.add(addresses, Splat(addresses.type, i64(size * number)))
            masked.scatter(b, vector, places, allowed, size)

    def fast() -> None:
        if target.address.stride != size * count:
            spread_out(mask)
        elif count == 1:
            masked.store(b, vectors[0], target.address.value, mask, size)
        else:
            masked.store(b, _woven(gang, vectors), target.address.value, _wide_mask(gang, mask, count), size)

    if not gang.mode.bounds:
        fast()
        return
    quick = _no_lane_strays(gang, target, mask) if target.region is Region.LOCAL else all_inside(gang, target)
    with b.if_else(quick, likely=True) as (then, otherwise):
        with then:
            fast()
            checks.stored(gang, op, target, mask, values, size, True)
        with otherwise:
            allowed = lane_check(gang, target, mask)
            spread_out(allowed)
            checks.stored(gang, op, target, allowed, values, size, False)


def _woven(gang: Gang, vectors: list[Value]) -> Value:
    """Lane 0's elements, then lane 1's, ...: a tree of two-vector shuffles."""
    joined = list(vectors)
    while len(joined) > 1:
        half = len(joined) // 2
        joined = [_pair(gang, joined[each], joined[each + half]) for each in range(half)]
    return joined[0]


def _pair(gang: Gang, first: Value, second: Value) -> Value:
    length = first.type.count
    numbers = [each // 2 + (length if each % 2 else 0) for each in range(2 * length)]
    pattern = ir.Constant(ir.VectorType(I32, 2 * length), [ir.Constant(I32, each) for each in numbers])
    return gang.builder.shuffle_vector(first, second, pattern)


def nothing(gang: Gang, op: Op) -> None:
    """Hints, and fences: blocks of one launch share one coherent memory."""


def fence(gang: Gang, _: Op) -> None:
    """membar, fence: order this thread's accesses against those of other workers."""
    gang.builder.fence("seq_cst")


HANDLERS = {"ld": load, "ldu": load, "st": store, "membar": fence, "fence": fence}
for _name in ("prefetch", "prefetchu", "discard", "applypriority", "pmevent", "nanosleep", "brkpt"):
    HANDLERS[_name] = nothing
