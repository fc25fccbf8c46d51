"""The names of a body that is put into the flat code: each time it stands there, its registers are others."""

from __future__ import annotations

from dataclasses import replace

from ssmtool.errors import SsmtoolError
from ssmtool.execute.program.flat import Place
from ssmtool.execute.program.places import Places, Slot
from ssmtool.ptx import Function, Variable
from ssmtool.ptx.operands import (
    Address,
    Group,
    Immediate,
    Label,
    Negated,
    Not,
    Operand,
    Pair,
    Predicate,
    Register,
    Sink,
    Symbol,
    Vector,
)


class Names:
    """Names of one body, in one place where it stands, turned into registers and places of the flat code.

    `bound` are the names that have a place already: the parameters. `line` is where the body's text is being read.
    """

    def __init__(
        self, places: Places, function: Function, frame: int, bound: dict[tuple[str, int], Place | Slot]
    ) -> None:
        self.places = places
        self.function = function
        self.frame = frame
        self.bound = bound
        self.line = function.line

    def named(self, name: str) -> Register:
        """A register of the body's own scope by name."""
        return Register(framed(name, self.frame), 0)

    def register(self, register: Register) -> Register:
        """The register of the flat code; its type is noted."""
        if register.special:
            return register
        found = Register(framed(register.name, self.frame), register.scope, register.selector)
        plain = Register(found.name, found.scope)
        if plain not in self.places.flat.types:
            declared = self.function.register(register)
            if declared is None:
                raise SsmtoolError(
                    f"register {register.name} is not declared in {self.function.name}",
                    path=self.function.source.path,
                    line=self.line,
                )
            self.places.flat.types[plain] = register_type(declared)
        return found

    def guard(self, predicate: Predicate | None) -> Predicate | None:
        """The guard with its register renamed."""
        return None if predicate is None else Predicate(self.register(predicate.register), predicate.negated)

    def declare(self, symbol: Symbol) -> Place | Slot:
        """The place of a symbol, made when it is first met."""
        key = (symbol.name, symbol.scope)
        found = self.bound.get(key)
        if found is None:
            variable = self.function.variable(symbol)
            if variable is None:
                return self.places.of_module(symbol, self.function)
            found = self.bound[key] = self.places.new(variable)
        return found

    def slot(self, address: Address) -> Slot | None:
        """The call parameter that an address names, None when it names none."""
        if not isinstance(address.base, Symbol):
            return None
        place = self.declare(address.base)
        return place if isinstance(place, Slot) else None

    def operand(self, operand: Operand) -> Operand:
        """The operand with names resolved."""
        if isinstance(operand, Register):
            return self.register(operand)
        if isinstance(operand, Symbol):
            place = self.declare(operand)
            if isinstance(place, Slot):
                raise SsmtoolError(
                    f"the address of call parameter {operand.name} is taken in {self.function.name}",
                    path=self.function.source.path,
                    line=self.function.line,
                )
            return replace(place, offset=place.offset + operand.offset)
        if isinstance(operand, Address):
            base = operand.base
            resolved = None if base is None else self.operand(base)
            assert resolved is None or isinstance(resolved, (Register, Symbol))
            return Address(resolved, operand.offset, tuple(self.operand(each) for each in operand.extra))
        if isinstance(operand, (Vector, Group)):
            return type(operand)(tuple(self.operand(each) for each in operand.elements))
        if isinstance(operand, Pair):
            return Pair(self.operand(operand.first), self.operand(operand.second))
        if isinstance(operand, (Not, Negated)):
            return type(operand)(self.operand(operand.operand))
        assert isinstance(operand, (Immediate, Label, Sink))
        return operand


def framed(name: str, frame: int) -> str:
    """A register's name in the `frame`-th body; the entry's own, frame 0, keep theirs."""
    return f"{name}#{frame}" if frame else name


def register_type(variable: Variable) -> str:
    """The type of a declared register."""
    return variable.type or "b32"
