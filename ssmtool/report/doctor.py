"""A machine's examination for people, and as the formats for machines take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ssmtool.doctor.model import Checked, Report, Verdict

if TYPE_CHECKING:
    from ssmtool.findings import Outcome

_STYLES = {
    Verdict.OK: "green",
    Verdict.WARNING: "bold yellow",
    Verdict.PROBLEM: "bold red",
    Verdict.UNKNOWN: "bold yellow",
}
_WIDTH = max(len(verdict.value) for verdict in Verdict)


def print_doctor(report: Report, *, quiet: bool = False, colour: bool = False) -> None:
    """One line a check, with what it does to the user and the command that mends it; then the links, then the verdict.

    `quiet` leaves out what is well. Needs the standard library only, unless `colour` is asked for.
    """
    for check in report.checks:
        if not (quiet and check.verdict is Verdict.OK):
            _print_check(check, colour=colour)
    if not quiet:
        print()
        for link, reason in report.links.items():
            print(f"{'no ' if reason else 'yes'}  {link}{f': {reason}' if reason else ''}")
        print()
    if not quiet or report.exit_code:
        word, style = ("wrong", "bold red") if report.exit_code else ("ok", "bold green")
        _line(word, f": {report.summary}", style if colour else "")


def doctor_outcome(report: Report) -> Outcome:
    """Problems as errors, warnings as warnings, what could not be told as skips."""
    from ssmtool.findings import Finding, Outcome, Severity, Skip

    severities = {Verdict.PROBLEM: Severity.ERROR, Verdict.WARNING: Severity.WARNING}
    outcome = Outcome()
    for check in report.checks:
        result = check.result
        if check.verdict in severities:
            finding = Finding(
                rule=f"doctor/{check.id}",
                severity=severities[check.verdict],
                message=f"{check.title}: {result.found}",
                effect=result.means,
                fix=result.mend,
            )
            outcome.findings.append(finding)
        elif check.verdict is Verdict.UNKNOWN:
            outcome.skips.append(Skip(check.id, result.found, result.mend))
    return outcome


def doctor_extra(report: Report) -> dict[str, Any]:
    """The tables of the markdown form."""
    rows = [[check.title, check.verdict.value, check.result.found] for check in report.checks]
    links = [[link, "no" if reason else "yes", reason or ""] for link, reason in report.links.items()]
    return {
        "tables": [
            {"title": report.summary, "columns": ["link", "checkable here", "why not"], "rows": links},
            {"title": "This machine", "columns": ["check", "verdict", "found"], "rows": rows},
        ]
    }


def _print_check(check: Checked, *, colour: bool) -> None:
    result = check.result
    style = _STYLES[check.verdict] if colour else ""
    _line(check.verdict.value.ljust(_WIDTH), f"  {check.title}: {_one_line(result.found)}  [{check.id}]", style)
    indent = " " * (_WIDTH + 2)
    if result.means:
        print(f"{indent}{_one_line(result.means)}")
    if result.mend:
        print(f"{indent}mend it: {_one_line(result.mend)}")


def _one_line(text: str) -> str:
    """What came from a driver or a program, without line ends and control characters."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def _line(head: str, rest: str, style: str) -> None:
    if not style:
        print(f"{head}{rest}")
        return
    from rich.text import Text

    from ssmtool.report.console import console

    console().print(Text.assemble((head, style), rest), soft_wrap=True)
