"""One `.entry` or `.func`: its header, its declarations, and its instructions as columns and as views."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

from ssmtool.ptx.body import Body
from ssmtool.ptx.declarations import Variable, parse_declaration
from ssmtool.ptx.instruction import Instruction
from ssmtool.ptx.location import DebugStrings, Loc, LocTable
from ssmtool.ptx.operand_parser import OperandParser
from ssmtool.ptx.operands import Label, Register, Symbol
from ssmtool.ptx.registers import Scope
from ssmtool.ptx.source import SourceText


@dataclass(frozen=True, slots=True)
class Directive:
    """A function's directive: `.maxntid 256, 1, 1` is `Directive("maxntid", ("256", "1", "1"))`."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those arguments that are plain numbers."""
        return tuple(int(word) for word in self.arguments if word.isdigit() and len(word) < 12)


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before a function's body.

    `kind` is `entry` or `func`, `linkage` `visible`, `extern`, `weak` or None. `span` is the header's,
    `name_offset` the name's place in the text.
    """

    name: str
    kind: str
    linkage: str | None
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    directives: tuple[Directive, ...]
    span: tuple[int, int]
    name_offset: int


@dataclass(slots=True)
class ModuleFacts:
    """What a function needs to know of its module: inlined functions' names, and which functions never return."""

    names: DebugStrings
    noreturn: set[str] = field(default_factory=set)


class Instructions(Sequence[Instruction]):
    """The instructions of a function; views are made, and kept, when first looked at."""

    __slots__ = ("_function", "_views")

    def __init__(self, function: Function) -> None:
        self._function = function
        self._views: dict[int, Instruction] = {}

    def __len__(self) -> int:
        return len(self._function.opcodes)

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Instruction]: ...
    def __getitem__(self, index: int | slice) -> Instruction | list[Instruction]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        length = len(self)
        if index < 0:
            index += length
        if not 0 <= index < length:
            raise IndexError(index)
        view = self._views.get(index)
        if view is None:
            view = self._views[index] = Instruction(self._function, index)
        return view

    def __iter__(self) -> Iterator[Instruction]:
        for index in range(len(self)):
            yield self[index]


