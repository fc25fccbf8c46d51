"""Findings between the loader's names, its count, and the symbols of the module it loads."""

from __future__ import annotations

from ssmtool.csource import NameArray, NameEntry
from ssmtool.findings import Finding, Severity
from ssmtool.registry.loader_kind import mangled_names
from ssmtool.registry.model import RegistryInput, Simulation
from ssmtool.registry.order import mangled_by_accident, misplaced, reference_order
from ssmtool.registry.rules_count import count_findings
from ssmtool.registry.rules_source import BUILD, FIX
from ssmtool.registry.simulate import user_sees

# A comparison of two names takes 20 us: lists up to this length are compared whole, of longer ones what is near.
_COMPARED = 40
_NEAR = 4


def loader_findings(given: RegistryInput, loader: NameArray, simulation: Simulation) -> list[Finding]:
    """What is wrong with the names, then with their order, then with their number."""
    findings = _names_without_symbol(given, loader, simulation)
    findings += _symbols_without_name(given, loader, simulation)
    findings += _duplicates(loader)
    findings += _order(given, loader)
    findings += _constants(given, loader)
    findings += count_findings(given, loader, simulation)
    return findings


def _names_without_symbol(given: RegistryInput, loader: NameArray, simulation: Simulation) -> list[Finding]:
    module = frozenset(given.header_entries)
    reasons: _Reasons | None = None
    findings = []
    for index, entry in enumerate(loader.entries):
        if entry.name in module:
            continue
        joined = len(entry.pieces) > 1 and all(piece in module for piece in entry.pieces)
        reasons = reasons or _Reasons(given, loader)
        reason, fix = reasons.of(index, entry)
        if simulation.when == "stopped" and simulation.stopped_index == index:
            effect = (
                f"the loader stops here, at index {index}; {_inert(simulation)}; {user_sees(simulation, whole=True)}"
            )
        elif simulation.when in ("compile", "refused"):
            effect = f"no kernel loads; {user_sees(simulation)}"
        elif index >= len(simulation.loaded) and simulation.stopped_index is None:
            effect = (
                f"it lies beyond the count, so it is never looked up; with the count mended the loader stops at {index}"
            )
        else:
            effect = f"once the names before it are mended, the loader stops here, at index {index}"
        findings.append(
            Finding(
                rule="registry/joined-names" if joined else "registry/name-without-symbol",
                severity=Severity.ERROR,
                kernel=entry.name,
                message=f"{loader.array}[{index}] is {entry.name}, and the module has no such kernel: {reason}",
                path=loader.path,
                line=entry.line,
                column=entry.column,
                effect=effect,
                fix=fix,
            )
        )
    return findings


def _inert(simulation: Simulation) -> str:
    names = simulation.inert
    return f"inert: {', '.join(names)} ({len(names)} of {len(names) + len(simulation.loaded)})"


class _Reasons:
    """Why a name has no symbol, and what mends it; every list is indexed once."""

    def __init__(self, given: RegistryInput, loader: NameArray) -> None:
        named = set(loader.names)
        self._given = given
        self._loader = loader
        self._module = frozenset(given.header_entries)
        self._mangled = mangled_names(given.header_entries)
        self._kernels = {kernel.name: kernel for kernel in reversed(given.source.kernels)}
        self._hidden = {kernel.name: kernel for kernel in reversed(given.source.hidden)}
        self._unnamed = [symbol for symbol in given.header_entries if symbol not in named]

    def of(self, index: int, entry: NameEntry) -> tuple[str, str]:
        """The reason and the command or edit for the name at `index`."""
        given, loader, name = self._given, self._loader, entry.name
        if len(entry.pieces) > 1 and all(piece in self._module for piece in entry.pieces):
            return (
                f"a comma is missing after {entry.pieces[0]}, so the compiler joins {len(entry.pieces)} names into one",
                f"write a comma after {entry.pieces[0]} in {loader.path}, near line {entry.line}",
            )
        kernel = self._kernels.get(name)
        if name in self._mangled:
            where = kernel.path if kernel else given.source.path
            return 'the kernel lacks extern "C"', f'add extern "C" to {name} in {where}, then: {BUILD}'
        if kernel is not None and kernel.condition:
            return f"line {kernel.line} of {kernel.path} defines it under {kernel.condition}", BUILD
        if kernel is not None:
            return f"{kernel.path}:{kernel.line} defines it, so the header is older than the source", BUILD
        hidden = self._hidden.get(name)
        if hidden is not None:
            where = f"{hidden.path}:{hidden.line}"
            return f"its only definition, {where}, is in {_place(hidden.place)}", f"{FIX}   (or compile {where} again)"
        owner = given.elsewhere.get(name)
        if owner is not None:
            own = f"give the kernels of {owner} an array and a loading call of their own"
            return f"it is a kernel of {owner}, whose PTX is another constant", own
        close = self._alike(index, name)
        if close:
            return f"a typo? The module has {close}, which no name asks for", FIX
        if not given.source.complete and given.ptx_entries is None:
            return f"the text of {given.source.path} does not show it", f"{BUILD}; if it is still missing then: {FIX}"
        return "it was renamed or removed", FIX

    def _alike(self, index: int, name: str) -> str | None:
        """The symbol that `name` may be a misspelling of; in a long list only those near its place are compared."""
        import difflib

        symbols = self._unnamed
        if len(symbols) > _COMPARED:
            middle = index * len(symbols) // len(self._loader.entries)
            symbols = symbols[max(0, middle - _NEAR) : middle + _NEAR]
        return next(iter(difflib.get_close_matches(name, symbols, 1, 0.8)), None)


