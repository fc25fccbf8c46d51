"""A run of `ssmtool ci` for people: the verdict with the first broken link, the steps, then everything found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssmtool.ci.model import Run, Step
from ssmtool.findings import Verdict
from ssmtool.report.console import print_outcome
from ssmtool.report.table import print_table
from ssmtool.wording import folded, plural

COLUMNS = ("step", "link", "verdict", "findings", "skipped", "seconds", "what")
_STYLES = {
    "ok": "green",
    "wrong": "bold red",
    "not checked": "bold yellow",
    "left out": "yellow",
}


def step_line(step: Step) -> str:
    """A line of progress for a step that ended."""
    return f"{step.name}: {step.word} ({step.seconds:.1f} s): {step.done.summary}"


def step_rows(document: dict[str, Any]) -> list[list[str]]:
    """A row for each step, in the order of COLUMNS."""
    return [
        [
            step["name"],
            step["link"],
            step["verdict"],
            str(step["findings"]),
            str(step["skipped"]),
            f"{step['seconds']:.1f}",
            " ".join(step["summary"].split()),
        ]
        for step in document["steps"]
    ]


def worst_nmse(vectors: Sequence[Mapping[str, Any]]) -> float | str | None:
    """The largest NMSE of the vectors whose numbers were compared; None where a fault kept them all from it.

    Words among them are NaN and infinities: nothing is worse.
    """
    errors = [each["nmse"] for each in vectors if each["policies"]]
    return next((each for each in errors if isinstance(each, str)), None) or max(errors, default=None)


def print_ci(run: Run, document: dict[str, Any], *, quiet: bool = False) -> None:
    """The first line is the whole story; `quiet` leaves the table out, and everything when all is well."""
    verdict = run.outcome.verdict
    if not (quiet and verdict is Verdict.OK):
        # Never folded: who reads one line has the command that mends it.
        print(document["headline"])
    if not quiet:
        print()
        print_table(
            "",
            COLUMNS,
            step_rows(document),
            styles=lambda _row, _column, cell: _STYLES.get(cell, ""),
        )
        if "base" in document:
            base = document["base"]
            print(folded(f"since {base['revision']} ({base['commit'][:12]}): {base['line']}"))
            print()
    outcome = run.outcome
    skipped = len(outcome.skips) + len(outcome.required_skips)
    ran = [step for step in run.steps if step.ran]
    words = f"{plural(len(ran), 'step')} in {run.seconds:.1f} s, {plural(skipped, 'check')} skipped"
    if run.partial:
        words = f"interrupted, this report is partial; {words}"
    print_outcome(outcome, summary=words, quiet=quiet)
