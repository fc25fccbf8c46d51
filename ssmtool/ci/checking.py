"""The two steps that only read files: the header against the source, and the loader against the header."""

from __future__ import annotations

from typing import Any

from ssmtool.ci.model import Context, Done
from ssmtool.wording import plural


def build_step(context: Context) -> Done:
    """`ssmtool build --check` without the registry, which is a step of its own."""
    from ssmtool.build.freshness import State, check_freshness

    project = context.project
    freshness = check_freshness(project)
    states = [each.state for each in freshness.modules]
    words = freshness.told
    count = plural(
        sum(len(each.held.entry_names) for each in freshness.modules if each.held),
        "kernel",
    )
    colon = " is" if all(state is State.FRESH for state in states) else ":"
    modules = []
    kernels: dict[str, dict[str, Any]] = {}
    for each in freshness.modules:
        row: dict[str, Any] = {
            "source": each.settings.source, "constant": each.settings.constant_name, "state": each.state.value,
        }  # fmt: skip
        if each.held is not None:
            record = each.held.record
            row |= {
                "compiler": f"{record.compiler.kind} {record.compiler.version}",
                "ptx_isa": record.ptx_isa,
                "target": record.target,
                "flags": list(record.flags),
                "source_sha256": record.source_sha256,
                "ptx_sha256": record.ptx_sha256,
            }
            for entry in record.entries:
                kernels[entry.name] = {
                    "module": record.constant, "parameters": entry.parameters, "digest": entry.digest,
                }  # fmt: skip
        modules.append(row)
    summary = f"{project.settings.header}{colon} {words}; {count}"
    return Done(freshness.outcome, summary, {"modules": modules}, kernels)


def registry_step(context: Context) -> Done:
    """`ssmtool registry`: the ladder of every kernel, and what the loader would do."""
    from ssmtool.registry.project import check_project
    from ssmtool.report.ladder import simulation_lines

    reports, outcome = check_project(context.project)
    kernels: dict[str, dict[str, Any]] = {}
    loaders = []
    for report in reports:
        loader = report.input.loader
        for row in report.rows:
            kernels[row.kernel] = {
                "module": report.input.constant,
                "ladder": {**row.to_json(), "has_loader": loader is not None},
            }
        loaders.append({**report.to_json(), "lines": simulation_lines(report)})
    return Done(
        outcome,
        "; ".join(report.summary for report in reports),
        {"loaders": loaders},
        kernels,
    )
