"""Which variables are the same in all lanes, and which grow by a constant from lane to lane.

A variable's shape is its stride: 0 for a value that all lanes share, s for base + s * lane (both kept as one scalar),
None for anything else. Shapes are exact modulo the register's width, so sums, products by constants and truncation
keep them; an extension keeps them only where no lane can wrap while another does not, which is proved from known
bounds (`%tid.x` < `%ntid.x`) or from the alignment of the base (`%ctaid.x * 256 + %tid.x`), else the value is spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ssmtool.execute.program.flatten import Flat, Op
from ssmtool.execute.program.schedule import Schedule, schedule
from ssmtool.ptx import isa
from ssmtool.ptx.cfg import ControlFlowGraph
from ssmtool.ptx.dataflow import Liveness, RegisterFlow
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Address, Immediate, Negated, Not, Operand, Pair, Register, Vector

Stride = int | None
_STEPPED = frozenset(("b32", "u32", "s32", "b64", "u64", "s64"))
_SHARED_BY_WARP = frozenset(("vote", "activemask"))
_SHARED_BY_BLOCK = frozenset(("bar", "barrier"))
_ALWAYS_SPREAD = frozenset(("atom", "match", "shfl", "isspacep"))
_WIDEST = 1 << 31


@dataclass(frozen=True, slots=True)
class Geometry:
    """A block's shape in threads and how many of them run as one vector."""

    block: tuple[int, int, int]
    lanes: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def gangs(self) -> int:
        """Vectors that make a block."""
        return -(-self.threads // self.lanes)

    def special(self, name: str) -> Stride:
        """The stride of a special register."""
        x, y, z = self.block
        if name == "%tid.x":
            if x == 1:
                return 0
            return 1 if x % self.lanes == 0 or (y == 1 and z == 1) else None
        if name == "%tid.y":
            return 0 if y == 1 or x % self.lanes == 0 else None
        if name == "%tid.z":
            return 0 if z == 1 or (x * y) % self.lanes == 0 else None
        if name == "%laneid":
            return 1 if self.lanes == 32 else None
        if name.startswith("%lanemask"):
            return None
        if name == "%warpid":
            return 0 if self.lanes == 32 else None
        return 0

    def bounds(self, name: str) -> tuple[int, int] | None:
        """Smallest and largest value of a special register."""
        if name[:5] == "%tid.":
            return 0, self.block["xyz".index(name[5])] - 1
        if name[:6] == "%ntid.":
            size = self.block["xyz".index(name[6])]
            return size, size
        if name == "%laneid":
            return 0, 31
        if name == "%warpid":
            return 0, 31
        if name.startswith(("%ctaid.", "%nctaid.")):
            return 0, _WIDEST - 1
        return None

    def alignment(self, name: str) -> int:
        """A power of two that divides the lane-0 value of a special register."""
        if name == "%tid.x" and self.special(name) == 1:
            return self.lanes & -self.lanes
        if name[:6] == "%ntid.":
            size = self.block["xyz".index(name[6])]
            return size & -size
        return _WIDEST if name == "%laneid" else 1


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
    _writers: dict[Register, list[Op]] = field(default_factory=dict)
    _bounds: dict[Register, tuple[int, int] | None] = field(default_factory=dict)
    _aligned: dict[Register, int] = field(default_factory=dict)

    def solve(self) -> None:
        """Find the least shapes and sets that agree: more divergence spreads values, spread values diverge branches."""
        self.liveness = Liveness(self.graph, RegisterFlow(self.graph))
        self._find_writers()
        self._align()
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

    def _find_writers(self) -> None:
        for block in self.order:
            for index in range(self.graph.blocks[block].start, self.graph.blocks[block].end):
                op = self.flat.instructions[index]
                for register in isa.defs(op):
                    self._writers.setdefault(register, []).append(op)

    def _align(self) -> None:
        """Alignments of all registers: start with the best for each, lower until every write agrees."""
        self._aligned = dict.fromkeys(self._writers, _WIDEST)
        changed = True
        while changed:
            changed = False
            for register, writers in self._writers.items():
                found = min(self._alignment_of(op) for op in writers)
                if found < self._aligned[register]:
                    self._aligned[register] = found
                    changed = True

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
        rule = _RULES.get(op.base)
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

    def constant(self, operand: Operand) -> int | None:
        """The integer that an operand is known to be."""
        if isinstance(operand, Immediate):
            return operand.value if operand.kind == "int" else None
        if isinstance(operand, Register):
            bounds = self.bounds(operand)
            return bounds[0] if bounds is not None and bounds[0] == bounds[1] else None
        return None

    def bounds(self, operand: Operand, depth: int = 0) -> tuple[int, int] | None:
        """Least and greatest value over all lanes and times, both in [0, 2^31), else None."""
        if isinstance(operand, Immediate):
            return (operand.value, operand.value) if operand.kind == "int" and 0 <= operand.value < _WIDEST else None
        if not isinstance(operand, Register):
            return None
        if operand.special:
            return self.geometry.bounds(operand.name)
        if operand not in self._bounds:
            self._bounds[operand] = None  # what a cycle sees
            writers = self._writers.get(operand, [])
            if len(writers) == 1 and writers[0].predicate is None and depth < 40:
                self._bounds[operand] = self._bounds_of(writers[0], depth + 1)
        return self._bounds[operand]

    def _bounds_of(self, op: Op, depth: int) -> tuple[int, int] | None:
        if not _integral(op) or not isinstance(op.operands[0], Register) or {"hi", "cc"} & set(op.modifiers):
            return None
        found = self._interval(op, [self.bounds(each, depth) for each in op.operands[1:]])
        if found is None or not 0 <= found[0] <= found[1] < _WIDEST:
            return None
        # What does not fit the result's type is cut, and the bounds with it.
        return found if found[1] < _reach(op.opcode.types[0], "wide" in op.modifiers) else None

    def _interval(self, op: Op, values: list[tuple[int, int] | None]) -> tuple[int, int] | None:
        """Bounds of a result from its sources', as if numbers had no width."""
        first = values[0] if values else None
        second = values[1] if len(values) > 1 else None
        if op.base == "mov":
            return first
        if op.base == "cvt":
            return first if first and first[1] < _reach(op.opcode.types[1]) else None
        if op.base == "and" and (first or second):
            return 0, min(each[1] for each in (first, second) if each)
        if op.base == "shr" and second and second[0] == second[1] and second[0] < 32:
            if first:
                return first[0] >> second[0], first[1] >> second[0]
            return (0, 0xFFFFFFFF >> second[0]) if op.opcode.type in ("u32", "b32") else None
        if not first or not second:
            return None
        if op.base == "add":
            return first[0] + second[0], first[1] + second[1]
        if op.base == "sub":
            return first[0] - second[1], first[1] - second[0]
        if op.base == "mul":
            return first[0] * second[0], first[1] * second[1]
        if op.base == "mad" and len(values) > 2 and values[2]:
            return first[0] * second[0] + values[2][0], first[1] * second[1] + values[2][1]
        if op.base == "shl" and second[1] < 32:
            return first[0] << second[0], first[1] << second[1]
        if op.base == "or":
            return max(first[0], second[0]), (1 << (first[1] | second[1]).bit_length()) - 1
        if op.base in ("min", "max"):
            choose = min if op.base == "min" else max
            return choose(first[0], second[0]), choose(first[1], second[1])
        if op.base == "rem" and second[0] > 0:
            return 0, min(first[1], second[1] - 1)
        if op.base == "div" and second[0] > 0:
            return first[0] // second[1], first[1] // second[0]
        return None

    def alignment(self, operand: Operand) -> int:
        """A power of two (at most 2^31) that divides the lane-0 value of an operand."""
        if isinstance(operand, Immediate) and operand.kind == "int":
            return min(operand.value & -operand.value, _WIDEST) if operand.value else _WIDEST
        if not isinstance(operand, Register):
            return 1
        return self.geometry.alignment(operand.name) if operand.special else self._aligned.get(operand, 1)

    def _alignment_of(self, op: Op) -> int:
        if not _integral(op) or {"hi", "cc", "sat"} & set(op.modifiers):
            return 1
        values = [self.alignment(each) for each in op.operands[1:]]
        if op.base in ("mov", "cvt", "cvta"):
            return values[0] if len(values) == 1 and isinstance(op.operands[0], Register) else 1
        if op.base in ("add", "sub", "or"):
            return min(values)
        if op.base == "mul":
            return min(values[0] * values[1], _WIDEST)
        if op.base == "mad":
            return min(values[0] * values[1], values[2])
        if op.base == "shl":
            amount = self.constant(op.operands[2])
            return min(values[0] << amount, _WIDEST) if amount is not None and 0 <= amount < 32 else 1
        return 1

    def never_wraps(self, operand: Operand) -> bool:
        """Whether extending a 32-bit operand lane by lane equals extending its lane 0 and stepping on."""
        stride = self.of(operand)
        if stride == 0 or self.bounds(operand) is not None:
            return True
        return stride is not None and stride > 0 and self.alignment(operand) > stride * (self.geometry.lanes - 1)


def _reach(kind: str, wide: bool = False) -> int:
    """The least number beyond an integer type, or beyond one twice as wide."""
    bits = TYPE_BITS[kind] * (2 if wide else 1)
    return 1 << (bits - (kind[0] == "s"))


def _integral(op: Op) -> bool:
    return all(kind[0] in "usb" and kind != "b1" for kind in op.opcode.types) and bool(op.opcode.types)


def _plain_integer(op: Op) -> bool:
    return _integral(op) and not {"cc", "sat", "hi"} & set(op.modifiers)


def _rule_move(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    if len(sources) != 1 or isinstance(sources[0], Vector) or "local" in op.modifiers:
        return None
    return shapes.of(sources[0])


def _rule_add(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    first, second = shapes.of(sources[0]), shapes.of(sources[1])
    if first is None or second is None or not _plain_integer(op):
        return None
    return first + second if op.base == "add" else first - second


def _product(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    """The stride of a product of a stepped and a constant factor; of two shared ones, 0."""
    first, second = shapes.of(sources[0]), shapes.of(sources[1])
    if first == 0 and second == 0:
        return 0
    if not _plain_integer(op):
        return None
    for stepped, other, stride in ((sources[0], sources[1], first), (sources[1], sources[0], second)):
        factor = shapes.constant(other)
        if stride is None or factor is None:
            continue
        if "wide" in op.modifiers:
            if op.opcode.types[0] not in ("u32", "s32") or not shapes.never_wraps(stepped):
                continue
            factor &= 0xFFFFFFFF  # what a negative literal, or one beyond the type, is as a factor of 32 bits
            if op.opcode.types[0] == "s32" and factor >= _WIDEST:
                factor -= 2 * _WIDEST
        return stride * factor
    return None


def _rule_multiply(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    return _product(shapes, op, sources)


def _rule_multiply_add(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    product, addend = _product(shapes, op, sources), shapes.of(sources[2])
    if product is None or addend is None or (product + addend and not _plain_integer(op)):
        return None
    return product + addend


def _rule_shift_left(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    stride, amount = shapes.of(sources[0]), shapes.constant(sources[1])
    if stride is None or amount is None or not 0 <= amount < TYPE_BITS[op.opcode.types[0]]:
        return None
    return stride << amount


def _rule_shift_right(shapes: Shapes, _: Op, sources: Sequence[Operand]) -> Stride:
    stride, amount = shapes.of(sources[0]), shapes.constant(sources[1])
    if not stride or stride < 0 or amount is None or not 0 <= amount < 32:
        return None
    reach = stride * (shapes.geometry.lanes - 1)
    return 0 if reach < shapes.alignment(sources[0]) and reach < 1 << amount else None


def _rule_and(shapes: Shapes, _: Op, sources: Sequence[Operand]) -> Stride:
    for stepped, other in ((sources[0], sources[1]), (sources[1], sources[0])):
        stride, mask = shapes.of(stepped), shapes.constant(other)
        if stride and stride > 0 and mask is not None and mask > 0 and mask & (mask + 1) == 0:
            aligned = shapes.alignment(stepped)
            if stride * (shapes.geometry.lanes - 1) < aligned and aligned <= mask + 1:
                return stride
    return None


def _rule_or(shapes: Shapes, _: Op, sources: Sequence[Operand]) -> Stride:
    """Bits that cannot meet are added: compilers write `or` for `add` where they know the alignment."""
    for stepped, other in ((sources[0], sources[1]), (sources[1], sources[0])):
        stride, bounds = shapes.of(stepped), shapes.bounds(stepped)
        if stride and shapes.of(other) == 0 and bounds is not None and bounds[1] < shapes.alignment(other):
            return stride
    return None


def _rule_convert(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    stride = shapes.of(sources[0])
    if not stride or not _plain_integer(op) or len(op.opcode.types) != 2:
        return None
    to, source = (TYPE_BITS[kind] for kind in op.opcode.types)
    if source < 32 or to < 32:
        return None
    return stride if to <= source or shapes.never_wraps(sources[0]) else None


def _rule_shuffle(shapes: Shapes, op: Op, sources: Sequence[Operand]) -> Stride:
    """`shfl.idx` of one lane to all."""
    if "idx" in op.modifiers and shapes.of(sources[1]) == 0 and shapes.constant(sources[2]) == 31:
        return 0
    return None


_RULES: dict[str, Callable[[Shapes, Op, Sequence[Operand]], Stride]] = {
    "mov": _rule_move,
    "cvta": _rule_move,
    "add": _rule_add,
    "sub": _rule_add,
    "mul": _rule_multiply,
    "mad": _rule_multiply_add,
    "shl": _rule_shift_left,
    "shr": _rule_shift_right,
    "and": _rule_and,
    "or": _rule_or,
    "cvt": _rule_convert,
    "shfl": _rule_shuffle,
}
