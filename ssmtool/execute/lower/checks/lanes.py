"""Lanes that read from lanes that are not there, and integers divided by zero."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ssmtool.execute.layout import Fault
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import lane_loop
from ssmtool.execute.lower.values import Lanes, any_lane, i64, mask_bits, splat
from ssmtool.execute.numerics.lanes import I32, I64, Splat, Value
from ssmtool.execute.program.flat import Op

_INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")


def shuffled(gang: Gang, op: Op, sources: Value) -> None:
    """Before a shuffle: an active lane's source (a vector of lane numbers, i32) must be active too."""
    if not gang.mode.checks or (gang.full and op.predicate is None):
        return
    b = gang.builder
    active = gang.active(op)
    here = b.lshr(splat(b, mask_bits(b, active), gang.lanes), sources)
    one = Splat(here.type, ir.Constant(I32, 1))
    gone = b.icmp_unsigned("==", b.and_(here, one), Splat(here.type, ir.Constant(I32, 0)))
    bad = b.and_(active, gone)
    with gang.rarely(any_lane(b, bad)):
        room = gang.alloca(sources.type)
        b.store(sources, room)
        first = b.bitcast(room, I32.as_pointer())
        with lane_loop(b, gang.lanes, mask_bits(b, bad)) as lane:
            source = b.zext(b.load(b.gep(first, [lane])), I64)
            thread = b.add(gang.thread_zero, lane)
            gang.report(Fault.SHUFFLE_INACTIVE, gang.sites.of(op), thread, i64(0), source)


def divided(gang: Gang, op: Op, lanes: Sequence[Lanes]) -> None:
    """Before arithmetic: an integer `div` or `rem` by zero."""
    if not gang.mode.checks or op.base not in ("div", "rem") or op.opcode.types[-1:][0] not in _INTEGERS:
        return
    if gang.shapes.ranges.constant(op.operands[2]):
        return
    b = gang.builder
    active = gang.active(op)
    divisor = lanes[1].value if lanes[1].shared else gang.spread(lanes[1])
    if lanes[1].shared:
        zero = b.icmp_unsigned("==", divisor, ir.Constant(divisor.type, 0))
        bad = b.and_(active, splat(b, zero, gang.lanes))
    else:
        kind = divisor.type
        bad = b.and_(active, b.icmp_unsigned("==", divisor, Splat(kind, ir.Constant(kind.element, 0))))
    tell_lanes(gang, Fault.DIVISION_BY_ZERO, op, bad)


def tell_lanes(gang: Gang, fault: Fault, op: Op, bad: Value, address: int = 0) -> None:
    """Report every lane of a mask that hardly ever has any."""
    b = gang.builder
    with gang.rarely(any_lane(b, bad)), lane_loop(b, gang.lanes, mask_bits(b, bad)) as lane:
        gang.report(fault, gang.sites.of(op), b.add(gang.thread_zero, lane), i64(address), i64(0))
