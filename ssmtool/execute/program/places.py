"""Where variables lie: each declared one gets a state space and a byte offset when its name is first met."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ssmtool.errors import SsmtoolError
from ssmtool.execute.layout import SharedVariable
from ssmtool.execute.program.flat import Flat, Place, place
from ssmtool.ptx import Function, Module, Variable
from ssmtool.ptx.operands import Address, Operand, Symbol, Vector

_LOCAL_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Slot:
    """A call's parameter variable: its accesses become registers named after it."""

    name: str


@dataclass(slots=True)
class Places:
    """The memory of an entry and all it calls, as it is given out; `flat` is told of what has to be there."""

    module: Module
    flat: Flat
    _known: dict[str, Place] = field(default_factory=dict)
    _slots: int = 0
    _dynamic: bool = False

    def new_slot(self, name: str) -> Slot:
        """A slot of its own for a call's parameter."""
        self._slots += 1
        return Slot(f"{name}@{self._slots}")

    def new_local(self, variable: Variable) -> Place:
        """Room for a variable in each thread's local memory."""
        start = -(-self.flat.local_bytes // variable.alignment) * variable.alignment
        self.flat.local_bytes = start + variable.size
        return place("local", start)

    def new(self, variable: Variable) -> Place | Slot:
        """Where a variable that a name is met of for the first time lies from now on."""
        space = variable.space.partition("::")[0]
        if space == "param":
            return self.new_slot(variable.name)
        if space == "shared":
            if variable.linkage == "extern" or variable.size == 0:
                self._dynamic = True
                self.flat.dynamic_alignment = max(self.flat.dynamic_alignment, variable.alignment)
                return place("dynamic", 0)
            start = -(-self.flat.shared_bytes // variable.alignment) * variable.alignment
            self.flat.shared_bytes = start + variable.size
            self.flat.shared_variables.append(
                SharedVariable(variable.name, start, variable.size, variable.element_size)
            )
            return place("shared", start)
        if space == "local":
            return self.new_local(variable)
        if variable.name not in self.flat.symbols:
            self.flat.symbols.append(variable.name)
        return place(space, 0, variable.name)

    def of_module(self, symbol: Symbol, function: Function) -> Place:
        """The place of a module variable that `function` names. Raises SsmtoolError when there is none."""
        known = self._known.get(symbol.name)
        if known is None:
            variable = self.module.variable(symbol.name)
            if variable is None:
                raise SsmtoolError(
                    f"{symbol.name} is not a variable of this module: only data has an address here",
                    path=function.source.path,
                    line=function.line,
                )
            new = self.new(variable)
            assert isinstance(new, Place)
            known = self._known[symbol.name] = new
        return known

    def finish(self) -> None:
        """Round local memory up, and move what is in dynamic shared memory behind all static variables.

        Their end was not known before.
        """
        self.flat.local_bytes = -(-self.flat.local_bytes // _LOCAL_ALIGNMENT) * _LOCAL_ALIGNMENT
        if self._dynamic:
            end = -(-self.flat.shared_bytes // self.flat.dynamic_alignment) * self.flat.dynamic_alignment
            for op in self.flat.instructions:
                op.operands = tuple(_moved(operand, end) for operand in op.operands)


def _moved(operand: Operand, end: int) -> Operand:
    """Places in dynamic shared memory as places in shared memory, now that its start is known."""
    if isinstance(operand, Place):
        return place("shared", operand.offset + end) if operand.space == "dynamic" else operand
    if isinstance(operand, Address) and isinstance(operand.base, Place) and operand.base.space == "dynamic":
        return replace(operand, base=place("shared", operand.base.offset + end))
    if isinstance(operand, Vector):
        return Vector(tuple(_moved(each, end) for each in operand.elements))
    return operand
