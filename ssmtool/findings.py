"""What a check found, and the verdict that follows: the one vocabulary of every command and report.

Exit codes: 0 all is well; 1 the product is wrong; 2 it could not be checked. A check that did not run is a `Skip`,
never a pass.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec


class Severity(enum.Enum):
    """`error` makes the product wrong; `warning` and `note` do not change the verdict."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Verdict(enum.IntEnum):
    """The value is the process's exit code."""

    OK = 0
    WRONG = 1
    UNCHECKED = 2


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong or worth knowing.

    `rule` is a stable id such as `registry/missing-name`; `effect` is what it will do to the user at run time; `fix` is
    the exact command or edit that mends it. `line` and `column` are 1-based.
    """

    rule: str
    severity: Severity
    message: str
    kernel: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    effect: str | None = None
    fix: str | None = None

    @property
    def where(self) -> str | None:
        """`path:line:column` as far as it is known, or None."""
        if self.path is None:
            return None
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON data; keys with no value are left out."""
        fields = {
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "kernel": self.kernel,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "effect": self.effect,
            "fix": self.fix,
        }
        return {key: value for key, value in fields.items() if value is not None}


class Skip(msgspec.Struct, frozen=True):
    """A check that did not run, why, and what would make it run."""

    check: str
    reason: str
    fix: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The skip as JSON data."""
        fields = {"check": self.check, "reason": self.reason, "fix": self.fix}
        return {key: value for key, value in fields.items() if value is not None}


class Outcome(msgspec.Struct):
    """What one command found: the findings, the checks that could not run, and the verdict of both.

    `required` skips are those whose absence means the question asked was not answered (verdict 2); the others are
    only counted and shown.
    """

    findings: list[Finding] = []
    skips: list[Skip] = []
    required_skips: list[Skip] = []

    def extend(self, findings: Iterable[Finding]) -> None:
        """Add findings in order."""
        self.findings.extend(findings)

    @property
    def verdict(self) -> Verdict:
        """WRONG if any finding is an error, else UNCHECKED if a required check did not run, else OK."""
        if any(finding.severity is Severity.ERROR for finding in self.findings):
            return Verdict.WRONG
        return Verdict.UNCHECKED if self.required_skips else Verdict.OK

    def to_json(self) -> dict[str, Any]:
        """Verdict, findings and skips as JSON data."""
        verdict = self.verdict
        return {
            "verdict": verdict.name.lower(),
            "exit_code": int(verdict),
            "findings": [finding.to_json() for finding in self.findings],
            "skips": [skip.to_json() for skip in (*self.required_skips, *self.skips)],
        }
