"""Which variables are the same in all lanes, and which grow by a constant from lane to lane.

A variable's shape is its stride: 0 for a value that all lanes share, s for base + s * lane (both kept as one scalar),
None for anything else. Shapes are exact modulo the register's width, so sums, products by constants and truncation
keep them; an extension keeps them only where no lane can wrap while another does not, which is proved from known
bounds (`%tid.x` < `%ntid.x`) or from the alignment of the base (`%ctaid.x * 256 + %tid.x`), else the value is spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ssmtool.execute.program.flat import Flat, Op
from ssmtool.execute.program.geometry import Geometry, Stride
from ssmtool.execute.program.ranges import Ranges
from ssmtool.execute.program.schedule import Schedule, schedule
from ssmtool.execute.program.strides import RULES
from ssmtool.ptx import isa
from ssmtool.ptx.cfg import ControlFlowGraph
from ssmtool.ptx.dataflow import Liveness, RegisterFlow
from ssmtool.ptx.operands import Address, Negated, Not, Operand, Pair, Register, Vector

_STEPPED = frozenset(("b32", "u32", "s32", "b64", "u64", "s64"))
_SHARED_BY_WARP = frozenset(("vote", "activemask"))
_SHARED_BY_BLOCK = frozenset(("bar", "barrier"))
_ALWAYS_SPREAD = frozenset(("atom", "match", "shfl", "isspacep"))


@dataclass(slots=True)
class Shapes:
    """The result: strides by register, the schedule, and per block the registers that waiting lanes need."""

    flat: Flat
    graph: ControlFlowGraph
    geometry: Geometry
    order: list[int]
    strides: dict[Register, Stride] = field(default_factory=dict)
    divergent: set[int] = field(default_factory=set)
    kept: dict[int, frozenset[Register]] = field(default_factory=dict)
    schedule: Schedule = field(init=False)
    liveness: Liveness = field(init=False)
    ranges: Ranges = field(init=False)

    def solve(self) -> None:
        """Find the least shapes and sets that agree: more divergence spreads values, spread values diverge branches."""
        self.liveness = Liveness(self.graph, RegisterFlow(self.graph))
        self.ranges = Ranges(self.geometry, self._writers())
        live = {block: self.liveness.live_in(block) for block in self.order}
        while True:
            self.schedule = schedule(self.graph, self.order, self.divergent)
            nothing: frozenset[Register] = frozenset()
            self.kept = {
                block: nothing.union(*(live[each] for each in waiting))
                for block, waiting in self.schedule.waiting.items()
            }
            self._propagate()
            divergent = {block for block in self.order if self._splits(block)}
            if divergent == self.divergent:
                return
            self.divergent = divergent

    def of(self, operand: Operand) -> Stride:
        """The stride of an operand."""
        if isinstance(operand, Register):
            if operand.special:
                return self.geometry.special(operand.name)
            if operand.selector:  # a part of a stepped register is not stepped
                return 0 if self.strides.get(replace(operand, selector=None), 0) == 0 else None
            return self.strides.get(operand, 0)
        if isinstance(operand, Negated):
            return 0 if self.of(operand.operand) == 0 else None
        if isinstance(operand, Not):
            return self.of(operand.operand)
        if isinstance(operand, (Vector, Pair)):
            parts = operand.elements if isinstance(operand, Vector) else (operand.first, operand.second)
            return 0 if all(self.of(each) == 0 for each in parts) else None
        if isinstance(operand, Address):
            return 0 if operand.base is None else self.of(operand.base)
        return 0

    def guard(self, op: Op) -> Stride:
        """The stride of an instruction's guard; 0 without one."""
        return 0 if op.predicate is None else self.of(op.predicate.register)

    def _writers(self) -> dict[Register, list[Op]]:
        writers: dict[Register, list[Op]] = {}
        for block in self.order:
            for index in range(self.graph.blocks[block].start, self.graph.blocks[block].end):
                op = self.flat.instructions[index]
                for register in isa.defs(op):
                    writers.setdefault(register, []).append(op)
        return writers

    def _propagate(self) -> None:
        changed = True
        while changed:
            changed = False
            for block in self.order:
                kept = self.kept[block]
                for index in range(self.graph.blocks[block].start, self.graph.blocks[block].end):
                    op = self.flat.instructions[index]
                    for register, stride in self._written(op):
                        if register in kept or self.guard(op) != 0:
                            stride = None
                        changed |= self._raise(register, stride)

    def _raise(self, register: Register, stride: Stride) -> bool:
        if stride and self.flat.types.get(register) not in _STEPPED:
            stride = None
        before = self.strides.get(register, -1)
        if register not in self.strides:
            self.strides[register] = stride
            return True
        if before is None or before == stride:
            return False
        self.strides[register] = None
        return True

    def _splits(self, block: int) -> bool:
        """Whether the lanes of a block may part at its end."""
        last = self.flat.instructions[self.graph.blocks[block].end - 1] if self.graph.blocks[block].end else None
        if last is None:
            return False
        if last.base == "brx" and self.of(last.operands[0]) != 0:
            return True
        return last.base in ("bra", "brx", "ret", "exit", "trap") and self.guard(last) != 0

    def _written(self, op: Op) -> list[tuple[Register, Stride]]:
        """(register, stride) of everything an instruction writes."""
        info = isa.info(op.opcode.text)
        count = info.destinations if info else 0
        sources = op.operands[count:]
        found: list[tuple[Register, Stride]] = []
        written = isa.defs(op)
        if not written:
            return found
        first = op.operands[0] if count else None
        if isinstance(first, Register) and len(written) == 1:
            return [(next(iter(written)), self.result(op, sources))]
        stride: Stride = self.result(op, sources) if op.base in ("shfl", "mov") else self._plain(op, sources)
        return [(register, 0 if stride == 0 else None) for register in written]

    def result(self, op: Op, sources: Sequence[Operand]) -> Stride:
        """The stride of an instruction's result from those of its sources, guard and mask apart."""
        rule = RULES.get(op.base)
        if rule is not None:
            stride = rule(self, op, sources)
            if stride is not None:
                return stride
        return self._plain(op, sources)

    def _plain(self, op: Op, sources: Sequence[Operand]) -> Stride:
        if op.base in _SHARED_BY_WARP or op.base in _SHARED_BY_BLOCK:
            return 0
        if op.base in _ALWAYS_SPREAD or (op.base == "ld" and op.opcode.space == "local"):
            return None
        if op.base == "cvta" and "local" in op.modifiers:
            return None
        if op.base in ("addc", "subc", "madc") and self.strides.get(isa.CARRY, 0) != 0:
            return None
        return 0 if all(self.of(each) == 0 for each in sources) else None

    def never_wraps(self, operand: Operand) -> bool:
        """Whether extending a 32-bit operand lane by lane equals extending its lane 0 and stepping on."""
        stride = self.of(operand)
        if stride == 0 or self.ranges.bounds(operand) is not None:
            return True
        return stride is not None and stride > 0 and self.ranges.alignment(operand) > stride * (self.geometry.lanes - 1)
