"""A round that failed: what is wrong, with which launch, and how to run it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ssmtool.golden import ArrayResult, GoldenCase, Run


@dataclass(frozen=True)
class Kind:
    """What fails. Two failures of the same kind are taken for one, and shrinking never leaves the kind.

    `what` is `value` (beyond the tolerances of verify), `bits` (within them, but not the contract's operations),
    `nonfinite`, `unwritten`, `overwritten`, `relation`, or the rule of a fault such as `out-of-bounds`. `where` is the
    buffer, or the PTX's line of a fault.
    """

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} {self.where}".rstrip()


@dataclass
class Failure:
    """One failing round. `message` says what is wrong in a sentence or a few, `shape` what was launched.

    `case` has the buffers before, without expectations; `after` what the run left (nothing after a fault). `want` is
    the nearest that is right, `low` and `high` bound all that is right, by buffer. `arrays` are both sides of a
    relation. `choices` are those of the round as numbers, `values` what they stand for. `shown` is whether a vector can
    show it to verify, once that is known.
    """

    target: str
    kind: Kind
    kernels: tuple[str, ...]
    shape: str
    message: str
    case: GoldenCase | None = None
    run: Run | None = None
    after: dict[str, NDArray[Any]] = field(default_factory=dict)
    want: dict[str, NDArray[Any]] = field(default_factory=dict)
    low: dict[str, NDArray[Any]] = field(default_factory=dict)
    high: dict[str, NDArray[Any]] = field(default_factory=dict)
    results: list[ArrayResult] = field(default_factory=list)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    looks_like: list[str] = field(default_factory=list)
    choices: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    shown: bool | None = None
