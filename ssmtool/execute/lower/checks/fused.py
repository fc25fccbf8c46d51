"""Loads and stores that one check covers: `p[i] = p[i] + x`.

When a thread reads a place and then writes it with no barrier between, whatever races with the read races with the
write too. So the read needs no marks; only that the place was written before is still asked, with the write.
"""

from __future__ import annotations

from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.program.flat import Op
from ssmtool.ptx import isa
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Address, Operand, Register


def partners(gang: Gang) -> tuple[dict[int, Op], dict[int, Op]]:
    """(load -> its store, store -> its load), by `id` of the instruction."""
    stores: dict[int, Op] = {}
    loads: dict[int, Op] = {}
    for block in gang.shapes.graph.blocks:
        ops = gang.flat.instructions[block.start : block.end]
        open_loads: list[Op] = []
        for op in ops:
            if op.base in ("bar", "barrier", "atom", "red", "bra", "brx"):
                open_loads = []
            if op.base == "st" and _shared(op):
                for load in open_loads:
                    if _place(load, load.operands[1]) == _place(op, op.operands[0]):
                        stores[id(load)] = op
                        loads[id(op)] = load
                        open_loads.remove(load)
                        break
            written = isa.defs(op)
            open_loads = [load for load in open_loads if not written & _needs(load)]
            if op.base == "ld" and _shared(op) and not written & _needs(op):
                open_loads.append(op)
    return stores, loads


def _shared(op: Op) -> bool:
    return (op.opcode.space or "").partition("::")[0] == "shared"


def _needs(load: Op) -> set[Register]:
    """Registers that say where, and in which lanes, a load reads."""
    address = load.operands[1]
    base = {address.base} if isinstance(address, Address) and isinstance(address.base, Register) else set()
    return base | ({load.predicate.register} if load.predicate is not None else set())


def _place(op: Op, address: Operand) -> tuple[object, ...]:
    size = TYPE_BITS[op.opcode.types[-1]] * op.opcode.vector if op.opcode.types else 0
    return (address, size, op.predicate)
