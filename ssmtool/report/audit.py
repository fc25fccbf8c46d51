"""The audit for people: one table at a glance, and the same table for markdown reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ssmtool.audit.compare import KernelChange
from ssmtool.audit.names import cut
from ssmtool.audit.paths import Guarding, PlacedAccess
from ssmtool.audit.result import AuditResult, KernelAudit
from ssmtool.report.table import print_table

# Places of local traffic that are printed for one kernel.
_GROUPS = 8

COLUMNS = (
    "kernel",
    "instr",
    "depot",
    "ld+st.local",
    "on the path",
    "bar",
    "shfl",
    "atom",
    "branch",
    "approx",
    "mul->add",
    "float",
    "address",
)


def row(kernel: KernelAudit) -> tuple[str, ...]:
    """One kernel's cells, in the order of COLUMNS."""
    counts = kernel.counts
    loads, stores = kernel.static_local
    path_loads, path_stores = kernel.path_local
    return (
        kernel.name,
        str(counts.instructions),
        f"{kernel.local_bytes} B",
        f"{loads}+{stores}",
        f"{path_loads}+{path_stores}",
        str(counts.barriers),
        str(counts.shuffles),
        str(counts.atomics),
        str(counts.conditional_branches),
        str(counts.approximate),
        str(counts.contractible),
        str(counts.mix.get("floating point", 0)),
        str(counts.mix.get("address arithmetic", 0)),
    )


def table_json(result: AuditResult) -> dict[str, Any]:
    """The table as report formats take it."""
    return {"title": "Kernels", "columns": list(COLUMNS), "rows": [list(row(kernel)) for kernel in result]}


def sentence(kernel: KernelAudit) -> str:
    """Local memory of one kernel in words: `declared 12 bytes, executed path 0 ld.local + 0 st.local`."""
    loads, stores = kernel.path_local
    text = f"declared {kernel.local_bytes} bytes, executed path {loads} ld.local + {stores} st.local"
    if kernel.path.assumed:
        text += " (" + ", ".join(f"{name} = {value}" for name, value in kernel.path.assumed.items()) + ")"
    return text


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Name -> what the console shows for it: long (mangled) ones lose their middle where no two become alike."""
    short = {name: cut(name) for name in names}
    alike = Counter(short.values())
    return {name: shown if alike[shown] == 1 else name for name, shown in short.items()}


def print_audit(result: AuditResult, short: Mapping[str, str]) -> None:
    """The table, then a sentence for each kernel with local memory or with an assumption."""
    marked = _marked(result)
    rows = [(short[kernel.name], *row(kernel)[1:]) for kernel in result]
    print_table("", COLUMNS, rows, styles=lambda number, _column, _cell: marked[number])
    for kernel in result:
        if kernel.local_bytes or any(kernel.static_local) or kernel.path.assumed:
            print(f"{short[kernel.name]}: {sentence(kernel)}")
            groups = [*_groups(kernel), *_in_callees(kernel)]
            for words in groups[:_GROUPS]:
                print(f"  {words}")
            if len(groups) > _GROUPS:
                print(f"  ... and {len(groups) - _GROUPS} more places; --format json has all")


def _groups(kernel: KernelAudit) -> list[str]:
    """Executed local accesses in words, those of one source place behind one branch together."""
    groups: dict[tuple[str | None, Guarding | None], list[PlacedAccess]] = {}
    for access in kernel.path.accesses:
        if access.executed:
            groups.setdefault((access.source, access.guarding), []).append(access)
    return [_group(source, guarding, accesses) for (source, guarding), accesses in groups.items()]


def _in_callees(kernel: KernelAudit) -> list[str]:
    return [
        f"{function.local_loads} ld + {function.local_stores} st in {function.name}, which it may call"
        for function in kernel.called
        if function.executed and function.touches_local
    ]


def _group(source: str | None, guarding: Guarding | None, accesses: Sequence[PlacedAccess]) -> str:
    loads = sum(access.kind == "load" for access in accesses)
    lines = sorted(access.line for access in accesses)
    place = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]}-{lines[-1]}"
    words = f"{loads} ld + {len(accesses) - loads} st at PTX {place}"
    if any(access.generic for access in accesses):
        words += " (through generic addresses)"
    if source:
        words += f", {source}"
    if guarding:
        words += f", when {guarding.condition} (branch at PTX line {guarding.line})"
    return words


def _marked(result: AuditResult) -> list[str]:
    styles = []
    for kernel in result:
        declared = kernel.local_bytes or any(kernel.static_local)
        styles.append("bold red" if any(kernel.path_local) else "yellow" if declared else "")
    return styles


def comparison_table(changes: Sequence[KernelChange]) -> dict[str, Any]:
    """Before and after as report formats take it; unchanged kernels in one row each, with no numbers."""
    return {
        "title": "Before and after",
        "columns": ["kernel", "instructions", "depot", "local on the path", "change", "why"],
        "rows": [_change_row(change) for change in changes],
    }


def _change_row(change: KernelChange) -> list[str]:
    before, after = change.before, change.after

    def both(number: Callable[[KernelAudit], int]) -> str:
        old = "-" if before is None else str(number(before))
        new = "-" if after is None else str(number(after))
        return new if old == new else f"{old} -> {new}"

    verdict = "new" if before is None else "gone" if after is None else "changed" if change.changed else "same"
    return [
        change.kernel,
        both(lambda kernel: kernel.counts.instructions),
        both(lambda kernel: kernel.local_bytes),
        both(lambda kernel: sum(kernel.path_local)),
        verdict,
        "; ".join(change.reasons) if change.before and change.after else "",
    ]
