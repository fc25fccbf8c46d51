"""A build for people: the compiler's words, what changed, each kernel's ladder, and the verdict."""

from __future__ import annotations

import re
import sys
from typing import Any

from ssmtool.build.difference import KernelChange
from ssmtool.build.pipeline import Build
from ssmtool.build.rebuild import Plan
from ssmtool.files import read_bytes
from ssmtool.project import Project
from ssmtool.report.console import print_outcome
from ssmtool.report.ladder import ladder_table, print_ladder
from ssmtool.wording import capped, plural

# Operation counts listed for one changed kernel; the rest is counted.
_OPERATIONS_SHOWN = 6
#   %rd12   $L__BB0_4   .reg .b32 %r<40>;
_NUMBER = re.compile(r"(?<=%r)\d+|(?<=%[pf])\d+|(?<=%(?:rd|fd|rs|rh))\d+|(?<=\$L__BB)\d+_\d+|(?<=<)\d+(?=>)")


def print_build(project: Project, build: Build, plan: Plan, *, write: bool, diff: bool, quiet: bool) -> None:
    """Diagnostics to stderr, all else to stdout. `diff` prints the PTX differences too."""
    for module in build.modules:
        if module.diagnostics.strip():
            print("\n".join(capped(module.diagnostics.rstrip().splitlines())), file=sys.stderr)
    if not quiet or not write:
        _print_changes(plan, diff=diff)
    if diff:
        _print_loaders(plan)
    if not quiet:
        for report in plan.registry:
            print_ladder(report)
        for module in build.modules:
            if module.held.record.note:
                print(f"note: {module.held.record.note}")
        for path in plan.written:
            print(f"wrote {path}")
        for fix in plan.fixes if write else ():
            for edit in fix.edits:
                print(f"  {fix.shown}: {edit}")
    print_outcome(plan.outcome, summary=_summary(project, build, plan, write=write), quiet=quiet)


def build_extra(plan: Plan) -> dict[str, Any]:
    """The plan as report formats take it: its JSON, and as tables what changed and each kernel's ladder."""
    rows = [
        [_name(change), change.kind, str(change.lines_added), str(change.lines_removed), ", ".join(change.operations)]
        for change in plan.changes
    ]
    columns = ["kernel", "change", "lines added", "lines removed", "instructions"]
    tables = [{"title": "Changes", "columns": columns, "rows": rows}] if rows else []
    return {"build": plan.to_json(), "tables": [*tables, *map(ladder_table, plan.registry)]}


def _print_changes(plan: Plan, *, diff: bool) -> None:
    """One line for each kernel that differs from the header on disk, with its PTX diff when asked for."""
    for change in plan.changes:
        operations = ", ".join(change.operations[:_OPERATIONS_SHOWN])
        if len(change.operations) > _OPERATIONS_SHOWN:
            operations += f" and {len(change.operations) - _OPERATIONS_SHOWN} more"
        print(
            f"{change.kind}: {_name(change)}: +{change.lines_added} -{change.lines_removed} lines"
            f"{f'; instructions: {operations}' if operations else _same_instructions(change)}"
        )
        if diff and change.diff:
            print(change.diff)


def _same_instructions(change: KernelChange) -> str:
    """How PTX with the same instruction counts differs; nothing for what is only on one side."""
    if change.kind in ("added", "removed"):
        return ""
    if change.kind == "reordered" or not change.diff:
        return "; same instructions"
    if only_renamed(change.diff):
        return "; same instructions, other labels or register numbers"
    return "; same instructions, with other operands or in another order"


def only_renamed(diff: str) -> bool:
    """Whether a unified diff puts in the lines that it takes out, but for the numbers of labels and registers.

    Compared where they stand, so that a line that moved is a difference.
    """
    removed: list[str] = []
    added: list[str] = []
    for line in (*diff.splitlines()[2:], " "):
        if line.startswith("-"):
            removed.append(_NUMBER.sub("#", line[1:]))
        elif line.startswith("+"):
            added.append(_NUMBER.sub("#", line[1:]))
        elif removed != added:
            return False
        else:
            removed, added = [], []
    return True


def _print_loaders(plan: Plan) -> None:
    """What a build would do to the loaders, as a diff, or why it would leave one alone."""
    import difflib

    for fix in plan.fixes:
        for edit in fix.edits if fix.data is not None else ():
            print(f"would change {fix.shown}: {edit}")
        if fix.data is not None:
            old, new = (data.decode("utf-8", "replace").splitlines() for data in (read_bytes(fix.path), fix.data))
            print("\n".join(difflib.unified_diff(old, new, f"now/{fix.shown}", f"then/{fix.shown}", n=2, lineterm="")))
        for reason in fix.refusals:
            print(f"would leave {fix.shown} as it is: {reason}")


def _name(change: KernelChange) -> str:
    """The kernel, or the constant for what lies outside its kernels."""
    return f"{change.constant} {change.kernel}" if change.kernel == "(module)" else change.kernel


def _summary(project: Project, build: Build, plan: Plan, *, write: bool) -> str:
    """The last line."""
    kernels = sum(len(module.held.entry_names) for module in build.modules)
    isa = ", ".join(dict.fromkeys(module.held.record.ptx_isa for module in build.modules))
    header = project.settings.header
    if write:
        state = f"{header} {'written' if header in plan.written else 'unchanged'}"
    else:
        state = f"{header} {'would change' if plan.header_changed else 'would stay as it is'}"
    return (
        f"{plural(kernels, 'kernel')}, {build.compiler.info.title}, PTX {isa}, {project.settings.target}; {state};"
        f" {build.seconds:.2f} s, {build.compile_seconds:.2f} s of it in the compiler"
    )
