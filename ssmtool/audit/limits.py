"""The project's limits on an audit: budgets from the settings, and the committed baseline."""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.audit.baseline import UPDATE, check_baseline, make_baseline, read_baseline, write_baseline
from ssmtool.audit.budgets import check_budgets, needs_ptxas
from ssmtool.audit.inputs import Input
from ssmtool.audit.result import AuditResult
from ssmtool.findings import Finding, Severity, Skip
from ssmtool.project import Project
from ssmtool.toolchain.model import ToolchainError
from ssmtool.toolchain.ptxas_report import Resources


def check_limits(
    project: Project, inputs: Sequence[Input], result: AuditResult, *, whole: bool, update_baseline: bool
) -> None:
    """Add what budgets and baseline say to the result's outcome.

    `whole` says that the project's own header was audited: only then do the baseline and "no such kernel" apply.
    `update_baseline` writes the baseline instead of comparing with it; a budget is not lifted by that.
    """
    settings = project.settings
    outcome = result.outcome
    path = project.path(settings.baseline)
    baseline = read_baseline(path, settings.baseline) if whole and not update_baseline else None
    resources: dict[tuple[str, str], Resources] = {}
    ptxas: str | None = None
    # Numbers of ptxas are ratcheted where the baseline has them, and where there is no ptxas that is skipped aloud.
    if needs_ptxas(settings.budget) or update_baseline or (baseline is not None and baseline.ptxas is not None):
        resources, ptxas, skips = _measure(inputs)
        outcome.skips += skips
    file = project.show(project.settings_file) if project.settings_file else None
    budgets = check_budgets(settings.budget, result, resources, whole=whole, settings_file=file)
    outcome.extend(budgets.findings)
    outcome.required_skips += budgets.required_skips
    if update_baseline:
        changed = write_baseline(path, make_baseline(result, resources, ptxas))
        words = "written" if changed else "unchanged"
        outcome.findings.append(
            Finding("audit/baseline-written", Severity.NOTE, f"baseline {words}", path=settings.baseline)
        )
    elif baseline is not None:
        compared = check_baseline(baseline, result, resources, ptxas, settings.baseline)
        outcome.extend(compared.findings)
        outcome.skips += compared.skips
    elif whole:
        outcome.skips.append(Skip("baseline", f"there is no {settings.baseline} yet", UPDATE))


def _measure(inputs: Sequence[Input]) -> tuple[dict[tuple[str, str], Resources], str | None, list[Skip]]:
    """Ptxas's report by (input, kernel), and the release it is of."""
    from ssmtool.audit.resources import measure

    found: dict[tuple[str, str], Resources] = {}
    title: str | None = None
    skips: list[Skip] = []
    for each in inputs:
        try:
            report = measure(each.module.text, each.module.target, name=each.name)
        except ToolchainError as error:
            error.path = each.path  # the message says which ptxas; which of many texts it was is what has to be found
            raise
        if isinstance(report, Skip):
            if report not in skips:
                skips.append(report)
            continue
        title = f"ptxas {report.ptxas.version}"
        for item in report.entries:
            found.setdefault((each.name, item.name), item)
    return found, title, skips