class Function:
    """A defined function. `opcodes[i]` is the opcode text of `instructions[i]`: use it for counting.

    `span` covers header and body, braces included.
    """

    def __init__(self, source: SourceText, header: Header, body: Body, end: int, module: ModuleFacts) -> None:
        self.source = source
        self.header = header
        self.body = body
        self.span = (header.span[0], end)
        self.opcodes = body.opcodes
        self.instructions = Instructions(self)
        self._locs = LocTable(source, body.loc_offsets, module.names)
        self._module = module
        self._scope_rows = [row for row, _ in body.scope_changes]

    @property
    def name(self) -> str:
        """The function's (mangled) name."""
        return self.header.name

    @property
    def kind(self) -> str:
        """`entry` or `func`."""
        return self.header.kind

    @property
    def linkage(self) -> str | None:
        """`visible`, `weak`, `extern`, or None."""
        return self.header.linkage

    @property
    def params(self) -> tuple[Variable, ...]:
        """Parameters in order."""
        return self.header.params

    @property
    def returns(self) -> tuple[Variable, ...]:
        """Return parameters of a `.func`."""
        return self.header.returns

    @property
    def directives(self) -> tuple[Directive, ...]:
        """Directives of the header (`maxntid`, `reqntid`, `minnctapersm`, `maxnreg`, `noreturn`, ...)."""
        return self.header.directives

    def directive(self, name: str) -> Directive | None:
        """The header's directive of that name."""
        return next((each for each in self.directives if each.name == name), None)

    @property
    def line(self) -> int:
        """1-based line of the function's header."""
        return self.source.line(self.span[0])

    @property
    def text(self) -> str:
        """The function as written."""
        return self.source.text[self.span[0] : self.span[1]]

    @property
    def noreturn_names(self) -> set[str]:
        """Names of the module's `.noreturn` functions."""
        return self._module.noreturn

    def histogram(self) -> Counter[str]:
        """How many times each opcode spelling occurs; parses nothing."""
        return Counter(self.opcodes)

    def check(self) -> None:
        """Read every operand, guard and declaration; PtxSyntaxError at the first that cannot be read."""
        for instruction in self.instructions:
            _ = instruction.operands, instruction.predicate

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """The function's own scope and every nested `{ }`, by number; PtxSyntaxError for a label given twice."""
        scopes = [Scope(parent) for parent in self.body.scopes]
        for param in (*self.header.returns, *self.header.params):
            scopes[0].declare(param)
        for variable, scope in self._declared:
            scopes[scope].declare(variable)
        for name, row, offset, scope in self.body.labels:
            if name in scopes[scope].labels:
                raise self.source.error(offset, f"label {name!r} is defined twice in one scope")
            scopes[scope].labels[name] = row
        return tuple(scopes)

    @cached_property
    def _declared(self) -> list[tuple[Variable, int]]:
        return [
            (variable, scope)
            for start, end, scope in self.body.declarations
            for variable in parse_declaration(self.source, start, end)
        ]

    @cached_property
    def parser(self) -> OperandParser:
        """What turns operand text into operands and resolves names."""
        return OperandParser(self.source, self.scopes)

    @property
    def registers(self) -> tuple[Variable, ...]:
        """Every `.reg` declaration, ranges as one, nested scopes included."""
        return tuple(variable for variable, _ in self._declared if variable.space in ("reg", "sreg"))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every other declaration of the body: local, shared, call parameters, ..."""
        return tuple(variable for variable, _ in self._declared if variable.space not in ("reg", "sreg"))

    @property
    def local_variables(self) -> tuple[Variable, ...]:
        """`.local` declarations; the compiler's stack is the one named `__local_depot<N>`."""
        if self.source.code.find(".local", *self.span) < 0:
            return ()  # a look at the text, so that a file without local memory has none of its declarations parsed
        return tuple(variable for variable in self.variables if variable.space == "local")

    @property
    def shared_variables(self) -> tuple[Variable, ...]:
        """`.shared` declarations of the body; most compilers put theirs at module level instead."""
        return tuple(variable for variable in self.variables if variable.space.startswith("shared"))

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory the text declares, each variable aligned: the depot."""
        total = 0
        for variable in self.local_variables:
            total = -(-total // variable.alignment) * variable.alignment + variable.size
        return total

    def register(self, register: Register) -> Variable | None:
        """The declaration of a register; None for special and undeclared ones."""
        return self.scopes[register.scope].register(register.name)

    def variable(self, symbol: Symbol) -> Variable | None:
        """The declaration of a symbol of this function; None for those of the module."""
        return self.scopes[symbol.scope].variables.get(symbol.name) if symbol.scope >= 0 else None

    @property
    def labels(self) -> dict[str, int]:
        """Label -> index of the instruction it stands before (the count of instructions for one at the end).

        Where nested scopes repeat a name, the first counts; a branch's own `Label` operand is always right.
        """
        found: dict[str, int] = {}
        for name, row, _, _ in self.body.labels:
            found.setdefault(name, row)
        return found

    def scope_at(self, index: int) -> int:
        """Number of the scope that instruction `index` stands in."""
        if not self._scope_rows:
            return 0
        place = bisect_right(self._scope_rows, index)
        return self.body.scope_changes[place - 1][1] if place else 0

    def loc_at(self, index: int) -> Loc | None:
        """The place that the last `.loc` before instruction `index` names."""
        place = bisect_right(self.body.loc_rows, index)
        return self._locs[place - 1] if place else None

    def branch_targets(self, table: str, scope: int = 0) -> tuple[Label, ...]:
        """The labels of a `.branchtargets` table; PtxSyntaxError when one is not a label of this function."""
        entry = self.body.tables.get(table)
        if entry is None or entry[0] != "branchtargets":
            return ()
        operands = self.parser.parse(entry[1], entry[2], scope, False)
        labels = tuple(operand for operand in operands if isinstance(operand, Label))
        if len(labels) != len(operands):
            raise self.source.error(entry[1], f"branch table {table!r} names something that is not a label")
        return labels

    def __repr__(self) -> str:
        return f"<.{self.kind} {self.name}, {len(self.opcodes)} instructions, line {self.line}>"
