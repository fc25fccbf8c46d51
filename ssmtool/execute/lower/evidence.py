"""How far the data that a store writes can be trusted.

Every value carries the set of doubts it was computed from: units whose model an instruction used, and whether ptxas
may have fused a product into a sum on the way. Doubts go from operands to results, also from a predicate to what it
selects or guards, from an address to what is loaded through it, and from a branch's condition to everything written
where that branch decides whether it runs. Integers and flags that no float reaches are exact, so the usual addresses
and loop counters are too.

Memory carries doubts as well: shared memory and local memory each as one, global memory by the parameter or variable
that the address was computed from. An address of unknown origin stands for all of global memory. What a launch finds
in its buffers is exact; `ld.global.nc` sees nothing else, since a kernel may not write what it reads that way. Two
parameters are taken for different buffers: a caller who gives one array twice joins the labels himself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from ssmtool.execute.layout import Site
from ssmtool.execute.lower.gang import Sites
from ssmtool.execute.numerics import instruction
from ssmtool.execute.numerics.evidence import Level
from ssmtool.execute.numerics.form import UnsupportedError
from ssmtool.execute.program.flat import Op, Place
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx import isa
from ssmtool.ptx.contraction import is_open
from ssmtool.ptx.operands import Address, Register

Doubts = frozenset[str]
_NONE: Doubts = frozenset()
_FUSED = ""
"""The doubt that no unit has: a product fused or not."""
_ANYWHERE = "?"
_SHARED, _LOCAL = "shared", "local"
_Key = TypeVar("_Key")


def labelled(shapes: Shapes, sites: Sites) -> tuple[Site, ...]:
    """The sites, stores with the label of what they write."""
    flow = _Flow(shapes)
    flow.solve()
    rows = list(sites.rows)
    for op in flow.ops:
        if op.base not in ("st", "atom", "red"):
            continue
        number = sites.known.get((id(op.origin.function), op.origin.index, True))
        if number is None:
            continue
        units = flow.stored(op).union(rows[number].units, {_FUSED} if rows[number].level else _NONE)
        level = Level.UNIT_MODEL if units - {_FUSED} else Level.CONTRACTION if units else Level.EXACT
        named = tuple(sorted(units - {_FUSED}))
        rows[number] = msgspec.structs.replace(rows[number], level=int(level), units=named)
    return tuple(rows)


class _Flow:
    """The least doubts that agree with every instruction; order within the kernel is not looked at."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.places = [
            (op, block)
            for block in shapes.order
            for op in shapes.flat.instructions[shapes.graph.blocks[block].start : shapes.graph.blocks[block].end]
        ]
        self.ops = [op for op, _ in self.places]
        self.block_of = {id(op): block for op, block in self.places}
        self.registers: dict[Register, Doubts] = {}
        self.memory: dict[str, Doubts] = {}
        self.blocks: dict[int, Doubts] = {}
        self.roots: dict[Register, frozenset[str]] = {}
        self.own = {id(op): own for op in self.ops if (own := _own(op))}
        self.governs = _governed(shapes)
        self._mark_fused()

    def _mark_fused(self) -> None:
        """Sums that may take a product in: one of their operands is written by an open product of their type."""
        products = {
            (register, op.opcode.types[-1])
            for op in self.ops
            if op.base == "mul" and is_open(op.opcode.text)
            for register in isa.defs(op)
        }
        for op in self.ops:
            if op.base in ("add", "sub") and is_open(op.opcode.text):
                kind = op.opcode.types[-1]
                if any((register, kind) in products for register in isa.uses(op)):
                    self.own[id(op)] = self.own.get(id(op), _NONE) | {_FUSED}

    def solve(self) -> None:
        """Origins of addresses first, then doubts."""
        while sum(self._find_roots(op) for op in self.ops):
            pass
        while sum(self._step(op, block) for op, block in self.places):
            pass

    # -- origins

    def _find_roots(self, op: Op) -> bool:
        found = self._origin(op)
        changed = False
        for register in isa.defs(op) if found else ():
            known = self.roots.get(register, frozenset())
            if not found <= known:
                self.roots[register] = known | found
                changed = True
        return changed

    def _origin(self, op: Op) -> frozenset[str]:
        wide = any(kind.endswith("64") for kind in op.opcode.types)
        if op.base in ("ld", "ldu"):
            if not wide:
                return frozenset()
            address = op.operands[1]
            if isinstance(address, Address) and isinstance(address.base, Place) and address.base.space == "param":
                return frozenset((f"param+{address.base.offset + address.offset}",))
            return frozenset((_ANYWHERE,))
        if op.base in ("setp", "set", "atom"):
            return frozenset((_ANYWHERE,)) if op.base == "atom" and wide else frozenset()
        found = frozenset[str]()
        for operand in op.operands:
            if isinstance(operand, Place):
                found |= {_place(operand)}
        if op.base == "cvta" and "to" not in op.modifiers:
            found |= {word for word in (_SHARED, _LOCAL) if word in op.modifiers}
        return found.union(*(self.roots.get(register, frozenset()) for register in isa.uses(op)))

    def cells(self, op: Op) -> frozenset[str]:
        """The parts of memory that an access may meet."""
        space = (op.opcode.space or "").partition("::")[0]
        if space in (_SHARED, _LOCAL):
            return frozenset((space,))
        if space in ("param", "const"):
            return frozenset()
        address = next((each for each in op.operands if isinstance(each, Address)), None)
        if address is None or address.base is None:
            return frozenset((_ANYWHERE, _SHARED, _LOCAL))
        if isinstance(address.base, Place):
            return frozenset((_place(address.base),))
        found = self.roots.get(address.base, frozenset()) if isinstance(address.base, Register) else frozenset[str]()
        if space == "global":
            found -= {_SHARED, _LOCAL}
            return found or frozenset((_ANYWHERE,))
        return found | {_SHARED, _LOCAL} if _ANYWHERE in found or not found else found

    # -- doubts

    def _of(self, registers: Iterable[Register]) -> Doubts:
        return _NONE.union(*(self.registers.get(register, _NONE) for register in registers))

    def stored(self, op: Op) -> Doubts:
        """The doubts of what a store or an atomic operation leaves in memory."""
        here = self.blocks.get(self.block_of[id(op)], _NONE)
        found = self._of(isa.uses(op)) | self.own.get(id(op), _NONE) | here
        return found | self._read(op) if op.base in ("atom", "red") else found

    def _read(self, op: Op) -> Doubts:
        """What memory adds to a load."""
        if "nc" in op.modifiers:
            return _NONE
        cells = self.cells(op)
        found = _NONE.union(*(self.memory.get(cell, _NONE) for cell in cells))
        if any(cell not in (_SHARED, _LOCAL) for cell in cells):
            found |= self.memory.get(_ANYWHERE, _NONE)
        if _ANYWHERE in cells:
            elsewhere = (doubts for cell, doubts in self.memory.items() if cell not in (_SHARED, _LOCAL))
            found = found.union(*elsewhere)
        return found

    def _step(self, op: Op, block: int) -> bool:
        here = self.blocks.get(block, _NONE)
        found = self._of(isa.uses(op)) | self.own.get(id(op), _NONE) | here
        if op.base in ("ld", "ldu", "atom"):
            found |= self._read(op)
        changed = sum(_raise(self.registers, register, found) for register in isa.defs(op)) > 0
        if op.base in ("st", "atom", "red"):
            doubts = self.stored(op)
            changed |= sum(_raise(self.memory, cell, doubts) for cell in self.cells(op)) > 0
        if op.base in ("bra", "brx", "ret", "exit") and found:
            changed |= sum(_raise(self.blocks, each, found) for each in self.governs.get(block, ())) > 0
        return changed


