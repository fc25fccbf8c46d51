"""The one structure of a run: what JSON prints is what HTML and markdown are made from."""

from __future__ import annotations

import re
from typing import Any

from ssmtool import __version__
from ssmtool.ci.model import WORDS, Run
from ssmtool.findings import Finding, Severity, Verdict
from ssmtool.wording import plural

FORMAT = 1
# Characters of a finding's message in the first line; the whole of it stands below.
_LONG = 160
# A mangled name may be longer than all that: of such a word both ends are kept, and what happened is still said.
_NAME = re.compile(r"[A-Za-z_$][\w$]{47,}")
_END = 20


def document(run: Run, *, command: str) -> dict[str, Any]:
    """The whole report as JSON data; `command` is what ran, without the program's name.

    `format` counts changes that a reader of older reports could not follow.
    """
    outcome = run.outcome
    kernels: dict[str, dict[str, Any]] = {}
    data: dict[str, Any] = {}
    for step in run.steps:
        data |= step.done.data
        for name, facts in step.done.kernels.items():
            kernels.setdefault(name, {}).update(facts)
    return {
        "tool": "ssmtool",
        "version": __version__,
        "command": command,
        "format": FORMAT,
        "partial": run.partial,
        "headline": headline(run),
        **outcome.to_json(),
        "required_skips": len(outcome.required_skips),
        "seconds": round(run.seconds, 3),
        "steps": [step.to_json() for step in run.steps],
        "kernels": [
            {"name": name, **facts, "verdict": _verdict(name, facts, outcome.findings)}
            for name, facts in kernels.items()
        ],
        "provenance": dict(run.provenance),
        **data,
    }


def headline(run: Run) -> str:
    """The first line of a report: the broken link and the command that mends it, or that all is well."""
    verdict = run.outcome.verdict
    first = run.first
    partial = "interrupted: " if run.partial else ""
    if first is None or verdict is Verdict.OK:
        names = [step.name for step in run.steps if step.ran]
        kernels = len({name for step in run.steps for name in step.done.kernels})
        skipped = len(run.outcome.skips)
        words = f"{plural(kernels, 'kernel')}; {', '.join(names)} in {run.seconds:.1f} s"
        return f"{partial}{WORDS[verdict]}: {words}" + (f"; {plural(skipped, 'check')} skipped" if skipped else "")
    step, what = first
    if isinstance(what, Finding):
        place = f"{what.where}: " if what.where else ""
        kernel = f"{what.kernel}: " if what.kernel and what.kernel not in what.message else ""
        told = f"{kernel}{what.message}"
    else:
        place, told = "", f"{what.check}: {what.reason}"
    told = _NAME.sub(lambda name: f"{name[0][:_END]}...{name[0][-_END:]}", " ".join(told.split()))
    if len(told) > _LONG:
        told = f"{told[: _LONG - 3]}..."
    mend = f"; mend it: {' '.join(what.fix.split())}" if what.fix else ""
    return f"{partial}{WORDS[verdict]}: {step.link} ({step.name}): {place}{told}{mend}"


def _verdict(kernel: str, facts: dict[str, Any], findings: list[Finding]) -> str:
    """One word: `wrong` for a kernel that an error names, else as the numbers came out, else `not verified`."""
    for each in findings:
        if each.severity is Severity.ERROR and each.kernel and kernel in each.kernel.split(", "):
            return "wrong"
    ladder = facts.get("ladder")
    if ladder is not None and ladder["has_loader"] and not ladder["loads"]:
        return "wrong"
    verdict: str = facts.get("numbers", "not verified")
    return verdict
