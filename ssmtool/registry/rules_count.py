"""Findings on numbers: the count in the call, the size in the array's brackets, the sizes of buffers beside it."""

from __future__ import annotations

from ssmtool.csource import Count, NameArray
from ssmtool.findings import Finding, Severity
from ssmtool.registry.model import RegistryInput, Simulation
from ssmtool.registry.rules_source import FIX
from ssmtool.registry.simulate import user_sees
from ssmtool.wording import plural


def count_findings(given: RegistryInput, loader: NameArray, simulation: Simulation) -> list[Finding]:
    """A count that is not the number of names, an array size that is not, a buffer that is too small."""
    findings = []
    if loader.declared is not None:
        findings += _declared(loader, loader.declared)
    count = loader.count
    if count is None or count.value is None:
        return findings
    names = len(loader.entries)
    if count.value < names:
        findings.append(_too_small(given, loader, count, simulation))
    elif count.value > names:
        findings.append(_too_large(loader, count, simulation))
    elif count.kind in ("macro", "expression"):
        findings.append(_fixed_elsewhere(loader, count))
    findings += [_buffer(loader, count, name, size) for name, size in loader.buffers if _less(size, count)]
    return findings


def _call(loader: NameArray) -> str:
    return f"the call of {loader.function}" if loader.function else f"the call that takes {loader.array}"


def _mend(loader: NameArray, count: Count) -> str:
    """The command for a literal; the edit for anything else, which is never made for the user."""
    names = len(loader.entries)
    if count.kind == "literal":
        return FIX
    if count.kind == "macro":
        return f"set {count.text} to {names} on line {count.defined_line} of {count.defined_path or loader.path}"
    return f"write {names} instead of {count.text} on line {count.line} of {loader.path}"


def _told(count: Count) -> str:
    where = f" of {count.defined_path}" if count.defined_path else ""
    defined = f", defined on line {count.defined_line}{where}" if count.defined_line else ""
    return f"{count.value}" if count.kind == "literal" else f"{count.text} ({count.value}{defined})"


def _counted(count: Count, noun: str) -> str:
    """`1 name`, `2 names`, `SSM_COUNT (14, defined on line 3) names`."""
    return (
        plural(count.value, noun) if count.kind == "literal" and count.value is not None else f"{_told(count)} {noun}s"
    )


def _too_small(given: RegistryInput, loader: NameArray, count: Count, simulation: Simulation) -> Finding:
    assert count.value is not None
    beyond = [entry.name for entry in loader.entries[max(count.value, 0) :]]
    effect = f"inert: {', '.join(beyond)}: never looked up"
    if given.kind.own and simulation.message:
        effect += f"; {user_sees(simulation)}"
    elif simulation.when == "loaded":
        effect += ", and no message says so"
    return Finding(
        rule="registry/count-too-small",
        severity=Severity.ERROR,
        kernel=beyond[0] if beyond else None,
        message=f"{_call(loader)} counts {_counted(count, 'name')}, {loader.array} has {len(loader.entries)}",
        path=loader.path,
        line=count.line,
        effect=effect,
        fix=_mend(loader, count),
    )


def _too_large(loader: NameArray, count: Count, simulation: Simulation) -> Finding:
    names = len(loader.entries)
    if simulation.when in ("compile", "refused") and simulation.message:
        effect = f"no kernel loads; {user_sees(simulation)}"
    elif loader.length > names:
        effect = f"{loader.array}[{names}] is NULL, and the loader asks for it; the user sees: {simulation.message}"
    else:
        effect = f"the loader reads past the end of {loader.array}: undefined behaviour, at best a crash"
    return Finding(
        rule="registry/count-too-large",
        severity=Severity.ERROR,
        message=f"{_call(loader)} counts {_counted(count, 'name')}, {loader.array} has {names}",
        path=loader.path,
        line=count.line,
        effect=effect,
        fix=_mend(loader, count),
    )


def _fixed_elsewhere(loader: NameArray, count: Count) -> Finding:
    where = f"line {count.defined_line or count.line}" + (f" of {count.defined_path}" if count.defined_path else "")
    return Finding(
        rule="registry/count-not-literal",
        severity=Severity.NOTE,
        message=f"the count of {loader.array} is {_told(count)}; it is right, and --fix never edits it",
        path=loader.path,
        line=count.line,
        fix=f"with the next kernel change it on {where}, or write sizeof {loader.array} / sizeof {loader.array}[0]",
    )


def _declared(loader: NameArray, declared: Count) -> list[Finding]:
    listed = len(loader.entries) + loader.terminated
    if declared.value is None or declared.kind == "length" or declared.value == listed:
        return []
    if declared.value < listed:
        lost = [entry.name for entry in loader.entries[max(declared.value, 0) :]]
        return [
            Finding(
                rule="registry/array-too-small",
                severity=Severity.ERROR,
                kernel=lost[0] if lost else None,
                message=f"{loader.array} is declared with {_counted(declared, 'element')} and lists {listed}",
                path=loader.path,
                line=declared.line,
                effect=f"C compilers only warn and drop the rest: {', '.join(lost) or 'its terminator'}",
                fix=FIX
                if declared.kind == "literal"
                else f"set {declared.text} to {listed}, or leave the brackets empty",
            )
        ]
    return [
        Finding(
            rule="registry/array-too-large",
            severity=Severity.WARNING,
            message=f"{loader.array} is declared with {_counted(declared, 'element')} and lists {listed}",
            path=loader.path,
            line=declared.line,
            effect="the rest are NULL: a loader that goes by the array's size asks the driver for them and stops",
            fix=f"leave the brackets empty: {loader.array}[]",
        )
    ]


def _less(size: Count, count: Count) -> bool:
    return size.kind != "length" and size.value is not None and count.value is not None and size.value < count.value


def _buffer(loader: NameArray, count: Count, name: str, size: Count) -> Finding:
    return Finding(
        rule="registry/buffer-too-small",
        severity=Severity.ERROR,
        message=f"{name} has {_counted(size, 'element')}, and {_call(loader)} counts {_told(count)}",
        path=loader.path,
        line=size.line,
        effect=f"the loader writes past the end of {name}: memory is damaged",
        fix=f"give {name} at least {plural(count.value or 0, 'element')} on line {size.line} of {loader.path}",
    )
