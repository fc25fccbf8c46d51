"""The three-step rule: a kernel is in the source, compiled into the header, and named and counted in the loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ssmtool.csource import KernelSource, NameArray
from ssmtool.findings import Finding, Severity, Skip
from ssmtool.registry.ladder import climb
from ssmtool.registry.loader_kind import LoaderKind
from ssmtool.registry.model import RegistryInput, RegistryReport, Simulation
from ssmtool.registry.rules_loader import loader_findings
from ssmtool.registry.rules_source import source_findings
from ssmtool.registry.simulate import simulate, user_sees
from ssmtool.settings_form import table


def check_registry(
    *,
    module_name: str,
    source: KernelSource,
    header_entries: Sequence[str],
    header_path: str,
    constant: str,
    loader: NameArray | None,
    ptx_entries: Sequence[str] | None = None,
    kind: LoaderKind | None = None,
    elsewhere: Mapping[str, str] | None = None,
) -> RegistryReport:
    """Compare one module's four places and simulate its loader. Computes only; reads and writes nothing.

    `ptx_entries` are the entries of a PTX compiled just now; without one the header's stand for it. `loader` None means
    that the settings name none, which the report shows as a skip.
    """
    given = RegistryInput(
        module=module_name,
        source=source,
        ptx_entries=tuple(ptx_entries) if ptx_entries is not None else None,
        header_path=header_path,
        constant=constant,
        header_entries=tuple(header_entries),
        loader=loader,
        kind=kind or LoaderKind(),
        elsewhere=elsewhere or {},
    )
    simulation = simulate(given)
    findings = source_findings(given, simulation)
    if loader is not None and simulation is not None:
        findings += loader_findings(given, loader, simulation)
    skips, required = _skips(given)
    if (
        simulation is not None
        and (simulation.when != "loaded" or simulation.inert)
        and not any(map(_is_error, findings))
    ):
        findings.append(_loads_nothing(given, simulation))
    return RegistryReport(
        input=given,
        rows=climb(given, simulation),
        simulation=simulation,
        findings=tuple(findings),
        skips=tuple(skips),
        required_skips=tuple(required),
    )


def without_loader(report: RegistryReport) -> RegistryReport:
    """The same module, checked as far as its header; that its loader was left out is for the caller to say."""
    given = msgspec.structs.replace(report.input, loader=None)
    return RegistryReport(given, climb(given, None), None, tuple(source_findings(given, None)), (), ())


def _is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def _loads_nothing(given: RegistryInput, simulation: Simulation) -> Finding:
    """Names and module agree, and yet the loader would not load them all: its own lists disagree."""
    loader = given.loader
    assert loader is not None, "only a loader can be simulated"
    constants = given.kind.constants
    named = frozenset(loader.names)
    gone = [name for name in constants if name not in named]
    rows = "its lists disagree"
    if gone:
        rows = f"FC_KERNELS has {', '.join(gone)}, which {loader.array} does not name"
    elif simulation.when == "loaded":
        rows = f"inert: {', '.join(simulation.inert)}"
    return Finding(
        rule="registry/loader-disagrees",
        severity=Severity.ERROR,
        message=f"the loader takes {len(simulation.loaded)} of {len(loader.names)} names: {rows}",
        path=loader.path,
        line=loader.line,
        effect=user_sees(simulation),
        fix=f"bring FC_KERNELS in line with {loader.array} by hand, together with the launches by these constants",
    )


def _skips(given: RegistryInput) -> tuple[list[Skip], list[Skip]]:
    """What could not be checked; the second list leaves the question unanswered."""
    loader = given.loader
    name = f"registry of {given.module}"
    if loader is None:
        return [
            Skip(
                name,
                "the settings name no loader for it, so its names and their count were not checked",
                f"add a loader table to this module in {table()}: path, array, function",
            )
        ], []
    skips, required = [], []
    conditional = [entry for entry in loader.entries if entry.condition]
    if conditional:
        shown = ", ".join(f"{entry.name} (line {entry.line}, {entry.condition})" for entry in conditional)
        required.append(
            Skip(
                name,
                f"{loader.path}: compiler flags decide whether these names are in {loader.array}: {shown}; "
                "they were taken as present",
                f"move the #if out of {loader.array}",
            )
        )
    if loader.count is None:
        skips.append(
            Skip(
                f"count of {loader.array}",
                f"{loader.path}: no call takes {loader.array}, and the settings name no loader.function",
                f"set loader.function in {table()} to the function that takes the array and its count",
            )
        )
    elif loader.count.value is None:
        required.append(
            Skip(
                f"count of {loader.array}",
                f"{loader.path}:{loader.count.line}: the value of {loader.count.text} cannot be told from this file",
                f"write the number of names, or sizeof {loader.array} / sizeof {loader.array}[0]; if another argument"
                f" is the count, set loader.count_argument in {table()} to its 0-based position",
            )
        )
    return skips, required
