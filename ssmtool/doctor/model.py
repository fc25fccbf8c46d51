"""What a check says, and what all of them say together."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any


class Verdict(enum.Enum):
    """`PROBLEM` alone decides the exit code: something that the project needs here is broken."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "could not tell"


@dataclass(frozen=True)
class Result:
    """One check. `found` is what there is, `means` what it will do to the user, `mend` the command that mends it."""

    verdict: Verdict
    found: str
    means: str | None = None
    mend: str | None = None


@dataclass(frozen=True)
class Checked:
    """A result under the id of its check, as in `build/host-compiler`."""

    id: str
    title: str
    result: Result

    @property
    def verdict(self) -> Verdict:
        """That of the result."""
        return self.result.verdict

    def to_json(self) -> dict[str, Any]:
        """The check as JSON data; keys with no value are left out."""
        fields = {
            "id": self.id,
            "title": self.title,
            "verdict": self.verdict.value,
            "found": self.result.found,
            "means": self.result.means,
            "mend": self.result.mend,
        }
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True)
class Report:
    """All checks in their order; `links` says of each link of the chain why it cannot be checked here, or None."""

    checks: tuple[Checked, ...]
    links: dict[str, str | None]
    machine: dict[str, Any] = field(default_factory=dict)

    @property
    def problems(self) -> list[Checked]:
        """The checks that make the exit code 1."""
        return [check for check in self.checks if check.verdict is Verdict.PROBLEM]

    @property
    def exit_code(self) -> int:
        """0, or 1 when something that the project needs here is broken."""
        return 1 if self.problems else 0

    @property
    def summary(self) -> str:
        """One line: the first problem, or which links can be checked here."""
        if self.problems:
            first = self.problems[0]
            more = len(self.problems) - 1
            count = f" (and {more} more problem{'' if more == 1 else 's'})" if more else ""
            return f"{first.id}: {first.result.found}{count}"
        missing = [link for link, reason in self.links.items() if reason is not None and link != CARD]
        target = self.machine.get("target", "sm_37")
        cards = self.machine.get("target_cards", 0)
        if missing:
            return f"nothing is broken; not checkable here: {'; '.join(missing)}"
        if cards:
            return f"all links can be checked here, on {cards} {target} device{'' if cards == 1 else 's'} too"
        card = "K80" if target == "sm_37" else f"{target} card"
        return f"all links but the card's can be checked here; its numbers want a {card}"

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data, with the verdict's words that the other commands use."""
        return {
            "verdict": "wrong" if self.exit_code else "ok",
            "exit_code": self.exit_code,
            "summary": self.summary,
            "links": [
                {"link": link, "here": reason is None, **({"why_not": reason} if reason else {})}
                for link, reason in self.links.items()
            ],
            "checks": [check.to_json() for check in self.checks],
            "machine": self.machine,
        }


CARD = "numbers on the card"


def ok(found: str, means: str | None = None) -> Result:
    """As it should be; `means` is worth knowing all the same."""
    return Result(Verdict.OK, found, means)


def warning(found: str, means: str | None = None, mend: str | None = None) -> Result:
    """Not as it should be, and nothing that is needed breaks by it."""
    return Result(Verdict.WARNING, found, means, mend)


def problem(found: str, means: str | None = None, mend: str | None = None) -> Result:
    """Something that the project needs here is broken."""
    return Result(Verdict.PROBLEM, found, means, mend)


def unknown(found: str, means: str | None = None, mend: str | None = None) -> Result:
    """The question could not be asked, or the answer not be understood."""
    return Result(Verdict.UNKNOWN, found, means, mend)
