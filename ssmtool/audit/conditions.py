"""Conditions in words: what a branch tests, followed back through the registers to parameters and constants."""

from __future__ import annotations

from collections.abc import Mapping

from ssmtool.audit.flow import Flow, Step
from ssmtool.ptx.operands import Address, Immediate, Not, Operand, Register, Symbol

_SIGNS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
_DEPTH = 5


class Wording:
    """Renders registers of one function as expressions. A register that is written more than once keeps its name."""

    def __init__(self, flow: Flow, parameter_names: Mapping[str, str]) -> None:
        self._names = parameter_names
        self._definitions: dict[Register, Step | None] = {}
        for index in range(len(flow.function.opcodes)):
            step = flow.step(index)
            for register in step.written:
                self._definitions[register] = None if register in self._definitions else step

    def condition(self, guard: Register, *, negated: bool) -> str:
        """The condition under which the guard holds (or, `negated`, does not)."""
        step = self._definitions.get(guard)
        if step is not None and step.instruction.base == "setp" and len(step.sources) == 2:
            sign = _SIGNS.get(step.instruction.modifiers[0])
            if sign is not None:
                # The opposite of an ordered comparison of floats is not the plain opposite sign: NaN.
                floating = (step.instruction.type or "").startswith(("f", "bf"))
                left, right = (self.expression(source) for source in step.sources)
                if negated and floating:
                    return f"not {left} {sign} {right}"
                shown = _OPPOSITE[sign] if negated else sign
                unsigned = (step.instruction.type or "").startswith("u") and shown not in ("==", "!=")
                return f"{left} {shown} {right}{' (unsigned)' if unsigned else ''}"
        if step is not None and step.instruction.base in ("and", "or") and step.instruction.type == "pred":
            word = step.instruction.base if not negated else {"and": "or", "or": "and"}[step.instruction.base]
            parts = [self.condition(source, negated=negated) for source in step.sources if isinstance(source, Register)]
            if len(parts) == len(step.sources):
                return f" {word} ".join(parts)
        return f"not {guard.name}" if negated else guard.name

    def expression(self, operand: Operand, depth: int = 0) -> str:
        """An operand as an expression over parameters, special registers and numbers."""
        if isinstance(operand, Immediate):
            return str(operand.number)
        if isinstance(operand, Symbol):
            return operand.name
        if isinstance(operand, Not):
            return f"not {self.expression(operand.operand, depth)}"
        if not isinstance(operand, Register):
            return "?"
        step = self._definitions.get(operand)
        if operand.special or step is None or depth >= _DEPTH or step.guard is not None:
            return operand.name
        return self._computed(step, depth) or operand.name

    def _computed(self, step: Step, depth: int) -> str | None:
        instruction = step.instruction
        if instruction.base == "ld" and instruction.space == "param":
            address = step.sources[0]
            if isinstance(address, Address) and isinstance(address.base, Symbol) and not address.offset:
                return self._names.get(address.base.name, address.base.name)
            return None
        if instruction.base in ("mov", "cvt", "cvta") and len(step.sources) == 1:
            return self.expression(step.sources[0], depth + 1)
        sign = _ARITHMETIC.get(instruction.base)
        if sign is not None and len(step.sources) == 2 and not instruction.opcode.has("hi"):
            left, right = (self.expression(source, depth + 1) for source in step.sources)
            if sign == "+" and right.startswith("-"):
                return f"({left} - {right[1:]})"
            return f"({left} {sign} {right})"
        return None
