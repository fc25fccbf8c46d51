"""Registers split into variables.

Compilers reuse a register for values that have nothing to do with each other. Two writes belong to one variable only
if some read may see both; every other write starts a variable of its own. Without this a counter that is the same in
all lanes shares its storage, and its treatment, with a value that differs in each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ssmtool.execute.program.flat import Flat, Op
from ssmtool.ptx import isa
from ssmtool.ptx.cfg import ControlFlowGraph
from ssmtool.ptx.dataflow import UNDEFINED, ReachingDefinitions
from ssmtool.ptx.operands import Address, Group, Negated, Not, Operand, Pair, Register, Vector

Key = tuple[int, Register]


def split(flat: Flat, graph: ControlFlowGraph) -> None:
    """Rename the registers of `flat` in place, one name for each variable; unreachable instructions keep theirs."""
    reaching = ReachingDefinitions(graph)
    webs = _Webs()
    reads: dict[Key, Key] = {}
    for block in graph.blocks:
        if block.index not in graph.reachable:
            continue
        for index in range(block.start, block.end):
            op = flat.instructions[index]
            for register in isa.uses(op):
                if register.special or register == isa.CARRY:
                    continue
                sources = [(writer, register) for writer in reaching.before(index, register)]
                if not sources:
                    sources = [(UNDEFINED, register)]
                for other in sources[1:]:
                    webs.join(sources[0], other)
                reads[index, register] = sources[0]
    names = _Names(flat, webs)
    for block in graph.blocks:
        if block.index not in graph.reachable:
            continue
        for index in range(block.start, block.end):
            op = flat.instructions[index]
            written = {register: names.of((index, register)) for register in isa.defs(op) if register != isa.CARRY}
            read = {
                register: names.of(reads[index, register]) for register in isa.uses(op) if (index, register) in reads
            }
            _rename(op, written, read)


class _Webs:
    """Union-find over writes."""

    def __init__(self) -> None:
        self.parent: dict[Key, Key] = {}

    def root(self, key: Key) -> Key:
        path = []
        while (above := self.parent.get(key, key)) != key:
            path.append(key)
            key = above
        for each in path:
            self.parent[each] = key
        return key

    def join(self, first: Key, second: Key) -> None:
        first, second = self.root(first), self.root(second)
        if first != second:
            self.parent[first] = second


class _Names:
    """A register for each web: the first keeps the name, others get a number behind it."""

    def __init__(self, flat: Flat, webs: _Webs) -> None:
        self.flat = flat
        self.webs = webs
        self.found: dict[Key, Register] = {}
        self.used: dict[Register, int] = {}

    def of(self, key: Key) -> Register:
        root = self.webs.root(key)
        found = self.found.get(root)
        if found is None:
            register = root[1]
            number = self.used.get(register, 0)
            self.used[register] = number + 1
            found = register if number == 0 else replace(register, name=f"{register.name}'{number}")
            self.found[root] = found
            if number:
                self.flat.types[found] = self.flat.types[register]
        return found


def _rename(op: Op, written: dict[Register, Register], read: dict[Register, Register]) -> None:
    count = isa.info(op.opcode.text)
    destinations = count.destinations if count else 0
    op.operands = tuple(
        _mapped(operand, lambda r: written.get(r, read.get(r, r)))
        if place < destinations
        else _mapped(operand, lambda r: read.get(r, r))
        for place, operand in enumerate(op.operands)
    )
    if op.predicate is not None:
        op.predicate = replace(op.predicate, register=read.get(op.predicate.register, op.predicate.register))


def _mapped(operand: Operand, name: Callable[[Register], Register]) -> Operand:
    if isinstance(operand, Register):
        if operand.selector:
            return replace(name(Register(operand.name, operand.scope)), selector=operand.selector)
        return name(operand)
    if isinstance(operand, Address):
        base = name(operand.base) if isinstance(operand.base, Register) else operand.base
        return Address(base, operand.offset, tuple(_mapped(each, name) for each in operand.extra))
    if isinstance(operand, (Vector, Group)):
        return type(operand)(tuple(_mapped(each, name) for each in operand.elements))
    if isinstance(operand, Pair):
        return Pair(_mapped(operand.first, name), _mapped(operand.second, name))
    if isinstance(operand, (Not, Negated)):
        return type(operand)(_mapped(operand.operand, name))
    return operand
