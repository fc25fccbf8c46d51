"""Findings, skips and verdict for people: findings to stdout, each with what it does and the command that mends it."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import TYPE_CHECKING

from ssmtool.findings import Finding, Outcome, Severity, Skip, Verdict
from ssmtool.wording import folded

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_VERDICTS = {
    Verdict.OK: ("bold green", "ok"),
    Verdict.WRONG: ("bold red", "wrong"),
    Verdict.UNCHECKED: ("bold yellow", "not checked"),
}


@functools.lru_cache(maxsize=2)
def console(*, stderr: bool = False) -> Console:
    """The rich console of stdout or stderr.

    rich honours NO_COLOR and FORCE_COLOR itself. Off a terminal the width is fixed, so that a log of CI or a pipe does
    not depend on the machine that made it, and nothing is cut.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if (stream is not None and stream.isatty()) or "COLUMNS" in os.environ else 140
    return Console(stderr=stderr, width=width, highlight=False)


def print_outcome(outcome: Outcome, *, summary: str, quiet: bool = False) -> None:
    """Findings first, then skips, then one line with the verdict and `summary`.

    A skip that decides the verdict is `not checked`, the others are `skipped`.
    `quiet` leaves out the last line when all is well; skips are shown even then, since a check that did not run must
    never look like one that passed.
    """
    for finding in outcome.findings:
        _print_finding(finding)
    for skip in outcome.required_skips:
        _print_skip(skip, _VERDICTS[Verdict.UNCHECKED][1])
    for skip in outcome.skips:
        _print_skip(skip, "skipped")
    verdict = outcome.verdict
    if quiet and verdict is Verdict.OK:
        return
    style, word = _VERDICTS[verdict]
    _print_parts((word, style), (f": {summary}", ""))


def _print_finding(finding: Finding) -> None:
    place = f"{finding.where}: " if finding.where else ""
    kernel = finding.kernel or ""
    if kernel and not re.search(rf"(?<![\w$]){re.escape(kernel)}(?![\w$])", finding.message):
        place += f"{kernel}: "
    _print_parts(
        (finding.severity.value, _STYLES[finding.severity]),
        (f": {place}{finding.message} [{finding.rule}]", ""),
    )
    if finding.effect:
        _print_parts(("  at run time: ", "dim"), (finding.effect, ""))
    if finding.fix:
        _print_parts(("  mend it: ", "dim"), (finding.fix, "bold"))


def _print_skip(skip: Skip, word: str) -> None:
    _print_parts((word, "bold yellow"), (f": {skip.check}: {skip.reason}", ""))
    if skip.fix:
        _print_parts(("  mend it: ", "dim"), (skip.fix, "bold"))


def _print_parts(*parts: tuple[str, str]) -> None:
    """Print a styled word and text after it; the text is never read as markup, and very long text is folded.

    Plain `print` off a terminal: it saves the import of rich (about 50 ms) on the path that CI and hooks run most.
    """
    if sys.stdout is None:
        return  # closed by the caller; the exit code still tells
    head = len(parts[0][0])
    parts = (parts[0], (folded("".join(text for text, _ in parts))[head:], parts[1][1]))
    if not sys.stdout.isatty() and "FORCE_COLOR" not in os.environ:
        print("".join(text for text, _ in parts))
        return
    from rich.text import Text

    console().print(Text.assemble(*parts), soft_wrap=True)
