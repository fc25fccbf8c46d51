"""mov, cvta, isspacep: registers, packing and unpacking, addresses between spaces."""

from __future__ import annotations

from llvmlite import ir

from ssmtool.execute.layout import LaunchSlot, WorkerSlot
from ssmtool.execute.lower.access import local_bases
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.values import Lanes, i64, lane_type, splat
from ssmtool.execute.numerics.lanes import Splat, Value, resize
from ssmtool.execute.program.flat import Op, refuse
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Operand, Register, Vector

_SPACES = ("global", "shared", "local", "const", "param")


def move(gang: Gang, op: Op) -> None:
    """`mov`: between registers, from literals and addresses, and to or from the parts of a wider register."""
    if len(op.opcode.types) != 1 or len(op.modifiers) != 1 or len(op.operands) != 2:
        raise refuse(op, "this form of mov is not known")
    kind = op.opcode.types[0]
    to, source = op.operands
    if isinstance(source, Vector):
        gang.write(op, to, _packed(gang, op, source, kind), kind)
    elif isinstance(to, Vector):
        _unpack(gang, op, to, source, kind)
    else:
        gang.write(op, to, gang.read(op, source, kind), kind)


def _part_kind(op: Op, kind: str, parts: int) -> str:
    bits = TYPE_BITS[kind] // parts
    if kind[0] != "b" or bits not in (8, 16, 32):
        raise refuse(op, f".{kind} does not fall into {parts} parts")
    return f"b{bits}"


def _packed(gang: Gang, op: Op, source: Vector, kind: str) -> Lanes:
    b = gang.builder
    part = _part_kind(op, kind, len(source.elements))
    lanes = [gang.read(op, each, part) for each in source.elements]
    shared = all(each.shared for each in lanes)
    total: Value = None
    for place, each in enumerate(lanes):
        value = resize(b, each.value if shared else gang.spread(each), TYPE_BITS[kind])
        if place:
            amount = ir.Constant(lane_type(kind), place * TYPE_BITS[part])
            value = b.shl(value, amount if shared else Splat(value.type, amount))
        total = value if total is None else b.or_(total, value)
    return Lanes(total, 0 if shared else None)


def _unpack(gang: Gang, op: Op, to: Vector, source: Operand, kind: str) -> None:
    b = gang.builder
    part = _part_kind(op, kind, len(to.elements))
    whole = gang.read(op, source, kind)
    if not whole.shared:
        whole = Lanes(gang.spread(whole), None)
    for place, each in enumerate(to.elements):
        amount = ir.Constant(lane_type(kind), place * TYPE_BITS[part])
        value = b.lshr(whole.value, amount if whole.shared else Splat(whole.value.type, amount))
        gang.write(op, each, Lanes(resize(b, value, TYPE_BITS[part]), whole.stride), part)


def _shared_base(gang: Gang, bits: int) -> Value:
    base = gang.worker_word(WorkerSlot.SHARED)
    return base if bits == 64 else gang.builder.trunc(base, ir.IntType(bits))


def convert_address(gang: Gang, op: Op) -> None:
    """`cvta`: global and const addresses are generic ones already; shared and local ones count from their region."""
    kind = op.opcode.types[-1] if op.opcode.types else ""
    space = next((word for word in op.modifiers if word.partition("::")[0] in _SPACES), "")
    if kind != "u64" or space.partition("::")[0] not in ("global", "const", "shared", "local"):
        raise refuse(op, "only 64-bit addresses of global, const, shared and local memory are converted")
    back = "to" in op.modifiers
    b = gang.builder
    found = gang.read(op, op.operands[1], "u64")
    if space.startswith("shared"):
        base = _shared_base(gang, 64)
        value = found.value
        if found.stride is None:
            base = splat(b, base, gang.lanes)
        found = Lanes(b.sub(value, base) if back else b.add(value, base), found.stride)
    elif space == "local":
        value, bases = gang.spread(found), local_bases(gang)
        found = Lanes(b.sub(value, bases) if back else b.add(value, bases), None)
    gang.write(op, op.operands[0], found, "u64")


def is_space(gang: Gang, op: Op) -> None:
    """`isspacep`: whether a generic address lies in a space."""
    b = gang.builder
    source = op.operands[1]
    if not isinstance(source, Register) or gang.type_of(source)[1:] != "64":
        raise refuse(op, "takes a 64-bit address")
    address = gang.spread(gang.read(op, source, "u64"))

    def within(base: Value, size: Value) -> Value:
        return b.icmp_unsigned("<", b.sub(address, splat(b, base, gang.lanes)), splat(b, size, gang.lanes))

    shared = within(gang.worker_word(WorkerSlot.SHARED), gang.launch_word(LaunchSlot.SHARED_BYTES))
    total = i64(gang.flat.local_bytes * gang.geometry.gangs * gang.lanes)
    local = within(gang.worker_word(WorkerSlot.LOCAL), total)
    space = op.modifiers[0].partition("::")[0] if op.modifiers else ""
    answers = {"shared": shared, "local": local, "global": b.not_(b.or_(shared, local))}
    if space not in answers:
        raise refuse(op, "asks for a space that is not told apart here")
    gang.write(op, op.operands[0], Lanes(answers[space], None), "pred")


HANDLERS = {"mov": move, "cvta": convert_address, "isspacep": is_space}
