"""The ratchet: each kernel's numbers when last accepted. Worse fails, better asks to be written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ssmtool.audit.budgets import FROM_PTXAS, WORDS, measured
from ssmtool.audit.names import listed
from ssmtool.audit.result import AuditResult, KernelAudit
from ssmtool.errors import ProductError
from ssmtool.files import read_bytes, write_atomic
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.toolchain.ptxas_report import Resources
from ssmtool.wording import plural

FORMAT = 1
UPDATE = "ssmtool audit-ptx --update-baseline"
# The ratchet is on the numbers of budgets. Barriers, instructions and the like are shown by --compare only: they trade
# against each other.


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The committed file. `ptxas` is the release whose numbers are in it, if any; `assume` what was assumed."""

    format: int
    kernels: dict[str, dict[str, int]]
    assume: dict[str, dict[str, int]] = {}
    ptxas: str | None = None


def make_baseline(result: AuditResult, resources: Mapping[tuple[str, str], Resources], ptxas: str | None) -> Baseline:
    """Today's numbers."""
    return Baseline(
        FORMAT,
        {kernel.name: measured(kernel, resources.get((kernel.input, kernel.name))) for kernel in result},
        {kernel.name: dict(kernel.path.assumed) for kernel in result if kernel.path.assumed},
        ptxas if resources else None,
    )


def write_baseline(path: Path, baseline: Baseline) -> bool:
    """Write the file, whole; True if it changed."""
    data = msgspec.json.encode(baseline, order="sorted")
    return write_atomic(path, msgspec.json.format(data, indent=2) + b"\n")


def read_baseline(path: Path, shown: str) -> Baseline | None:
    """The file; None when there is none yet. Raises ProductError when it is damaged or of another format."""
    if not path.exists() and not path.is_symlink():
        return None
    try:
        baseline = msgspec.json.decode(read_bytes(path), type=Baseline)
    except msgspec.MsgspecError as error:
        raise ProductError(f"is no baseline ({error})", path=shown, hint=UPDATE) from None
    if baseline.format != FORMAT:
        raise ProductError(f"has format {baseline.format}; this ssmtool reads {FORMAT}", path=shown, hint=UPDATE)
    unknown = {name for numbers in baseline.kernels.values() for name in numbers} - WORDS.keys()
    if unknown:
        raise ProductError(f"is no baseline (no number is called {min(unknown)})", path=shown, hint=UPDATE)
    return baseline


def check_baseline(
    baseline: Baseline,
    result: AuditResult,
    resources: Mapping[tuple[str, str], Resources],
    ptxas: str | None,
    shown: str,
) -> Outcome:
    """Today's numbers against the accepted ones.

    Numbers of another ptxas release, or under other assumptions, are not comparable: those are skipped, loudly.
    """
    outcome = Outcome()
    comparable_ptxas = baseline.ptxas == ptxas
    if baseline.ptxas is not None and resources and not comparable_ptxas:
        outcome.skips.append(
            Skip("ptxas numbers of the baseline", f"made by {baseline.ptxas}, here is {ptxas}", UPDATE)
        )
    for kernel in result:
        old = baseline.kernels.get(kernel.name)
        if old is None:
            continue
        now = measured(kernel, resources.get((kernel.input, kernel.name)) if comparable_ptxas else None)
        if baseline.assume.get(kernel.name, {}) != dict(kernel.path.assumed):
            outcome.skips.append(
                Skip(
                    f"{kernel.name}: executed_local of the baseline",
                    f"accepted with {_words(baseline.assume.get(kernel.name, {}))}, now {_words(kernel.path.assumed)}",
                    UPDATE,
                )
            )
            now.pop("executed_local")
        _compare(outcome, kernel, old, now, shown)
    there = dict.fromkeys(kernel.name for kernel in result)
    new = [name for name in there if name not in baseline.kernels]
    gone = [name for name in baseline.kernels if name not in there]
    outcome.extend(_names_differ("new", new, "in the PTX and not in the baseline yet", shown))
    outcome.extend(_names_differ("gone", gone, "in the baseline and no longer in the PTX", shown))
    return outcome


def _names_differ(rule: str, names: Sequence[str], words: str, shown: str) -> list[Finding]:
    """One note on all kernels that only one side has: there may be thousands."""
    if not names:
        return []
    message = f"{plural(len(names), 'kernel')} {words}: {listed(names)}"
    kernel = names[0] if len(names) == 1 else None
    return [Finding(f"audit/baseline-{rule}", Severity.NOTE, message, kernel=kernel, path=shown, fix=UPDATE)]


def _words(assumed: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in assumed.items()) or "nothing assumed"


def _compare(outcome: Outcome, kernel: KernelAudit, old: Mapping[str, int], new: Mapping[str, int], shown: str) -> None:
    missing = [name for name in new if name not in old]
    # Before there was a ptxas, its numbers were not accepted: that is told once, by the baseline's own `ptxas`.
    if missing and not set(missing) <= set(FROM_PTXAS):
        words = f"the baseline has no {', '.join(missing)}: not compared"
        outcome.findings.append(_finding(kernel, "new", Severity.NOTE, words, shown))
    for name in WORDS:
        if name not in old or name not in new or old[name] == new[name]:
            continue
        change = f"{WORDS[name]}: {old[name]} -> {new[name]}"
        if new[name] > old[name]:
            outcome.findings.append(
                _finding(kernel, "worse", Severity.ERROR, f"worse than the baseline: {change}", shown)
            )
        else:
            outcome.findings.append(
                _finding(kernel, "better", Severity.NOTE, f"better than the baseline: {change}", shown)
            )


def _finding(kernel: KernelAudit, rule: str, severity: Severity, message: str, shown: str) -> Finding:
    worse = rule == "worse"
    return Finding(
        rule=f"audit/baseline-{rule}",
        severity=severity,
        message=message,
        kernel=kernel.name,
        path=kernel.file if worse else shown,
        line=kernel.shown_line if worse else None,
        effect="the kernel costs more than the version that was accepted" if worse else None,
        fix=kernel.explain if worse else UPDATE,
    )
