"""What the steps share, what each gives back, and what a whole run is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ssmtool.findings import Finding, Outcome, Severity, Skip, Verdict

if TYPE_CHECKING:
    from ssmtool.audit.inputs import Input
    from ssmtool.audit.result import AuditResult
    from ssmtool.project import Project
    from ssmtool.toolchain.ptxas_report import Resources
    from ssmtool.verify.engine import Listener

# step -> the link of the chain that it checks; quick ones first, which is also the order of the chain.
LINKS: dict[str, str] = {
    "build": "source -> PTX -> header",
    "registry": "header -> loader",
    "audit-ptx": "PTX -> resources",
    "verify": "launch -> numbers",
}
STEPS = tuple(LINKS)
# Steps that are asked for by an option and stand around the others.
REQUIRE = "require"
BASE = "base"
_TITLES = {REQUIRE: "this machine", BASE: "change since the base", **LINKS}
WORDS = {Verdict.OK: "ok", Verdict.WRONG: "wrong", Verdict.UNCHECKED: "not checked"}


@dataclass(frozen=True)
class Options:
    """What to run. `require` are words of `ssmtool doctor --require`; `base` is a git revision; `graphs` draws them.

    `scheduler` is where the workers of a cluster verify, None for this machine.
    """

    steps: tuple[str, ...] = STEPS
    quick: bool = False
    device: str | None = None
    require: tuple[str, ...] = ()
    base: str | None = None
    graphs: bool = False
    scheduler: str | None = None


@dataclass
class Context:
    """What steps work on, and what earlier ones leave for later ones."""

    project: Project
    options: Options = field(default_factory=Options)
    listener: Listener | None = None
    inputs: list[Input] = field(default_factory=list)
    audit: AuditResult | None = None
    resources: dict[str, Resources] = field(default_factory=dict)
    ptxas: str | None = None
    devices: tuple[str, ...] = ()
    # kernel -> verdict in words, as the verification had it
    numbers: dict[str, str] = field(default_factory=dict)


@dataclass
class Done:
    """What a step found: its outcome, a line about it, and JSON data, `kernels` of it by kernel."""

    outcome: Outcome
    summary: str
    data: dict[str, Any] = field(default_factory=dict)
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)


StepFunction = Callable[[Context], Done]


@dataclass
class Step:
    """One step of a run. `ran` is False for one that was left out or not come to."""

    name: str
    done: Done
    seconds: float = 0.0
    ran: bool = True

    @property
    def link(self) -> str:
        """The link of the chain that it checks."""
        return _TITLES[self.name]

    @property
    def outcome(self) -> Outcome:
        """Its findings and skips."""
        return self.done.outcome

    @property
    def word(self) -> str:
        """`ok`, `wrong`, `not checked`, or `left out`."""
        return WORDS[self.outcome.verdict] if self.ran or self.outcome.required_skips else "left out"

    @property
    def skipped(self) -> int:
        """How many of its checks did not run."""
        return len(self.outcome.skips) + len(self.outcome.required_skips)

    def to_json(self) -> dict[str, Any]:
        """The step as JSON data."""
        return {
            "name": self.name,
            "link": self.link,
            "verdict": self.word,
            "exit_code": int(self.outcome.verdict),
            "seconds": round(self.seconds, 3),
            "findings": len(self.outcome.findings),
            "errors": sum(each.severity is Severity.ERROR for each in self.outcome.findings),
            "skipped": self.skipped,
            "summary": self.done.summary,
        }


@dataclass
class Run:
    """A whole run. `partial` says that it was interrupted: what it did not come to is a required skip."""

    steps: list[Step] = field(default_factory=list)
    partial: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """Everything found, in the order of the chain; what two steps say alike is said once."""
        whole = Outcome()
        for step in self.steps:
            whole.findings += [each for each in step.outcome.findings if each not in whole.findings]
            whole.skips += [each for each in step.outcome.skips if each not in whole.skips]
            whole.required_skips += [each for each in step.outcome.required_skips if each not in whole.required_skips]
        return whole

    @property
    def seconds(self) -> float:
        """Wall time of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def first(self) -> tuple[Step, Finding | Skip] | None:
        """The first broken link in the order of the chain, else the first that could not be checked; None when well."""
        for step in self.steps:
            for finding in step.outcome.findings:
                if finding.severity is Severity.ERROR:
                    return step, finding
        for step in self.steps:
            if step.outcome.required_skips:
                return step, step.outcome.required_skips[0]
        return None
