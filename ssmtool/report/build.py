"""A build for people: the compiler's words, what changed, each kernel's ladder, and the verdict."""

from __future__ import annotations

import sys

from ssmtool.build.difference import KernelChange
from ssmtool.build.pipeline import Build
from ssmtool.build.rebuild import Plan
from ssmtool.project import Project
from ssmtool.report.console import print_outcome
from ssmtool.report.ladder import print_ladder

# Operation counts listed for one changed kernel; the rest is counted.
_OPERATIONS_SHOWN = 6


def print_build(project: Project, build: Build, plan: Plan, *, write: bool, diff: bool, quiet: bool) -> None:
    """Diagnostics to stderr, all else to stdout. `diff` prints the PTX differences too."""
    for module in build.modules:
        if module.diagnostics.strip():
            print(module.diagnostics.rstrip(), file=sys.stderr)
    if not quiet or not write:
        _print_changes(plan, diff=diff)
    if not quiet:
        for report in plan.registry:
            print_ladder(report)
        for module in build.modules:
            if module.held.record.note:
                print(f"note: {module.held.record.note}")
        for path in plan.written:
            print(f"wrote {path}")
        for fix in plan.fixes:
            for edit in fix.edits:
                print(f"  {fix.shown}: {edit}")
    print_outcome(plan.outcome, summary=_summary(project, build, plan, write=write), quiet=quiet)


def _print_changes(plan: Plan, *, diff: bool) -> None:
    """One line for each kernel that differs from the header on disk, with its PTX diff when asked for."""
    for change in plan.changes:
        operations = ", ".join(change.operations[:_OPERATIONS_SHOWN])
        if len(change.operations) > _OPERATIONS_SHOWN:
            operations += f" and {len(change.operations) - _OPERATIONS_SHOWN} more"
        print(
            f"{change.kind}: {_name(change)}: +{change.lines_added} -{change.lines_removed} lines"
            + (f"; instructions: {operations}" if operations else "; same instructions")
        )
        if diff and change.diff:
            print(change.diff)


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
        f"{kernels} kernels, {build.compiler.info.title}, PTX {isa}, {project.settings.target}; {state};"
        f" {build.seconds:.2f} s, {build.compile_seconds:.2f} s of it in the compiler"
    )
