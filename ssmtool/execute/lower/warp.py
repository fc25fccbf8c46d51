"""What the lanes of a warp do together: shfl, vote, activemask, bar.warp. Kernels that use these run warp by warp.

shfl follows the pseudo-code of the PTX ISA ("Data Movement and Conversion Instructions: shfl"): bval = b[4:0],
cval = c[4:0], mask = c[12:8], maxLane = (lane & mask) | (cval & ~mask), minLane = lane & mask.
"""

from __future__ import annotations

from llvmlite import ir

from ssmtool.execute.lower import checks, masked
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.values import Lanes, any_lane, i64, mask_bits, splat
from ssmtool.execute.numerics.lanes import I32, I64, Splat, Value, undefined
from ssmtool.execute.program.flat import Op, refuse
from ssmtool.ptx.operands import Operand, Pair, Sink

WARP = 32


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """(lane read, predicate) for constant operands."""
    bval, cval, segment = b & 31, c & 31, (c >> 8) & 31
    highest, lowest = (lane & segment) | (cval & ~segment & 31), lane & segment
    if mode == "up":
        source, inside = lane - bval, lane - bval >= highest
    elif mode == "down":
        source, inside = lane + bval, lane + bval <= highest
    elif mode == "bfly":
        source, inside = lane ^ bval, (lane ^ bval) <= highest
    else:
        source = lowest | (bval & ~segment & 31)
        inside = source <= highest
    return (source, True) if inside else (lane, False)


def shuffle(gang: Gang, op: Op) -> None:
    """`shfl` and `shfl.sync`, all modes, with or without the predicate."""
    words = [word for word in op.modifiers if word != "sync"]
    if len(words) != 2 or words[0] not in ("up", "down", "bfly", "idx") or words[1] != "b32":
        raise refuse(op, "expected shfl.up, .down, .bfly or .idx with .b32")
    synced = "sync" in op.modifiers
    if len(op.operands) != (5 if synced else 4):
        raise refuse(op, "takes a value, a lane, a clamp" + (" and a member mask" if synced else ""))
    to, value, lane, clamp = op.operands[:4]
    result, predicate = (to.first, to.second) if isinstance(to, Pair) else (to, Sink())
    mode = words[0]
    given = gang.read(op, value, "b32")
    number, limit = gang.shapes.ranges.constant(lane), gang.shapes.ranges.constant(clamp)
    if number is not None and limit is not None:
        sources = [source_lane(mode, each, number, limit) for each in range(WARP)]
        _constant(gang, op, given, sources, result, predicate)
    else:
        _variable(gang, op, given, mode, lane, clamp, result, predicate)


def _constant(
    gang: Gang, op: Op, given: Lanes, sources: list[tuple[int, bool]], result: Operand, predicate: Operand
) -> None:
    b = gang.builder
    numbers = ir.Constant(ir.VectorType(I32, WARP), [ir.Constant(I32, source) for source, _ in sources])
    checks.shuffled(gang, op, numbers)
    broadcast = all(source == sources[0][0] for source, _ in sources) and gang.shapes.result(op, op.operands[1:]) == 0
    vector = gang.spread(given)
    if broadcast:
        shuffled = Lanes(b.extract_element(vector, ir.Constant(I32, sources[0][0])))
    else:
        shuffled = Lanes(b.shuffle_vector(vector, undefined(vector.type), numbers), None)
    flags = ir.Constant(gang.mask_type, [ir.Constant(ir.IntType(1), int(inside)) for _, inside in sources])
    gang.write(op, result, shuffled, "b32")
    gang.write(op, predicate, Lanes(ir.Constant(ir.IntType(1), 1)) if broadcast else Lanes(flags, None), "pred")


