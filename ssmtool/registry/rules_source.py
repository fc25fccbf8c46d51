"""Findings between the source and the header's PTX."""

from __future__ import annotations

from ssmtool.csource import SourceKernel
from ssmtool.findings import Finding, Severity
from ssmtool.registry.loader_kind import mangled_names
from ssmtool.registry.model import RegistryInput, Simulation
from ssmtool.registry.simulate import user_sees

BUILD = "ssmtool build"
FIX = "ssmtool registry --fix"


def source_findings(given: RegistryInput, simulation: Simulation | None) -> list[Finding]:
    """Kernels without a symbol, symbols without a kernel, and kernels whose symbol is not their name."""
    if not given.header_entries and given.source.kernels:
        return [_no_symbols(given)]
    findings = []
    entries, held = frozenset(given.entries), frozenset(given.header_entries)
    symbols = mangled_names(given.entries)
    named = frozenset(given.loader.names if given.loader else ())
    for kernel in given.source.kernels:
        if kernel.template or kernel.name in entries:
            if kernel.name in entries and kernel.name not in held:
                findings.append(_not_in_header(given, kernel))
            elif not kernel.extern_c and not kernel.template and given.ptx_entries is None:
                findings.append(_about_to_be_mangled(kernel))
            continue
        if not kernel.extern_c:
            findings += _mangled(kernel, symbols.get(kernel.name), named, simulation)
        elif not kernel.conditional:
            findings.append(_without_symbol(given, kernel))
    findings += _symbols_without_source(given)
    return findings


def _no_symbols(given: RegistryInput) -> Finding:
    """The whole constant is missing or empty: one finding, not one for each kernel."""
    names = [kernel.name for kernel in given.source.kernels]
    return Finding(
        rule="registry/no-symbols",
        severity=Severity.ERROR,
        message=f"{given.constant} holds no kernel; {given.source.path} defines {len(names)}: {', '.join(names)}",
        path=given.header_path,
        effect="the module loads nothing: every one of these kernels is inert",
        fix=BUILD,
    )


def _steps(given: RegistryInput, kernel: SourceKernel) -> tuple[str, str]:
    """Where a kernel stands on its way to the loader, and what takes it the rest."""
    loader = given.loader
    told = (
        f"step 1 of 3, defined in the source: done ({kernel.path}:{kernel.line}); "
        f"step 2, compiled into {given.header_path}: missing; "
    )
    if loader is None:
        return f"{told}step 3, named in a loader: not checked", f"{BUILD}   (step 2)"
    if kernel.name in loader.names:
        return f"{told}step 3, named in {loader.path}: done", f"{BUILD}   (step 2)"
    count = loader.count
    if count is not None and count.kind == "literal" and count.value is not None:
        bump = f", and raises the count on line {count.line} to {len(loader.entries) + 1}"
    elif count is not None and count.kind in ("macro", "expression"):
        bump = f"; {count.text} must then be {len(loader.entries) + 1}, by hand"
    else:
        bump = ""
    return (
        f"{told}step 3, named and counted in {loader.path}: missing",
        f"{BUILD}   (step 2, then step 3: it adds the name to {loader.array}{bump}; "
        f"after --no-sync, step 3 alone is: {FIX})",
    )


def _without_symbol(given: RegistryInput, kernel: SourceKernel) -> Finding:
    return _inert(
        given,
        kernel,
        "registry/kernel-without-symbol",
        f"{kernel.name} is defined here, and the PTX in {given.header_path} does not have it",
        "inert: the header is older than the source, and the program runs without this kernel",
    )


def _not_in_header(given: RegistryInput, kernel: SourceKernel) -> Finding:
    """A fresh compilation has it, the header on disk does not."""
    return _inert(
        given,
        kernel,
        "registry/symbol-not-in-header",
        f"{kernel.name} compiles, and the header does not have it yet",
        "inert: the program still loads the old PTX",
    )


def _inert(given: RegistryInput, kernel: SourceKernel, rule: str, message: str, effect: str) -> Finding:
    """A kernel on its way to the loader, with the steps behind it and before it."""
    steps, fix = _steps(given, kernel)
    return _of_kernel(kernel, rule, Severity.ERROR, f"{message}: {steps}", effect, fix)


def _of_kernel(kernel: SourceKernel, rule: str, severity: Severity, message: str, effect: str, fix: str) -> Finding:
    """A finding where the kernel is defined."""
    return Finding(
        rule=rule,
        severity=severity,
        kernel=kernel.name,
        message=message,
        path=kernel.path,
        line=kernel.line,
        effect=effect,
        fix=fix,
    )


def _mangled(
    kernel: SourceKernel, symbol: str | None, names: frozenset[str], simulation: Simulation | None
) -> list[Finding]:
    if symbol in names or (kernel.conditional and symbol is None):
        return []
    effect = f"its symbol is {symbol or 'a C++ name (_Z...)'}, so no loader finds it as {kernel.name}"
    if kernel.name in names and simulation is not None and simulation.message:
        effect += f"; {user_sees(simulation)}"
    message = f'{kernel.name} is declared without extern "C"'
    return [
        _of_kernel(
            kernel, "registry/no-extern-c", Severity.ERROR, message, effect, f"{_declare(kernel)}; then: {BUILD}"
        )
    ]


def _declare(kernel: SourceKernel) -> str:
    return f'write: extern "C" __global__ void {kernel.name}(...)'


def _about_to_be_mangled(kernel: SourceKernel) -> Finding:
    """A kernel that lost its extern "C" after the header was made; a warning: an earlier declaration may have one."""
    message = f'{kernel.name} is declared without extern "C"; the header still has it under its own name'
    effect = 'unless an earlier declaration says extern "C", the next build gives it a C++ name that no loader finds'
    return _of_kernel(kernel, "registry/no-extern-c", Severity.WARNING, message, effect, _declare(kernel))


def _symbols_without_source(given: RegistryInput) -> list[Finding]:
    """Symbols that the text does not define: left over from an older source, or made where no text shows it."""
    source = given.source
    shown = {kernel.name for kernel in source.kernels}
    hidden = {kernel.name: kernel for kernel in source.hidden}
    findings = []
    for entry in given.entries:
        if entry in shown or not shown.isdisjoint(mangled_names((entry,))):
            continue
        place = hidden.get(entry)
        if source.complete and given.ptx_entries is None:
            told = f"; its definition, {place.path}:{place.line}, is under {place.place}" if place else ""
            findings.append(
                Finding(
                    rule="registry/symbol-without-source",
                    severity=Severity.ERROR,
                    kernel=entry,
                    message=f"the PTX in {given.header_path} has {entry}, and {source.path} does not define it{told}",
                    path=place.path if place else source.path,
                    line=place.line if place else None,
                    effect="the program runs a kernel that its source no longer has",
                    fix=BUILD,
                )
            )
            continue
        reason = "an included file or a macro may make it"
        if source.unread:
            reason = f"a macro may make it, see line {source.unread[0]}"
        findings.append(
            Finding(
                rule="registry/unread-kernel",
                severity=Severity.NOTE,
                kernel=entry,
                message=f"{entry} is in the PTX and cannot be read from the text of {source.path}: {reason}",
                path=source.path,
                line=source.unread[0] if source.unread else None,
            )
        )
    return findings
