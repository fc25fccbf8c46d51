"""atom and red: one lane after the other, lowest first, each a single atomic step for other workers.

`.add.f32` flushes subnormal inputs and results in global memory and keeps them in shared memory (PTX ISA,
"Parallel Synchronization and Communication Instructions: atom").
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ssmtool.execute.lower import checks, counting, watching
from ssmtool.execute.lower.access import Target, lane_check, resolve
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import Region, lane_loop
from ssmtool.execute.lower.values import Lanes, lane_type, mask_bits, pointer, zeros
from ssmtool.execute.numerics import ieee, special
from ssmtool.execute.numerics.lanes import F32, I32, Builder, Value, as_real, bits_of
from ssmtool.execute.program.flat import Op, refuse
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Address

_IGNORED = frozenset("global shared shared::cta relaxed acquire release acq_rel cta gpu sys".split())  # noqa: SIM905
_OPERATIONS = {
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
    "cas": ("b32", "b64"),
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
}


def atomic(gang: Gang, op: Op) -> None:
    """`atom` (returns the old value) and `red`."""
    words = [word for word in op.modifiers if word not in _IGNORED]
    if len(words) != 2 or words[1] not in _OPERATIONS.get(words[0], ()):
        raise refuse(op, "this atomic operation or type is not one of sm_37 with PTX 7.4 (add.f64 aside)")
    name, kind = words
    returns = op.base == "atom"
    address = op.operands[1 if returns else 0]
    if not isinstance(address, Address):
        raise refuse(op, "expected an address")
    given = op.operands[2 if returns else 1 :]
    if len(given) != (2 if name == "cas" else 1) or (name in ("cas", "exch") and not returns):
        raise refuse(op, "has too few or too many operands")
    target = resolve(gang, op, address, TYPE_BITS[kind] // 8, store=True)
    if target.region is Region.LOCAL:
        raise refuse(op, "local memory has no atomics")
    values = [gang.spread(gang.read(op, each, kind)) for each in given]
    old = _each_lane(gang, op, target, name, kind, values)
    counting.accessed(gang, op, target, gang.active(op))
    watching.accessed(gang, target, gang.active(op))
    if returns:
        gang.write(op, op.operands[0], Lanes(old, None), kind)


def _each_lane(gang: Gang, op: Op, target: Target, name: str, kind: str, values: list[Value]) -> Value:
    b = gang.builder
    lane = lane_type(kind)
    mask = gang.active(op)
    allowed = lane_check(gang, target, mask) if gang.mode.bounds else mask
    addresses = gang.spread(target.address)
    room = gang.alloca(gang.vector(lane))
    b.store(zeros(gang.vector(lane)), room)
    flush = kind == "f32" and target.region is not Region.SHARED
    with lane_loop(b, gang.lanes, mask_bits(b, allowed)) as number:
        index = b.trunc(number, I32)
        place = pointer(b, b.extract_element(addresses, index), lane)
        operands = [b.extract_element(each, index) for each in values]
        old = _step(b, name, kind, place, operands, flush)
        b.store(b.insert_element(b.load(room), old, index), room)
    checks.changed_atomically(gang, op, target, allowed)
    return b.load(room)


_PLAIN = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}


def _step(b: Builder, name: str, kind: str, place: Value, operands: list[Value], flush: bool) -> Value:
    if kind in ("f32", "f64"):
        return _swap_until(b, place, lambda old: _float_add(b, old, operands[0], flush))
    if name == "cas":
        pair = b.cmpxchg(place, operands[0], operands[1], "monotonic", "monotonic")
        return b.extract_value(pair, 0)
    operation = _PLAIN.get(name) or (name if kind[0] == "s" else f"u{name}")
    return b.atomic_rmw(operation, place, operands[0], "monotonic")


def _float_add(b: Builder, old: Value, given: Value, flush: bool) -> Value:
    if flush:
        return ieee.add(b, special.flush(b, old), special.flush(b, given), "rn", True)
    return ieee.add(b, old, given)


def _swap_until(b: Builder, place: Value, change: Callable[[Value], Value]) -> Value:
    """Compare and swap until nobody came between; the value before."""
    real = place.type.pointee
    whole = ir.IntType(32 if real == F32 else 64)
    place = b.bitcast(place, whole.as_pointer())
    first = b.load_atomic(place, "monotonic", whole.width // 8)
    before, loop, done = b.block, b.append_basic_block("swap"), b.append_basic_block("swapped")
    b.branch(loop)
    b.position_at_end(loop)
    seen = b.phi(whole)
    seen.add_incoming(first, before)
    wanted = bits_of(b, change(as_real(b, seen, real)))
    pair = b.cmpxchg(place, seen, wanted, "monotonic", "monotonic")
    seen.add_incoming(b.extract_value(pair, 0), b.block)
    b.cbranch(b.extract_value(pair, 1), done, loop)
    b.position_at_end(done)
    return as_real(b, seen, real)


HANDLERS = {"atom": atomic, "red": atomic}
