"""Text that came from outside, made fit to stand in a report: what every format needs before its own escaping."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ssmtool.findings import Finding, Outcome, Severity, Skip, Verdict
from ssmtool.wording import plural

REPLACEMENT = "\ufffd"
# A name read with surrogateescape holds lone surrogates, which no UTF-8 encoder writes.
_SURROGATES = re.compile("[\ud800-\udfff]")
# What XML 1.0 forbids (https://www.w3.org/TR/xml/#charsets), and two things that lie to the reader of a terminal or a
# web page: C1 controls and DEL (escape sequences), and the marks that change the writing direction.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_WORDS = {Verdict.OK: "ok", Verdict.WRONG: "wrong", Verdict.UNCHECKED: "not checked"}


def encodable(text: str) -> str:
    """The text without lone surrogates; for JSON, which escapes all else."""
    return _SURROGATES.sub(REPLACEMENT, text)


def printable(text: str) -> str:
    """The text without control characters; tabs stay, every line end becomes LF."""
    return _CONTROLS.sub(REPLACEMENT, text.replace("\r\n", "\n").replace("\r", "\n"))


def sentence(parts: Iterable[tuple[str, str | None]]) -> str:
    """Lines `label: text` of the parts that have a text; an empty label is left out."""
    return "\n".join(f"{label}: {text}" if label else text for label, text in parts if text)


def finding_text(finding: Finding) -> str:
    """The message, what it does at run time and what mends it, a line each."""
    return sentence((("", finding.message), ("at run time", finding.effect), ("mend it", finding.fix)))


def skip_text(skip: Skip) -> str:
    """What was not checked, why, and what would make it run."""
    return sentence((("not checked", f"{skip.check}: {skip.reason}"), ("mend it", skip.fix)))


def verdict_word(outcome: Outcome) -> str:
    """`ok`, `wrong` or `not checked`."""
    return _WORDS[outcome.verdict]


def summary(outcome: Outcome) -> str:
    """`1 error, 0 warnings, 2 notes, 1 check skipped`."""
    counts = [
        plural(sum(finding.severity is severity for finding in outcome.findings), severity.value)
        for severity in Severity
    ]
    skipped = len(outcome.skips) + len(outcome.required_skips)
    return ", ".join((*counts, f"{plural(skipped, 'check')} skipped"))
