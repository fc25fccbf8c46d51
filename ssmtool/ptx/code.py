"""What the analyses ask of code: a `Function`, or anything else that lists instructions (flattened calls, tests)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ssmtool.ptx.opcode import Opcode
from ssmtool.ptx.operands import Label, Operand, Predicate
from ssmtool.ptx.source import SourceText


class Statement(Protocol):
    """One instruction: see `Instruction` for the meaning of each part."""

    @property
    def opcode(self) -> Opcode: ...  # noqa: D102
    @property
    def base(self) -> str: ...  # noqa: D102
    @property
    def modifiers(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def operands(self) -> tuple[Operand, ...]: ...  # noqa: D102
    @property
    def predicate(self) -> Predicate | None: ...  # noqa: D102
    @property
    def targets(self) -> tuple[Label, ...]: ...  # noqa: D102
    @property
    def span(self) -> tuple[int, int]: ...  # noqa: D102


class Code(Protocol):
    """Instructions in text order, with their opcodes as a column; `Label.target` is an index into them."""

    @property
    def opcodes(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def instructions(self) -> Sequence[Statement]: ...  # noqa: D102
    @property
    def noreturn_names(self) -> set[str]: ...  # noqa: D102
    @property
    def source(self) -> SourceText: ...  # noqa: D102
