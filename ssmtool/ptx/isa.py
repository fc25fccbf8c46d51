"""What each instruction is, and which registers it writes and reads.

The table itself is `isa_table`. An opcode it does not hold has no info (None): the caller must say so, never guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from ssmtool.ptx.code import Statement
from ssmtool.ptx.isa_table import ROWS
from ssmtool.ptx.opcode import split_opcode
from ssmtool.ptx.operands import Address, Group, Operand, Pair, Register, Vector, registers_of

# The condition-code register, which no operand names: `.cc` forms write it; addc, subc and madc read it.
CARRY = Register("%cc")

_FLOAT = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32"))
_CARRY_IN = frozenset(("addc", "subc", "madc"))


@dataclass(frozen=True, slots=True)
class InstructionInfo:
    """One instruction of the table.

    `category` is one of CATEGORIES. The first `destinations` operands are written (a pair or vector counts as
    one). `isa` and `sm` are the first PTX ISA version and architecture that have the instruction in any form.
    """

    name: str
    category: str
    destinations: int
    isa: tuple[int, int]
    sm: int


@cache
def _table() -> dict[str, InstructionInfo]:
    table = {}
    for row in ROWS.split("\n"):
        if row:
            name, category, destinations, isa, sm = row.split()
            major, minor = isa.split(".")
            table[name] = InstructionInfo(name, category, int(destinations), (int(major), int(minor)), int(sm))
    return table


def known_instructions() -> tuple[InstructionInfo, ...]:
    """Every row of the table."""
    return tuple(_table().values())


CATEGORIES = (
    "float",
    "integer",
    "bit",
    "logic",
    "transcendental",
    "compare",
    "select",
    "move",
    "convert",
    "load",
    "store",
    "cache",
    "atomic",
    "multimem",
    "async",
    "mbarrier",
    "barrier",
    "fence",
    "vote",
    "shuffle",
    "texture",
    "surface",
    "branch",
    "control",
    "call",
    "stack",
    "matrix",
    "video",
)


@lru_cache(maxsize=65536)
def info(opcode: str) -> InstructionInfo | None:
    """The table's row for an opcode as written (`ld.global.f32`), or None for one it does not hold."""
    table = _table()
    parts = [part.partition("::")[0] for part in opcode.split(".")]
    for length in range(min(len(parts), 4), 0, -1):
        found = table.get(".".join(parts[:length]))
        if found is not None:
            if found.category == "arith":
                floating = any(kind in _FLOAT for kind in split_opcode(opcode).types)
                return replace(found, category="float" if floating else "integer")
            return found
    return None


def category(opcode: str) -> str:
    """The category of an opcode, `unknown` for one that the table does not hold."""
    found = info(opcode)
    return found.category if found else "unknown"


def _split(instruction: Statement) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """(destination operands, source operands)."""
    operands = instruction.operands
    if instruction.base == "call":
        results = 1 if len(operands) > 1 and isinstance(operands[0], Group) else 0
        return operands[:results], operands[results:]
    found = info(instruction.opcode.text)
    count = found.destinations if found else 0
    return operands[:count], operands[count:]


def _plain(operand: Operand) -> Iterable[Register]:
    """Registers a destination writes: not those that only form an address."""
    if isinstance(operand, Address):
        return ()
    if isinstance(operand, (Vector, Group)):
        return [register for element in operand.elements for register in _plain(element)]
    if isinstance(operand, Pair):
        return [*_plain(operand.first), *_plain(operand.second)]
    return registers_of(operand)


def _whole(registers: Iterable[Register]) -> frozenset[Register]:
    return frozenset(
        Register(register.name, register.scope) if register.selector else register for register in registers
    )


def defs(instruction: Statement) -> frozenset[Register]:
    """Registers the instruction writes, CARRY included; a guard makes the write conditional.

    An instruction the table does not hold writes nothing as far as this function knows.
    """
    written = [register for operand in _split(instruction)[0] for register in _plain(operand)]
    if "cc" in instruction.modifiers:
        written.append(CARRY)
    return _whole(written)


def uses(instruction: Statement) -> frozenset[Register]:
    """Registers the instruction reads: sources, address bases, the guard, CARRY; special registers included."""
    destinations, sources = _split(instruction)
    read = [register for operand in sources for register in registers_of(operand)]
    accumulates = instruction.opcode.text.startswith("wgmma.mma_async")
    for operand in destinations:
        written = set(_plain(operand))
        # An accumulator is read too, and so is the rest of a register of which a part is written.
        read.extend(
            register
            for register in registers_of(operand)
            if accumulates or register.selector or register not in written
        )
    if instruction.base in _CARRY_IN:
        read.append(CARRY)
    guard = instruction.predicate
    if guard is not None:
        read.append(guard.register)
    return _whole(read)
