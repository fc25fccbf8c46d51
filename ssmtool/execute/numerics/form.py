"""A checked instruction form, and the reader that takes an opcode's parts in PTX's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ssmtool.errors import SsmtoolError
from ssmtool.execute.numerics.evidence import EXACT, Evidence

Emit = Callable[[Any, Sequence[Any]], Any]


class UnsupportedError(SsmtoolError):
    """An instruction form that sm_37 and PTX 7.4 do not have, or that is refused by name."""

    def __init__(self, opcode: str, why: str) -> None:
        super().__init__(f"{opcode}: {why}")
        self.opcode = opcode


@dataclass(frozen=True)
class Form:
    """One numeric instruction form, known to be valid.

    `operands` and `results` are PTX kinds (`f32`, `s64`, `b16`, `pred`, `carry`). `emit(builder, values)` takes
    lanes of those kinds and returns a tuple of result lanes: f32 and f64 as LLVM floats, predicates and carries as
    i1, everything else (f16 too) as integers of the kind's width. A trailing `carry` operand is CC.CF before, a
    trailing `carry` result CC.CF after. Results narrower than a register are the caller's to extend: zero for u and
    b kinds, sign for s.
    """

    opcode: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    emit: Callable[[Any, Sequence[Any]], tuple[Any, ...]]
    evidence: Evidence = EXACT


def single(opcode: str, operands: tuple[str, ...], result: str, emit: Emit, evidence: Evidence = EXACT) -> Form:
    """A form with one result."""
    return Form(opcode, operands, (result,), lambda b, v: (emit(b, v),), evidence)


class Parts:
    """Reads `op.part.part` left to right; every `take` is one place in the ISA's syntax."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        self.op, *self.rest = opcode.split(".")

    def flag(self, name: str) -> bool:
        """True, and read on, if the next part is `name`."""
        return self.maybe((name,)) is not None

    def maybe(self, names: Sequence[str]) -> str | None:
        """The next part if it is one of `names`."""
        if self.rest and self.rest[0] in names:
            return self.rest.pop(0)
        return None

    def take(self, names: Sequence[str], what: str = "type") -> str:
        """The next part, which must be one of `names`."""
        found = self.maybe(names)
        if found is None:
            given = f"not .{self.rest[0]}" if self.rest else "nothing follows"
            raise UnsupportedError(self.opcode, f"expected a {what} among .{', .'.join(names)}; {given}")
        return found

    def end(self) -> None:
        """Nothing may be left."""
        if self.rest:
            raise UnsupportedError(self.opcode, f".{self.rest[0]} is not allowed here")
