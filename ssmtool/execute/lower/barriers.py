"""bar.sync, bar.arrive, bar.red and their barrier.* spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from ssmtool.execute.layout import WorkerSlot
from ssmtool.execute.lower import checks
from ssmtool.execute.lower.frames import WAITING, FrameSlot
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.values import Lanes, any_lane, as_type, i64, mask_bits, pointer, set_word, word
from ssmtool.execute.numerics.lanes import I64, Value
from ssmtool.execute.program.flat import Op, refuse
from ssmtool.ptx.operands import Immediate, Operand

if TYPE_CHECKING:
    from ssmtool.execute.lower.control import Control

_WORDS = frozenset("sync arrive red popc and or pred u32 cta aligned".split())  # noqa: SIM905


def barrier(gang: Gang, op: Op, control: Control) -> None:
    """One barrier of the thread block."""
    unknown = [word for word in op.modifiers if word not in _WORDS]
    if unknown or op.predicate is not None:
        raise refuse(op, f".{unknown[0]} is not known here" if unknown else "a barrier under a guard")
    reduces = "red" in op.modifiers
    operands = list(op.operands)
    result = operands.pop(0) if reduces else None
    given = operands.pop() if reduces else None
    if not 1 <= len(operands) <= 2:
        raise refuse(op, "has too few or too many operands")
    checks.barrier(gang, op)
    if control.frame is None:
        _together(gang, op, result, given)
    else:
        _apart(gang, op, control, operands, result, given)
    if "arrive" not in op.modifiers:
        checks.barrier_passed(gang, control.frame is None)


def _predicate(gang: Gang, op: Op, given: Operand) -> tuple[Value, Value]:
    """(active lanes whose predicate is true, false)."""
    b = gang.builder
    vector = gang.spread(gang.read(op, given, "pred"))
    return b.and_(gang.mask, vector), b.and_(gang.mask, b.not_(vector))


def count_bits(gang: Gang, mask: Value) -> Value:
    """Set bits of a mask, i64."""
    b = gang.builder
    bits = mask_bits(b, mask)
    name = f"llvm.ctpop.i{bits.type.width}"
    function = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(bits.type, [bits.type]), name)
    return as_type(b, b.call(function, [bits]), I64)


def _write(gang: Gang, op: Op, result: Operand, true: Value, some_false: Value) -> None:
    """The result of bar.red from the number of true predicates and whether any is false."""
    b = gang.builder
    if "popc" in op.modifiers:
        gang.write(op, result, Lanes(as_type(b, true, ir.IntType(32))), "u32")
    elif "and" in op.modifiers:
        gang.write(op, result, Lanes(b.not_(some_false)), "pred")
    else:
        gang.write(op, result, Lanes(b.icmp_unsigned("!=", true, i64(0))), "pred")


def _together(gang: Gang, op: Op, result: Operand | None, given: Operand | None) -> None:
    """The gang is the whole block and all of it is here: the barrier is already behind it."""
    if result is not None and given is not None:
        true, false = _predicate(gang, op, given)
        _write(gang, op, result, count_bits(gang, true), any_lane(gang.builder, false))


def _apart(
    gang: Gang, op: Op, control: Control, operands: list[Operand], result: Operand | None, given: Operand | None
) -> None:
    b = gang.builder
    frame = gang.arguments.frame
    assert control.frame is not None
    number = _shared_number(gang, op, operands[0])
    threads = _shared_number(gang, op, operands[1]) if len(operands) > 1 else i64(0)
    if "arrive" in op.modifiers:
        base = gang.worker_word(WorkerSlot.FRAMES)
        place = pointer(b, b.add(base, b.mul(b.and_(number, i64(15)), i64(8))), I64)
        b.store(b.add(b.load(place), i64(32)), place)
        return
    set_word(b, frame, FrameSlot.BARRIER, b.and_(number, i64(15)))
    set_word(b, frame, FrameSlot.THREADS, threads)
    set_word(b, frame, FrameSlot.SITE, i64(gang.sites.of(op)))
    if given is not None:
        true, false = _predicate(gang, op, given)
        set_word(b, frame, FrameSlot.TRUE, count_bits(gang, true))
        set_word(b, frame, FrameSlot.FALSE, count_bits(gang, false))
    b.store(gang.mask, control.active)
    index = next(i for i, each in enumerate(gang.flat.instructions) if each is op)
    # Lanes that wait elsewhere need registers too, which those at the barrier may be about to overwrite.
    live = gang.shapes.liveness.after(index) | gang.kept
    slots = [*control.masks(), control.rounds]
    kept = sorted(live, key=lambda each: (each.name, each.scope))
    slots += [gang.slot(each) for each in kept] + [gang.flag(each) for each in kept if each in gang.nans.late]
    control.frame.wait(gang, slots, WAITING)
    if not gang.full:
        gang.mask = b.load(control.active)
    if result is not None:
        true = word(b, frame, FrameSlot.SUM_TRUE)
        false = word(b, frame, FrameSlot.SUM_FALSE)
        _write(gang, op, result, true, b.icmp_unsigned("!=", false, i64(0)))


def _shared_number(gang: Gang, op: Op, operand: Operand) -> Value:
    """A barrier's number or count as i64: it must be the same in all lanes."""
    if isinstance(operand, Immediate):
        return i64(operand.value)
    found = gang.read(op, operand, "u32")
    if not found.shared:
        raise refuse(op, "lanes name different barriers")
    return as_type(gang.builder, found.value, I64)
