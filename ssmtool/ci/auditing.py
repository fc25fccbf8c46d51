"""`ssmtool audit-ptx` as a step: local memory by path, three tiers of resources, budgets, baseline, graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ssmtool.ci.model import Context, Done
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.audit.assumptions import Assumption
    from ssmtool.audit.inputs import Input
    from ssmtool.audit.launches import Launch
    from ssmtool.audit.resources import Tiers
    from ssmtool.audit.result import KernelAudit
    from ssmtool.project import Project


def audit_step(context: Context) -> Done:
    """The audit with resources, against budgets and baseline. Raises what the audit raises."""
    from ssmtool.audit.inputs import read_input
    from ssmtool.audit.kernels import analysis_of, audit
    from ssmtool.audit.limits import check_limits
    from ssmtool.audit.resources import three_tiers
    from ssmtool.report.audit import sentence
    from ssmtool.toolchain.ptxas import PtxasReport

    project = context.project
    assumptions = assumptions_of(project)
    context.inputs = texts = read_input(str(project.header_path), project.show)
    context.audit = result = audit(texts, assumptions)
    outcome = result.outcome
    check_limits(project, texts, result, whole=True, update_baseline=False)
    kernels: dict[str, dict[str, Any]] = {}
    optional = [replace(each, optional=True) for each in assumptions]
    for text in texts:
        tiers = three_tiers(text.module.text, text.module.target, name=text.name, module=text.module)
        outcome.skips += [skip for skip in tiers.skips if skip not in outcome.skips]
        if isinstance(tiers.estimate, PtxasReport):
            context.ptxas = f"ptxas {tiers.estimate.ptxas.version}"
        for tier in tiers.kernels:
            kernels[tier.kernel] = {"resources": _resources(tiers, tier.kernel)}
            if tier.estimate is not None:
                context.resources[tier.kernel] = tier.estimate
        for name, row in _occupancy(project, text, tiers).items():
            kernels[name]["occupancy"] = row
        if context.options.graphs:
            from ssmtool.report.graph import render_graph

            for function in text.module.entries:
                kernels[function.name]["graph"] = render_graph(analysis_of(text, function, optional))
    limits = _limits(context)
    for kernel in result:
        kernels.setdefault(kernel.name, {}).update(
            audit=kernel.to_json(), local=sentence(kernel), limits=limits[kernel.name]
        )
    local = sum(any(kernel.path_local) for kernel in result)
    depots = sum(bool(kernel.local_bytes) for kernel in result)
    words = f"{plural(len(result.kernels), 'kernel')}; {depots} declare local memory, {local} may execute local traffic"
    return Done(outcome, words, {"ptxas": context.ptxas}, kernels)


def assumptions_of(project: Project) -> list[Assumption]:
    """Those of the settings."""
    from ssmtool.audit.assumptions import make_assumption

    return [make_assumption(*pair) for pair in project.settings.assume.items()]


def _resources(tiers: Tiers, kernel: str) -> dict[str, Any]:
    tier = next(each for each in tiers.kernels if each.kernel == kernel)
    found: dict[str, Any] = {"remark": tier.remark, "ptxas": None, "driver": None}
    if tier.estimate is not None:
        item = tier.estimate
        found["ptxas"] = {
            "registers": item.registers,
            "frame_bytes": item.stack_bytes + sum(each.stack_bytes for each in item.functions),
            "spill_store_bytes": item.spill_store_bytes,
            "spill_load_bytes": item.spill_load_bytes,
            "shared_bytes": item.shared_bytes,
            "constant_bytes": sum(item.constant_banks.values()),
        }
    if tier.truth is not None:
        found["driver"] = {
            "local_bytes": tier.truth.local_bytes,
            "registers": tier.truth.registers,
        }
    return found


def _occupancy(project: Project, text: Input, tiers: Tiers) -> Mapping[str, dict[str, Any]]:
    """By kernel, where ptxas counted its registers and its launch is known."""
    from ssmtool.audit.launches import launches_of, settings_launches
    from ssmtool.audit.occupancy import occupancy_rows

    known: list[Launch] = settings_launches(project.settings.launch, optional=True)
    shapes = launches_of(text.module.entries, known)
    rows = occupancy_rows((tier.estimate for tier in tiers.kernels if tier.estimate), shapes.values())
    return {
        row.launch.kernel: {
            "grid": list(row.launch.grid), "block": list(row.launch.block), "warps": row.occupancy.warps,
            "fraction": round(row.occupancy.fraction, 4), "limiter": row.occupancy.limiter,
        }
        for row in rows
    }  # fmt: skip


def _limits(context: Context) -> dict[str, list[dict[str, Any]]]:
    """Every number of the budgets by kernel: today's, the tightest budget, the baseline's, and the change since."""
    from ssmtool.audit.baseline import read_baseline
    from ssmtool.audit.budgets import FROM_PTXAS, WORDS, measured

    project = context.project
    baseline = read_baseline(project.path(project.settings.baseline), project.settings.baseline)

    def rows(kernel: KernelAudit) -> list[dict[str, Any]]:
        now = measured(kernel, context.resources.get(kernel.name))
        old = baseline.kernels.get(kernel.name, {}) if baseline else {}
        found = []
        for name, value in now.items():
            comparable = name not in FROM_PTXAS or (baseline is not None and baseline.ptxas == context.ptxas)
            before = old.get(name) if comparable else None
            budgets = [
                limit
                for each in project.settings.budget
                if fnmatchcase(kernel.name, each.kernel) and (limit := getattr(each, name)) is not None
            ]
            budget = min(budgets, default=None)
            change = None if before is None else value - before
            over = budget is not None and value > budget
            verdict = "over budget" if over else "worse" if (change or 0) > 0 else "better" if change else "ok"
            found.append(
                {"number": name, "what": WORDS[name], "value": value, "budget": budget, "baseline": before,
                 "change": change, "verdict": verdict}
            )  # fmt: skip
        return found

    return {kernel.name: rows(kernel) for kernel in context.audit or ()}