def _raise(table: dict[_Key, Doubts], key: _Key, doubts: Doubts) -> bool:
    known = table.get(key, _NONE)
    if doubts <= known:
        return False
    table[key] = known | doubts
    return True


def _place(place: Place) -> str:
    if place.space in (_SHARED, _LOCAL):
        return place.space
    return f"param+{place.offset}" if place.space == "param" else place.name


def _own(op: Op) -> Doubts:
    """The doubts that an instruction itself brings in."""
    if not instruction.known(op.opcode.text) or isa.category(op.opcode.text) == "video":
        return _NONE
    try:
        label = instruction.parse(op.opcode.text).evidence
    except UnsupportedError:
        return _NONE
    return frozenset((label.unit,)) if label.level is Level.UNIT_MODEL else _NONE


def _governed(shapes: Shapes) -> dict[int, set[int]]:
    """Block -> blocks of which its last branch decides whether, or how often, they run."""
    graph = shapes.graph
    after = graph.immediate_post_dominators
    governs: dict[int, set[int]] = {}
    for number in shapes.order:
        block = graph.blocks[number]
        if len(block.successors) + block.exits < 2:
            continue
        until = after.get(number)
        for successor in block.successors:
            at: int | None = successor
            while at is not None and at != until:
                governs.setdefault(number, set()).add(at)
                at = after.get(at)
    return governs
