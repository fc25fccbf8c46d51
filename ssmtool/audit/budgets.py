"""Limits per kernel from the settings: over one of them is an error, whatever the baseline says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from ssmtool.audit.result import AuditResult, KernelAudit
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.project import BudgetSettings
from ssmtool.toolchain.ptxas_report import Resources

# Limit in the settings -> what it counts, in words.
WORDS = {
    "local_bytes": "bytes of .local declared",
    "local_instructions": "local loads and stores in the text",
    "executed_local": "local loads and stores on the executed path",
    "registers": "registers a thread (ptxas)",
    "frame_bytes": "bytes of stack frame (ptxas)",
    "spill_bytes": "bytes of spill stores and loads (ptxas)",
    "shared_bytes": "bytes of static shared memory (ptxas)",
    "contractible": "products that ptxas may fuse into an add",
}
FROM_PTXAS = ("registers", "frame_bytes", "spill_bytes", "shared_bytes")
_EFFECTS = {
    "local_bytes": "an array in local memory goes through L1 to device memory at every access",
    "local_instructions": "each access goes through L1 to device memory unless ptxas promotes it to registers",
    "executed_local": "each access goes through L1 to device memory unless ptxas promotes it to registers",
    "registers": "fewer blocks fit on a multiprocessor",
    "frame_bytes": "a stack frame is local memory, even with 0 bytes of spills",
    "spill_bytes": "spilled registers go through L1 to device memory",
    "shared_bytes": "fewer blocks fit on a multiprocessor",
    "contractible": "a fused product rounds once instead of twice: the output's bits depend on the ptxas release",
}


def measured(kernel: KernelAudit, resources: Resources | None = None) -> dict[str, int]:
    """The kernel's numbers by the names of the limits; those of ptxas only with its report."""
    numbers = {
        "local_bytes": kernel.local_bytes,
        "local_instructions": sum(kernel.static_local),
        "executed_local": sum(kernel.path_local),
        "contractible": kernel.counts.contractible,
    }
    if resources is not None:
        numbers |= {
            "registers": resources.registers,
            "frame_bytes": resources.stack_bytes + sum(each.stack_bytes for each in resources.functions),
            "spill_bytes": resources.spill_store_bytes + resources.spill_load_bytes,
            "shared_bytes": resources.shared_bytes,
        }
    return numbers


def needs_ptxas(budgets: Iterable[BudgetSettings]) -> bool:
    """Whether any limit is on a number that only ptxas gives."""
    return any(getattr(budget, name) is not None for budget in budgets for name in FROM_PTXAS)


def check_budgets(
    budgets: Sequence[BudgetSettings],
    result: AuditResult,
    resources: Mapping[tuple[str, str], Resources],
    *,
    whole: bool,
    settings_file: str | None = None,
) -> Outcome:
    """Every limit against every kernel its pattern fits.

    `resources` is ptxas's report by (input, kernel), empty when there is none: its limits are then required skips.
    `whole` says that all of the project's kernels are there, so that a limit which fits none of them is a skip too: it
    checks nothing.
    """
    outcome = Outcome()
    unmeasured: set[str] = set()
    for budget in budgets:
        kernels = [kernel for kernel in result if fnmatchcase(kernel.name, budget.kernel)]
        if not kernels and whole:
            outcome.required_skips.append(
                Skip(f'budget of "{budget.kernel}"', "no kernel has such a name", f"mend it in {settings_file}")
            )
        for kernel in kernels:
            numbers = measured(kernel, resources.get((kernel.input, kernel.name)))
            for name, words in WORDS.items():
                limit = getattr(budget, name)
                if limit is None:
                    continue
                if name not in numbers:
                    unmeasured.add(name)
                elif numbers[name] > limit:
                    outcome.findings.append(_over(kernel, name, words, numbers[name], limit))
    if unmeasured:
        names = ", ".join(name for name in WORDS if name in unmeasured)
        outcome.required_skips.append(
            Skip(f"budgets on {names}", "there is no ptxas for this target", "pip install 'ssmtool[compiler]'")
        )
    return outcome


def _over(kernel: KernelAudit, name: str, words: str, number: int, limit: int) -> Finding:
    return Finding(
        rule=f"audit/over-budget-{name.replace('_', '-')}",
        severity=Severity.ERROR,
        message=f"{number} {words}, the budget is {limit}",
        kernel=kernel.name,
        path=kernel.file,
        line=kernel.shown_line,
        effect=_EFFECTS[name],
        fix=kernel.explain,
    )