def _variable(
    gang: Gang, op: Op, given: Lanes, mode: str, lane: Operand, clamp: Operand, result: Operand, predicate: Operand
) -> None:
    b = gang.builder
    kind = gang.vector(I32)

    def same(number: int) -> Value:
        return Splat(kind, ir.Constant(I32, number))

    own = b.trunc(gang.lane_numbers, kind)
    bval = b.and_(gang.spread(gang.read(op, lane, "u32")), same(31))
    c = gang.spread(gang.read(op, clamp, "u32"))
    cval, segment = b.and_(c, same(31)), b.and_(b.lshr(c, same(8)), same(31))
    highest = b.or_(b.and_(own, segment), b.and_(cval, b.not_(segment)))
    if mode == "up":
        source = b.sub(own, bval)
        inside = b.icmp_signed(">=", source, highest)
    else:
        source = {
            "down": lambda: b.add(own, bval),
            "bfly": lambda: b.xor(own, bval),
            "idx": lambda: b.or_(b.and_(own, segment), b.and_(bval, b.not_(segment))),
        }[mode]()
        inside = b.icmp_signed("<=", source, highest)
    source = b.and_(b.select(inside, source, own), same(31))
    checks.shuffled(gang, op, source)
    shared = gang.shapes.result(op, op.operands[1:]) == 0
    vector = gang.spread(given)
    room = gang.alloca(vector.type)
    b.store(vector, room)
    base = b.ptrtoint(room, I64)
    if shared:
        chosen = b.extract_element(source, ir.Constant(I32, 0))
        gang.write(op, result, Lanes(b.extract_element(vector, chosen)), "b32")
        gang.write(op, predicate, Lanes(b.extract_element(inside, ir.Constant(I32, 0))), "pred")
        return
    places = b.add(splat(b, base, WARP), b.shl(b.zext(source, gang.vector(I64)), Splat(gang.vector(I64), i64(2))))
    found = masked.gather(b, places, vector.type, gang.all_lanes(), 4)
    gang.write(op, result, Lanes(found, None), "b32")
    gang.write(op, predicate, Lanes(inside, None), "pred")


def vote(gang: Gang, op: Op) -> None:
    """`vote` and `vote.sync`: all, any, uni, ballot, over the lanes that run it."""
    b = gang.builder
    words = [word for word in op.modifiers if word != "sync"]
    if len(words) != 2 or (words[0], words[1]) not in (
        ("all", "pred"),
        ("any", "pred"),
        ("uni", "pred"),
        ("ballot", "b32"),
    ):
        raise refuse(op, "expected vote.all, .any, .uni with .pred or vote.ballot with .b32")
    active = gang.active(op)
    given = gang.spread(gang.read(op, op.operands[1], "pred"))
    yes, no = b.and_(active, given), b.and_(active, b.not_(given))
    if words[0] == "ballot":
        gang.write(op, op.operands[0], Lanes(mask_bits(b, yes)), "b32")
        return
    some_yes, some_no = any_lane(b, yes), any_lane(b, no)
    answer = {"any": some_yes, "all": b.not_(some_no), "uni": b.not_(b.and_(some_yes, some_no))}[words[0]]
    gang.write(op, op.operands[0], Lanes(answer), "pred")


def active_mask(gang: Gang, op: Op) -> None:
    """`activemask.b32`."""
    gang.write(op, op.operands[0], Lanes(mask_bits(gang.builder, gang.active(op))), "b32")


def match(gang: Gang, op: Op) -> None:
    """`match.any.sync` and `match.all.sync`: the lanes that hold the same value (sm_70)."""
    b = gang.builder
    words = [word for word in op.modifiers if word != "sync"]
    if len(words) != 2 or words[0] not in ("any", "all") or words[1] not in ("b32", "b64"):
        raise refuse(op, "expected match.any or match.all with .b32 or .b64")
    to = op.operands[0]
    result, predicate = (to.first, to.second) if isinstance(to, Pair) else (to, Sink())
    active = gang.active(op)
    value = gang.spread(gang.read(op, op.operands[1], words[1]))
    found: Value = Splat(gang.vector(I32), ir.Constant(I32, 0))
    for lane in range(WARP):
        one = splat(b, b.extract_element(value, ir.Constant(I32, lane)), WARP)
        equal = mask_bits(b, b.and_(active, b.icmp_unsigned("==", value, one)))
        own = b.select(b.extract_element(active, ir.Constant(I32, lane)), equal, ir.Constant(I32, 0))
        found = b.insert_element(found, own, ir.Constant(I32, lane))
    if words[0] == "any":
        gang.write(op, result, Lanes(found, None), "b32")
        return
    everyone = splat(b, mask_bits(b, active), WARP)
    agree = b.icmp_unsigned("==", found, everyone)
    gang.write(op, result, Lanes(b.select(agree, everyone, Splat(found.type, ir.Constant(I32, 0))), None), "b32")
    gang.write(op, predicate, Lanes(agree, None), "pred")


HANDLERS = {"shfl": shuffle, "vote": vote, "activemask": active_mask, "match": match}
