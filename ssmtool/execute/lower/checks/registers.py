"""Registers that are read before anything has written them.

Only registers that the entry's code may read first are watched, each with a mask of the lanes that have written it. A
plain move passes the question on to the register it writes: compilers move values that nobody asks for.
"""

from __future__ import annotations

import re

from ssmtool.execute.layout import Fault
from ssmtool.execute.lower.checks.lanes import tell_lanes
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.numerics.lanes import Value
from ssmtool.execute.program.flat import Op
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx import isa
from ssmtool.ptx.operands import Register

# What webs and inlining put behind a name.
_ADDED = re.compile(r"['#@+].*")


def watched(shapes: Shapes) -> list[Register]:
    """Registers that may hold what nothing has written, in the order of their names."""
    found = {each for each in shapes.liveness.live_in(0) if each != isa.CARRY and not each.special}
    grown = bool(found)
    while grown:
        before = len(found)
        for op in shapes.flat.instructions:
            if _moves(op) and isa.uses(op) & found:
                found |= isa.defs(op)
        grown = len(found) > before
    return sorted(found, key=lambda each: (each.name, each.scope))


def suspects(shapes: Shapes) -> tuple[str, ...]:
    """Their names in the text, for `KernelFacts.registers`."""
    return tuple(_ADDED.sub("", each.name) for each in watched(shapes))


def _moves(op: Op) -> bool:
    return op.base == "mov" and len(op.operands) == 2 and all(isinstance(each, Register) for each in op.operands)


def begin_registers(gang: Gang) -> None:
    """At a gang's start: no lane has written any."""
    for register in watched(gang.shapes):
        slot = gang.alloca(gang.mask_type, "written")
        gang.builder.store(gang.no_lanes(), slot)
        gang.written[register] = slot


def registers_read(gang: Gang, op: Op) -> None:
    """Before an instruction: the lanes that run it must have written what it reads; a guard is read by all of them."""
    if not gang.written:
        return
    b = gang.builder
    guard = op.predicate.register if op.predicate is not None else None
    for place, register in enumerate(gang.written):
        if register not in isa.uses(op) or (_moves(op) and register != guard):
            continue
        mask = gang.mask if register == guard else gang.active(op)
        unwritten = b.and_(mask, b.not_(b.load(gang.written[register])))
        tell_lanes(gang, Fault.UNWRITTEN_REGISTER, op, unwritten, place)


def registers_written(gang: Gang, op: Op) -> None:
    """After an instruction."""
    if not gang.written:
        return
    b = gang.builder
    for register in isa.defs(op):
        slot = gang.written.get(register)
        if slot is None:
            continue
        active = gang.active(op)
        before = b.load(slot)
        source = op.operands[1] if _moves(op) else None
        given: Value = b.load(gang.written[source]) if source in gang.written else None
        if given is None:
            b.store(b.or_(before, active), slot)
        else:
            b.store(b.or_(b.and_(before, b.not_(active)), b.and_(given, active)), slot)
