"""One instruction: a view on a row of its function's columns, its operands parsed when first asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ssmtool.ptx.body import OPCODE
from ssmtool.ptx.location import Loc
from ssmtool.ptx.opcode import Opcode, split_opcode
from ssmtool.ptx.operands import Label, Operand, Predicate, Register, Symbol

if TYPE_CHECKING:
    from ssmtool.ptx.function import Function

_GUARD = re.compile(r"\s*(?:@\s*(!?)\s*([\w$%]+)\s+)?")


class Instruction:
    """One instruction of a function; `function.instructions[i]` makes it.

    Two views of the same row are equal. Everything but `opcode` costs parsing, once.
    """

    __slots__ = ("_operands", "function", "index", "opcode")

    def __init__(self, function: Function, index: int) -> None:
        self.function = function
        self.index = index
        self.opcode: Opcode = split_opcode(function.opcodes[index])
        self._operands: tuple[Operand, ...] | None = None

    @property
    def base(self) -> str:
        """`ld` of `ld.global.f32`."""
        return self.opcode.base

    @property
    def modifiers(self) -> tuple[str, ...]:
        """`("global", "f32")` of `ld.global.f32`."""
        return self.opcode.modifiers

    @property
    def types(self) -> tuple[str, ...]:
        """The type modifiers, destination first."""
        return self.opcode.types

    @property
    def type(self) -> str | None:
        """The first type modifier."""
        return self.opcode.type

    @property
    def space(self) -> str | None:
        """State space of a memory instruction, None when generic."""
        return self.opcode.space

    @property
    def scope(self) -> int:
        """Number of the `{ }` scope it stands in; 0 is the function itself."""
        return self.function.scope_at(self.index)

    @property
    def span(self) -> tuple[int, int]:
        """Offsets of the guard or opcode and of the end, `;` included: `text[start:end]` is the instruction."""
        match = _GUARD.match(self._code, self.function.body.starts[self.index])
        assert match is not None
        start = match.start() + len(match[0]) - len(match[0].lstrip()) if match[2] else match.end()
        return start, self.function.body.ends[self.index] + 1

    @property
    def text(self) -> str:
        """The instruction as written, guard and `;` included."""
        start, end = self.span
        return self.function.source.text[start:end]

    @property
    def line(self) -> int:
        """1-based line in the PTX text."""
        return self.function.source.line(self.span[0])

    @property
    def column(self) -> int:
        """1-based column in the PTX text."""
        return self.function.source.position(self.span[0])[1]

    @property
    def loc(self) -> Loc | None:
        """The compiled source's place by the last `.loc` before it; None without debug information."""
        return self.function.loc_at(self.index)

    @property
    def predicate(self) -> Predicate | None:
        """The guard, if any."""
        match = _GUARD.match(self._code, self.function.body.starts[self.index])
        if match is None or not match[2]:
            return None
        register = self.function.parser.resolve(match[2], self.scope)
        if not isinstance(register, Register):
            register = Register(match[2])
        return Predicate(register, bool(match[1]))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands in order, destinations first; PtxSyntaxError when they cannot be read."""
        if self._operands is None:
            body = self.function.body
            guard = _GUARD.match(self._code, body.starts[self.index])
            assert guard is not None
            opcode = OPCODE.match(self._code, guard.end())
            assert opcode is not None
            self._operands = self.function.parser.parse(
                opcode.end(), body.ends[self.index], self.scope, self.opcode.base == "call"
            )
        return self._operands

    @property
    def targets(self) -> tuple[Label, ...]:
        """Where a branch may go: the label of `bra`, the table of `brx.idx`; else empty."""
        if self.base == "bra":
            return tuple(operand for operand in self.operands if isinstance(operand, Label))
        if self.base == "brx" and len(self.operands) > 1 and isinstance(self.operands[1], Symbol):
            return self.function.branch_targets(self.operands[1].name, self.scope)
        return ()

    @property
    def _code(self) -> str:
        return self.function.source.code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and other.function is self.function and other.index == self.index

    def __hash__(self) -> int:
        return hash((id(self.function), self.index))

    def __repr__(self) -> str:
        return f"<{self.function.name}[{self.index}] line {self.line}: {' '.join(self.text.split())}>"
