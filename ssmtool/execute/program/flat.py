"""The flat code of an entry: its instructions, the types of its registers, and the memory it declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ssmtool.execute.layout import SharedVariable
from ssmtool.execute.numerics.form import UnsupportedError
from ssmtool.ptx import Function, Instruction, Variable
from ssmtool.ptx.opcode import Opcode
from ssmtool.ptx.operands import Label, Operand, Predicate, Register, Symbol
from ssmtool.ptx.source import SourceText


@dataclass(frozen=True, slots=True)
class Place(Symbol):
    """A symbol whose place is known: byte `offset` in `param` of the entry, `shared` or `local`.

    In `global` and `const` the offset counts from the module variable `name`.
    """

    space: str = ""


def place(space: str, offset: int, name: str = "") -> Place:
    """The place `offset` bytes into a state space, or into the module variable `name`."""
    return Place(name, -1, offset, space)


@dataclass(slots=True)
class Op:
    """An instruction of the flat list, shaped as `ptx.code.Statement`; `origin` is where it stands in the text."""

    origin: Instruction
    opcode: Opcode
    operands: tuple[Operand, ...]
    predicate: Predicate | None
    targets: tuple[Label, ...] = ()

    @property
    def base(self) -> str:
        """The opcode's first word."""
        return self.opcode.base

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The opcode's other words."""
        return self.opcode.modifiers

    @property
    def span(self) -> tuple[int, int]:
        """Offsets in the text."""
        return self.origin.span


@dataclass(slots=True)
class Flat:
    """The flat code of one entry, shaped as `ptx.code.Code`, and the memory it declares (bytes)."""

    entry: Function
    source: SourceText
    instructions: list[Op] = field(default_factory=list)
    types: dict[Register, str] = field(default_factory=dict)
    params: list[tuple[Variable, int]] = field(default_factory=list)
    param_bytes: int = 0
    shared_bytes: int = 0
    dynamic_alignment: int = 16
    local_bytes: int = 0
    symbols: list[str] = field(default_factory=list)
    shared_variables: list[SharedVariable] = field(default_factory=list)
    noreturn_names: set[str] = field(default_factory=set)

    @property
    def opcodes(self) -> Sequence[str]:
        """Opcode texts, a column."""
        return [op.opcode.text for op in self.instructions]


def refuse(op: Op | Instruction, why: str) -> UnsupportedError:
    """The refusal of an instruction, by name and line, before anything runs."""
    origin = op.origin if isinstance(op, Op) else op
    error = UnsupportedError(" ".join(origin.text.split()), why)
    error.line = origin.line
    error.path = origin.function.source.path
    return error
