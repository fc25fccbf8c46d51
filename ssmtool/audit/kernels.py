"""The audit of every kernel of a list of inputs: counts, paths, and what the front end did not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ssmtool.audit.assumptions import Assumed, Assumption, Parameters, resolve
from ssmtool.audit.calls import Callees
from ssmtool.audit.counts import count
from ssmtool.audit.flow import Flow
from ssmtool.audit.inputs import Input
from ssmtool.audit.paths import PathAnalysis, PathCounts
from ssmtool.audit.result import AuditResult, KernelAudit
from ssmtool.findings import Finding, Severity
from ssmtool.ptx import Function

# Unknown instructions named one by one; the rest are counted.
_NAMED = 20


def audit(inputs: Sequence[Input], assumptions: Iterable[Assumption] = ()) -> AuditResult:
    """Audit every kernel. Raises SsmtoolError for an assumption that fits nothing, PtxSyntaxError for damaged text."""
    result = AuditResult()
    given = list(assumptions)
    if given:
        everywhere: dict[str, Parameters] = {}
        for each in inputs:
            for function in each.module.entries:
                everywhere.setdefault(function.name, Parameters.of(function, each.parameters))
        resolve(given, everywhere)  # raises for what fits nothing anywhere
    given = [replace(assumption, optional=True) for assumption in given]
    for each in inputs:
        callees = Callees(each.module)
        # Each input by itself: kernels of one name in two files may have other parameters.
        entries = {function.name: Parameters.of(function, each.parameters) for function in each.module.entries}
        assumed = resolve(given, entries)
        for function in each.module.entries:
            names = entries[function.name]
            result.kernels.append(_kernel(each, function, names, assumed[function.name], callees))
        result.outcome.extend(_unknown(each))
        result.outcome.extend(_twice(each))
    _local_findings(result, {each.name: each for each in inputs})
    return result


def analysis_of(each: Input, function: Function, assumptions: Iterable[Assumption]) -> PathAnalysis:
    """The path analysis of one entry, for a listing or a graph."""
    names = Parameters.of(function, each.parameters)
    assumed = resolve(assumptions, {function.name: names})[function.name]
    return PathAnalysis(Flow(function), assumed, _shown_names(names), Callees(each.module).accesses(function))


def _shown_names(names: Parameters) -> dict[str, str]:
    return {variable.name: names.shown(index) for index, variable in enumerate(names.variables)}


def _kernel(each: Input, function: Function, names: Parameters, assumed: Assumed, callees: Callees) -> KernelAudit:
    accesses = callees.accesses(function)
    counts = count(function, accesses)
    analysis: PathAnalysis | None = None
    if assumed or accesses:
        analysis = PathAnalysis(Flow(function), assumed, _shown_names(names), accesses)
        path = analysis.counts(accesses, each.module.files)
    else:
        # Nothing assumed and no local traffic: no path can have any.
        path = PathCounts({}, counts.instructions, 0, 0, 0, 0, ())
    called, elsewhere = callees.reached(function, analysis)
    return KernelAudit(
        input=each.name,
        file=each.path,
        name=function.name,
        line=function.line,
        parameters=names.names,
        counts=counts,
        path=path,
        called=called,
        calls_elsewhere=elsewhere,
        argument=each.argument,
        module_local_bytes=callees.module_bytes(function, called),
        shown_line=each.place(function.line)[0],
    )


def _twice(each: Input) -> list[Finding]:
    """Entries of one name in one module: no ptxas takes them, and a loader would find one of them."""
    seen: set[str] = set()
    findings = []
    for function in each.module.entries:
        if function.name in seen:
            findings.append(
                Finding(
                    rule="audit/duplicate-entry",
                    severity=Severity.ERROR,
                    message="the text defines an entry of this name before",
                    kernel=function.name,
                    path=each.path,
                    line=each.place(function.line)[0],
                    effect="ptxas and the driver refuse the module",
                )
            )
        seen.add(function.name)
    return findings


def _unknown(each: Input) -> list[Finding]:
    """What the front end kept as it is without knowing it."""
    findings = [
        Finding(
            rule="audit/unknown-ptx",
            severity=Severity.WARNING,
            message=f"not known to ssmtool, kept as it is: {' '.join(unknown.text.split())[:80]}"
            + (f" ({unknown.why})" if unknown.why else ""),
            path=each.path,
            line=each.place(unknown.line, unknown.column)[0],
            column=each.place(unknown.line, unknown.column)[1],
            effect="its cost and its effect on paths are not in the numbers; registers it names count as changed",
        )
        for unknown in each.module.unknown[:_NAMED]
    ]
    more = len(each.module.unknown) - _NAMED
    if more > 0:
        message = f"{more} more instructions or directives that ssmtool does not know"
        findings.append(Finding("audit/unknown-ptx", Severity.WARNING, message, path=each.path))
    return findings


def _local_findings(result: AuditResult, inputs: Mapping[str, Input]) -> None:
    """Local traffic on a path that may be executed, as a warning each kernel; limits on it are budgets' business."""
    for kernel in result.kernels:
        loads, stores = kernel.path_local
        if kernel.calls_elsewhere:
            result.outcome.findings.append(
                Finding(
                    rule="audit/calls-elsewhere",
                    severity=Severity.NOTE,
                    message="calls code that is not in this text, or that is chosen at run time",
                    kernel=kernel.name,
                    path=kernel.file,
                    line=inputs[kernel.input].place(kernel.line)[0],
                    effect="local memory used there is not in the numbers",
                )
            )
        if not loads + stores:
            continue
        first = next((access for access in kernel.path.accesses if access.executed), None)
        words = f"{loads} ld.local + {stores} st.local"
        if kernel.path.assumed:
            words += " with " + ", ".join(f"{name} = {value}" for name, value in kernel.path.assumed.items())
        guard = first.guarding if first else None
        place = inputs[kernel.input].place(*((first.line, first.column) if first else (kernel.line, None)))
        where = f"; from {first.source}" if first and first.source else ""
        if first is None:
            where = f"; in {next(each.name for each in kernel.called if each.executed and each.touches_local)}"
        when = f"; runs when {guard.condition} (PTX line {guard.line})" if guard else ""
        result.outcome.findings.append(
            Finding(
                rule="audit/local-traffic",
                severity=Severity.WARNING,
                message=f"local memory on a path that may be executed: {words}{where}{when}",
                kernel=kernel.name,
                path=kernel.file,
                line=place[0],
                column=place[1],
                effect="each of these goes through L1 to device memory unless ptxas promotes it to registers",
                fix=kernel.explain,
            )
        )
