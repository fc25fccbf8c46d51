"""What a probe found on one device, and the file of it to send in."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = "ssmtool-probe/1"
EXAMPLES = 4


@dataclass(frozen=True)
class Example:
    """One input whose results differ: operand bits, the executor's result, the device's, all in hexadecimal."""

    operands: tuple[str, ...]
    executor: str
    device: str


@dataclass
class Form:
    """One form in one trial: how many cases, how many of them differ and in which way, the first of them.

    `label` is the executor's own (`exact`, or the unit it models); `digest` the first half of the SHA-256 of the
    device's results in order, 64 bits each, little-endian.
    """

    name: str
    trial: str
    label: str
    cases: int = 0
    different: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)
    digest: str = ""


@dataclass
class Result:
    """One device.

    Of the forms that the executor refuses, `refused` are those that the device refuses as well, and `unanswered` has a
    digest of the others' results. `failed` are forms that the executor's arithmetic has and the device does not run,
    with its words: they count as different.

    `driver` is its CUDA release, `driver_version` the kernel module's (`470.256.02`).
    `problem` is why the probe ended early, if it did.
    """

    device: str
    model: str
    target: str
    driver: str | None
    driver_version: str | None
    binding: str
    date: str
    quick: bool
    ssmtool: str
    evidence: str
    forms: list[Form] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unanswered: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
    seconds: float = 0.0

    @property
    def different(self) -> list[Form]:
        """Forms with at least one case that differs."""
        return [each for each in self.forms if each.different]

    @property
    def cases(self) -> int:
        """Cases that were compared."""
        return sum(each.cases for each in self.forms)

    def totals(self) -> dict[str, dict[str, int]]:
        """For each trial: forms, cases, forms that differ, cases that differ."""
        found: dict[str, dict[str, int]] = {}
        for each in self.forms:
            row = found.setdefault(each.trial, {"forms": 0, "cases": 0, "forms_different": 0, "different": 0})
            row["forms"] += 1
            row["cases"] += each.cases
            row["forms_different"] += bool(each.different)
            row["different"] += each.different
        return found

    def to_json(self) -> dict[str, Any]:
        """The file's data: counts, a digest for every form, and the details of those that differ."""
        digests: dict[str, dict[str, str]] = {}
        for each in self.forms:
            digests.setdefault(each.trial, {})[each.name] = each.digest
        head = (
            "device",
            "model",
            "target",
            "driver",
            "driver_version",
            "binding",
            "date",
            "quick",
            "ssmtool",
            "evidence",
            "seconds",
        )
        return {
            "format": FORMAT,
            **{key: getattr(self, key) for key in head},
            "problem": self.problem,
            "compared": {"forms": len({each.name for each in self.forms}), "cases": self.cases},
            "trials": self.totals(),
            "different": [asdict(each) for each in self.different],
            "refused_by_the_driver": self.refused,
            "failed": self.failed,
            "not_executed_here": self.unanswered,
            "digests": digests,
        }

    def file(self) -> bytes:
        """`to_json` as the bytes of a file, one line for each form that differs."""
        return (json.dumps(self.to_json(), indent=1) + "\n").encode()
