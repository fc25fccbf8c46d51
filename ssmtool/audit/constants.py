"""Conditional constant propagation: which blocks no execution can enter, given what is assumed of the parameters.

Wegman and Zadeck, "Constant Propagation with Conditional Branches" (1991), on blocks: a block is entered only when a
branch that may be taken leads to it, and a register is known in a block only when every branch that may be taken into
it brings the same value. Whatever is not an exact integer computation (`values`) is unknown, so a block is called dead
only when it is proved to be. The PTX of a kernel is all that is looked at; a call changes no register but its results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ssmtool.audit.assumptions import NOTHING, Assumed
from ssmtool.audit.flow import EXIT, Flow, Step, literal
from ssmtool.audit.values import compare, evaluate, read, result_type, write
from ssmtool.ptx.function import Function
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Address, Not, Operand, Pair, Register, Symbol, Vector

Environment = dict[Register, int]


@dataclass(frozen=True, slots=True)
class Propagation:
    """What was found out.

    `live` are the blocks that may be entered, `edges` the (block, block or EXIT) ways that may be taken; `entering`
    what is known on entry of each live block; `switched_off` the instructions in live blocks whose guard is known to be
    false.
    """

    live: frozenset[int]
    edges: frozenset[tuple[int, int]]
    entering: Mapping[int, Mapping[Register, int]]
    switched_off: frozenset[int]


def propagate(flow: Flow, assumed: Assumed = NOTHING) -> Propagation:
    """Run to the fixed point."""
    machine = Machine(flow.function, assumed)
    entering: dict[int, Environment] = {0: {}}
    edges: set[tuple[int, int]] = set()
    work = [0]
    waiting = {0}
    while work:
        block = work.pop()
        waiting.discard(block)
        known = dict(entering[block])
        guard, index = machine.run(flow, block, known)
        for following in flow.goes_to(block, guard, index):
            first = (block, following) not in edges
            edges.add((block, following))
            if following == EXIT:
                continue
            old = entering.get(following)
            if old is None:
                entering[following] = dict(known)
                changed = True
            else:
                lost = [register for register, value in old.items() if known.get(register) != value]
                for register in lost:
                    del old[register]
                changed = bool(lost)
            if (changed or (first and old is None)) and following not in waiting:
                work.append(following)
                waiting.add(following)
    return Propagation(frozenset(entering), frozenset(edges), entering, _switched_off(flow, machine, entering))


def _switched_off(flow: Flow, machine: Machine, entering: Mapping[int, Environment]) -> frozenset[int]:
    off: set[int] = set()
    for block, before in entering.items():
        known = dict(before)
        for step in flow.steps(block):
            # A branch that is not taken is executed all the same.
            if machine.guard(step, known) == 0 and step.instruction.base not in ("bra", "brx"):
                off.add(step.instruction.index)
            machine.execute(step, known)
    return frozenset(off)


class Machine:
    """Executes steps on what is known of the registers; what becomes unknown is removed."""

    def __init__(self, function: Function, assumed: Assumed) -> None:
        self.function = function
        self._assumed = _usable(function, assumed)
        self._special = _special_registers(function)
        self._width: dict[Register, int] = {}

    def run(self, flow: Flow, block: int, known: Environment) -> tuple[int | None, int | None]:
        """Execute a block; the value of its last instruction's guard and of a `brx.idx` index, where known."""
        steps = flow.steps(block)
        for step in steps:
            self.execute(step, known)
        if not steps:
            return None, None
        last = steps[-1]
        index = self.value(last.sources[0], "u32", known) if last.instruction.base == "brx" else None
        return self.guard(last, known), index

    def guard(self, step: Step, known: Environment) -> int | None:
        """1 when the step is executed, 0 when not, None when that is not known."""
        if step.guard is None:
            return 1
        value = known.get(step.guard)
        return None if value is None else (value & 1) ^ int(step.guard_negated)

    def value(self, operand: Operand, type_: str | None, known: Environment) -> int | None:
        """The bit pattern of a source operand, where known."""
        if isinstance(operand, Register):
            if operand.selector is not None:
                return None
            found = known.get(operand)
            return self._special.get(operand.name) if found is None and operand.special else found
        if isinstance(operand, Not):
            inner = self.value(operand.operand, type_, known)
            return None if inner is None else 1 - (inner & 1)
        return literal(operand, type_)

    def execute(self, step: Step, known: Environment) -> None:
        """Take in one step's results."""
        if not step.written:
            return
        guard = self.guard(step, known)
        if guard == 0:
            return
        results = self.results(step, known)
        for register in step.written:
            value = results.get(register)
            # Not known to be executed: the register holds the old or the new value.
            if guard is None and value != known.get(register):
                value = None
            if value is None:
                known.pop(register, None)
            else:
                known[register] = value

    def results(self, step: Step, known: Environment) -> dict[Register, int | None]:
        """What an executed step writes; a register that is missing or None becomes unknown."""
        opcode = step.instruction.opcode
        if len(step.results) != 1:
            return {}
        result = step.results[0]
        if opcode.base == "ld" and opcode.space == "param" and isinstance(result, Register):
            return {result: self.parameter(step, result)}
        sources = [self.value(source, opcode.type, known) for source in step.sources]
        if opcode.base == "setp":
            first, second = compare(opcode, sources) if opcode.type in _COMPARED else (None, None)
            targets = (result.first, result.second) if isinstance(result, Pair) else (result,)
            return {
                target: value
                for target, value in zip(targets, (first, second), strict=False)
                if isinstance(target, Register)
            }
        if opcode.base == "mov" and (isinstance(result, Vector) or isinstance(step.sources[0], Vector)):
            return self._repack(step, known)
        if not isinstance(result, Register):
            return {}
        if opcode.base == "mov" and opcode.type in ("f32", "f64"):
            return {result: sources[0]}
        number = evaluate(opcode, sources)
        type_ = result_type(opcode)
        if number is None or type_ is None:
            return {}
        return {result: write(number, type_, self.bits(result))}

    def _repack(self, step: Step, known: Environment) -> dict[Register, int | None]:
        """`mov.b64 {a, b}, c` and `mov.b64 c, {a, b}`: the first element is the lowest bits."""
        bits = TYPE_BITS.get(step.instruction.type or "", 0)
        result, source = step.results[0], step.sources[0]
        if isinstance(result, Vector):
            whole = self.value(source, step.instruction.type, known)
            part = bits // len(result.elements)
            return {
                element: None if whole is None else (whole >> place * part) & ((1 << part) - 1)
                for place, element in enumerate(result.elements)
                if isinstance(element, Register)
            }
        if not isinstance(source, Vector) or not isinstance(result, Register):
            return {}
        part = bits // len(source.elements)
        total = 0
        for place, element in enumerate(source.elements):
            value = self.value(element, f"b{part}", known)
            if value is None:
                return {}
            total |= (value & ((1 << part) - 1)) << place * part
        return {result: total}

    def parameter(self, step: Step, result: Register) -> int | None:
        """What `ld.param` reads of an assumed parameter (little-endian)."""
        opcode = step.instruction.opcode
        address = step.sources[0]
        if not isinstance(address, Address) or not isinstance(address.base, Symbol) or address.base.scope != 0:
            return None
        assumed = self._assumed.get(address.base.name)
        offset = address.offset + address.base.offset
        bits = TYPE_BITS.get(opcode.type or "", 0)
        if assumed is None or opcode.vector != 1 or not bits or offset < 0 or offset + bits // 8 > assumed[1]:
            return None
        return write(read(assumed[0] >> 8 * offset, opcode.type or "b8"), opcode.type or "b8", self.bits(result))

    def bits(self, register: Register) -> int:
        """Width of a register."""
        bits = self._width.get(register)
        if bits is None:
            declared = self.function.register(register)
            bits = self._width[register] = TYPE_BITS.get(declared.type or "b64", 64) if declared else 64
        return bits


_COMPARED = frozenset(f"{kind}{bits}" for kind in "usb" for bits in (16, 32, 64))


def _usable(function: Function, assumed: Assumed) -> Mapping[str, tuple[int, int]]:
    """The assumptions about parameters that are only read by `ld.param`.

    One whose address is taken, or that is stored to, may change: nothing is known of it.
    """
    if not assumed:
        return {}
    spoiled: set[str] = set()
    for index, text in enumerate(function.opcodes):
        if text.startswith("ld.param"):
            continue
        if not text.startswith(("mov", "st", "cvta", "add", "call", "atom", "red", "ld")):
            continue
        for operand in function.instructions[index].operands:
            base = operand.base if isinstance(operand, Address) else operand
            if isinstance(base, Symbol) and base.scope == 0:
                spoiled.add(base.name)
    return {name: pattern for name, pattern in assumed.patterns.items() if name not in spoiled}


def _special_registers(function: Function) -> dict[str, int]:
    """Special registers that the text itself fixes: `.reqntid` is the only block size the kernel may have."""
    required = function.directive("reqntid")
    if required is None:
        return {}
    sizes = [*required.numbers, 1, 1][:3]
    return {f"%ntid.{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