def _place(place: str) -> str:
    return place if place == "a comment" else f"a group that is not compiled ({place})"


def _symbols_without_name(given: RegistryInput, loader: NameArray, simulation: Simulation) -> list[Finding]:
    joined = {piece for entry in loader.entries if len(entry.pieces) > 1 for piece in entry.pieces}
    shown = {kernel.name: kernel for kernel in given.source.kernels}
    by_accident = mangled_by_accident(given)
    named = set(loader.names)
    hidden_names = {hidden.name: hidden for hidden in reversed(loader.hidden)}
    findings = []
    for symbol in given.entries:
        if symbol in named or symbol in joined or symbol in by_accident:
            continue
        hidden = hidden_names.get(symbol)
        told = f"; on line {hidden.line} it stands in {_place(hidden.place)}" if hidden else ""
        kernel = shown.get(symbol)
        defined = f" (defined at {kernel.path}:{kernel.line})" if kernel else ""
        effect = "inert: the loader never looks it up, so no launch can reach it"
        if simulation.message is not None or simulation.when != "loaded":
            effect += f"; {user_sees(simulation)}"
        else:
            effect += ", and no message says so"
        findings.append(
            Finding(
                rule="registry/symbol-without-name",
                severity=Severity.ERROR,
                kernel=symbol,
                message=f"the module has {symbol}{defined}, and {loader.array} does not name it{told}",
                path=loader.path,
                line=hidden.line if hidden else loader.line,
                effect=effect,
                fix=FIX,
            )
        )
    return findings


def _duplicates(loader: NameArray) -> list[Finding]:
    first: dict[str, int] = {}
    findings = []
    for index, entry in enumerate(loader.entries):
        if entry.name not in first:
            first[entry.name] = index
            continue
        findings.append(
            Finding(
                rule="registry/duplicate-name",
                severity=Severity.ERROR,
                kernel=entry.name,
                message=f"{loader.array}[{index}] is {entry.name} again; it is [{first[entry.name]}] already",
                path=loader.path,
                line=entry.line,
                column=entry.column,
                effect=f"it loads twice, and each kernel from index {index} on is a place too late for its launches",
                fix=FIX,
            )
        )
    return findings


def _order(given: RegistryInput, loader: NameArray) -> list[Finding]:
    reference = reference_order(given)
    moved = misplaced(loader.names, reference)
    if not moved or loader.pointed:
        return []
    wanted = sorted((name for name in dict.fromkeys(loader.names) if name in reference), key=reference.__getitem__)
    have = [name for name in dict.fromkeys(loader.names) if name in reference]
    index = next(index for index, (a, b) in enumerate(zip(have, wanted, strict=True)) if a != b)
    entry = next(entry for entry in loader.entries if entry.name == have[index])
    place = loader.entries.index(entry)
    return [
        Finding(
            rule="registry/wrong-order",
            severity=Severity.ERROR,
            kernel=entry.name,
            message=(
                f"{loader.array}[{place}] is {entry.name} where the source's order has {wanted[index]}; "
                f"out of place: {', '.join(moved)}"
            ),
            path=loader.path,
            line=entry.line,
            column=entry.column,
            effect=f"a launch by index {place} that means {wanted[index]} runs {entry.name} with the other's arguments",
            fix=(
                f"put the names of {loader.array} in the source's order by hand, together with whatever indexes them; "
                "names are never reordered for you"
            ),
        )
    ]


def _constants(given: RegistryInput, loader: NameArray) -> list[Finding]:
    """Names that FC_KERNELS has no constant for: usable by name only."""
    constants = given.kind.constants
    if not constants or loader.names[: len(constants)] != constants:
        return []
    extra = loader.entries[len(constants) :]
    if not extra:
        return []
    return [
        Finding(
            rule="registry/no-constant",
            severity=Severity.NOTE,
            kernel=extra[0].name,
            message=f"no constant in FC_KERNELS yet: {', '.join(entry.name for entry in extra)}",
            path=loader.path,
            line=extra[0].line,
            effect="it loads; fc_cuda_function finds it by name, fc_cuda_launch has no constant for it",
            fix="add a row X(CONSTANT, symbol, number of arguments) at the end of FC_KERNELS in fc_cuda.h",
        )
    ]
