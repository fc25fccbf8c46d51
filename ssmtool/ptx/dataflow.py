"""Liveness and reaching definitions over a function's control-flow graph.

Sets are Python integers used as bit sets: one bit a register, or one a definition, so that a function of thousands
of registers costs a few word operations a block. Special registers (`%tid.x`) take no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from ssmtool.ptx.cfg import ControlFlowGraph
from ssmtool.ptx.isa import defs, uses
from ssmtool.ptx.operands import Register

UNDEFINED = -1  # the "definition" that stands for a register's state when the function is entered


class RegisterFlow:
    """Per instruction, what is written and read, as bits; shared by the analyses below.

    `registers[b]` is the register of bit b. `kills[i]` is what instruction i writes for certain: nothing when it is
    guarded, nor for a register of which it writes a part (which it then reads as well).
    """

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        self.registers: list[Register] = []
        self._bits: dict[Register, int] = {}
        self.writes: list[int] = []
        self.reads: list[int] = []
        self.kills: list[int] = []
        for instruction in graph.function.instructions:
            written = self.mask(defs(instruction))
            read = self.mask(uses(instruction))
            self.writes.append(written)
            self.reads.append(read)
            self.kills.append(0 if instruction.predicate is not None else written)

    def mask(self, registers: Iterable[Register]) -> int:
        """The bits of these registers; new ones get the next bit."""
        total = 0
        for register in registers:
            if register.special:
                continue
            bit = self._bits.get(register)
            if bit is None:
                bit = self._bits[register] = len(self.registers)
                self.registers.append(register)
            total |= 1 << bit
        return total

    def bit(self, register: Register) -> int | None:
        """A register's bit, None when the function never mentions it."""
        return self._bits.get(register)

    def members(self, mask: int) -> frozenset[Register]:
        """The registers of a bit set."""
        return frozenset(self.registers[bit] for bit in bits(mask))


def bits(mask: int) -> Iterator[int]:
    """Numbers of the bits set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Liveness:
    """Which registers some later instruction may read before they are written again."""

    def __init__(self, graph: ControlFlowGraph, flow: RegisterFlow | None = None) -> None:
        self.flow = flow or RegisterFlow(graph)
        self.graph = graph
        blocks = graph.blocks
        self._in = [0] * len(blocks)
        self._out = [0] * len(blocks)
        needs, kills = [0] * len(blocks), [0] * len(blocks)
        for block in blocks:
            for index in range(block.end - 1, block.start - 1, -1):
                needs[block.index] = self._step(index, needs[block.index])
                kills[block.index] |= self.flow.kills[index]
        work = list(range(len(blocks)))
        while work:
            at = work.pop()
            out = 0
            for successor in blocks[at].successors:
                out |= self._in[successor]
            self._out[at] = out
            new = needs[at] | (out & ~kills[at])
            if new != self._in[at]:
                self._in[at] = new
                work.extend(blocks[at].predecessors)

    def _step(self, index: int, after: int) -> int:
        return (after & ~self.flow.kills[index]) | self.flow.reads[index]

    @cached_property
    def masks(self) -> list[int]:
        """Per instruction, the bits of the registers live just after it."""
        result = [0] * len(self.graph.block_of)
        for block in self.graph.blocks:
            live = self._out[block.index]
            for index in range(block.end - 1, block.start - 1, -1):
                result[index] = live
                live = self._step(index, live)
        return result

    def live_in(self, block: int) -> frozenset[Register]:
        """Registers live at a block's top; for block 0, those that may be read before anything wrote them."""
        return self.flow.members(self._in[block])

    def after(self, index: int) -> frozenset[Register]:
        """Registers live just after an instruction."""
        return self.flow.members(self.masks[index])

    def before(self, index: int) -> frozenset[Register]:
        """Registers live just before an instruction."""
        return self.flow.members(self._step(index, self.masks[index]))

    def pressure(self) -> int:
        """The largest number of registers live after any one instruction, predicates and 64-bit ones each as one."""
        return max((mask.bit_count() for mask in self.masks), default=0)


class ReachingDefinitions:
    """Which instructions may have written the value that a register holds at a place."""

    def __init__(self, graph: ControlFlowGraph, flow: RegisterFlow | None = None) -> None:
        self.flow = flow or RegisterFlow(graph)
        self.graph = graph
        # One definition for each register as the function is entered (number = the register's bit), then one for
        # each register that each instruction writes: an instruction that writes two has two, killed apart.
        self._writer = [UNDEFINED] * len(self.flow.registers)
        self._of_register = [1 << bit for bit in range(len(self.flow.registers))]
        self._made: list[int] = []
        for index, written in enumerate(self.flow.writes):
            made = 0
            for bit in bits(written):
                self._of_register[bit] |= 1 << len(self._writer)
                made |= 1 << len(self._writer)
                self._writer.append(index)
            self._made.append(made)
        self._in = self._solve()

    def _solve(self) -> list[int]:
        blocks = self.graph.blocks
        gen, kill = [0] * len(blocks), [0] * len(blocks)
        for block in blocks:
            for index in range(block.start, block.end):
                gen[block.index] = self._after(index, gen[block.index])
                kill[block.index] |= self._killed(index)
        reaching, out = [0] * len(blocks), [0] * len(blocks)
        entry = (1 << len(self.flow.registers)) - 1
        work = [block for block in range(len(blocks) - 1, -1, -1) if block in self.graph.reachable]
        while work:
            at = work.pop()
            into = entry if at == 0 else 0
            for predecessor in blocks[at].predecessors:
                into |= out[predecessor]
            reaching[at] = into
            new = gen[at] | (into & ~kill[at])
            if new != out[at]:
                out[at] = new
                work.extend(blocks[at].successors)
        return reaching

    def _killed(self, index: int) -> int:
        gone = 0
        for bit in bits(self.flow.kills[index]):
            gone |= self._of_register[bit]
        return gone

    def _after(self, index: int, before: int) -> int:
        return (before & ~self._killed(index)) | self._made[index]

    @cached_property
    def _before(self) -> list[int]:
        result = [0] * len(self._made)
        for block in self.graph.blocks:
            if block.index in self.graph.reachable:
                reaching = self._in[block.index]
                for index in range(block.start, block.end):
                    result[index] = reaching
                    reaching = self._after(index, reaching)
        return result

    def before(self, index: int, register: Register) -> frozenset[int]:
        """Instructions whose write of `register` may hold just before instruction `index`.

        UNDEFINED is among them when the register may not have been written at all; the set is empty for an
        instruction that nothing reaches, and for a register the function never mentions.
        """
        bit = self.flow.bit(register)
        if bit is None:
            return frozenset()
        return frozenset(self._writer[each] for each in bits(self._before[index] & self._of_register[bit]))
