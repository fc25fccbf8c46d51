"""What is known of the integers that a kernel computes: their bounds, and the powers of two that divide them."""

from __future__ import annotations

from ssmtool.execute.program.flat import Op
from ssmtool.execute.program.geometry import WIDEST, Geometry
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Immediate, Operand, Register


class Ranges:
    """Facts that hold at all times: bounds over all lanes, alignments of the value in lane 0.

    `writers` are the instructions that write each register.
    """

    def __init__(self, geometry: Geometry, writers: dict[Register, list[Op]]) -> None:
        self.geometry = geometry
        self._writers = writers
        self._bounds: dict[Register, tuple[int, int] | None] = {}
        # The best for each, lowered until every write agrees.
        self._aligned = dict.fromkeys(writers, WIDEST)
        changed = True
        while changed:
            changed = False
            for register, each in writers.items():
                found = min(self._alignment_of(op) for op in each)
                if found < self._aligned[register]:
                    self._aligned[register] = found
                    changed = True

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
            return (operand.value, operand.value) if operand.kind == "int" and 0 <= operand.value < WIDEST else None
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
        if not integral(op) or not isinstance(op.operands[0], Register) or {"hi", "cc"} & set(op.modifiers):
            return None
        found = self._interval(op, [self.bounds(each, depth) for each in op.operands[1:]])
        if found is None or not 0 <= found[0] <= found[1] < WIDEST:
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
            return min(operand.value & -operand.value, WIDEST) if operand.value else WIDEST
        if not isinstance(operand, Register):
            return 1
        return self.geometry.alignment(operand.name) if operand.special else self._aligned.get(operand, 1)

    def _alignment_of(self, op: Op) -> int:
        if not integral(op) or {"hi", "cc", "sat"} & set(op.modifiers):
            return 1
        values = [self.alignment(each) for each in op.operands[1:]]
        if op.base in ("mov", "cvt", "cvta"):
            return values[0] if len(values) == 1 and isinstance(op.operands[0], Register) else 1
        if op.base in ("add", "sub", "or"):
            return min(values)
        if op.base == "mul":
            return min(values[0] * values[1], WIDEST)
        if op.base == "mad":
            return min(values[0] * values[1], values[2])
        if op.base == "shl":
            amount = self.constant(op.operands[2])
            return min(values[0] << amount, WIDEST) if amount is not None and 0 <= amount < 32 else 1
        return 1


def _reach(kind: str, wide: bool = False) -> int:
    """The least number beyond an integer type, or beyond one twice as wide."""
    bits = TYPE_BITS[kind] * (2 if wide else 1)
    return 1 << (bits - (kind[0] == "s"))


def integral(op: Op) -> bool:
    """Whether an instruction is of integers, or of bits."""
    return all(kind[0] in "usb" and kind != "b1" for kind in op.opcode.types) and bool(op.opcode.types)
