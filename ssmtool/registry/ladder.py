"""The ladder: each kernel's rung in source, PTX, header and loader."""

from __future__ import annotations

from ssmtool.registry.loader_kind import is_mangled
from ssmtool.registry.model import LadderRow, RegistryInput, Simulation
from ssmtool.registry.simulate import asked_count


def climb(given: RegistryInput, simulation: Simulation | None) -> tuple[LadderRow, ...]:
    """A row for every kernel that any of the four places mentions: the source's first, in its order."""
    symbols = _symbols(given)
    lines = {kernel.name: kernel.line for kernel in given.source.kernels}
    notes = {kernel.name: _note(given, kernel.name) for kernel in given.source.kernels}
    names = given.loader.names if given.loader else ()
    claimed = frozenset(symbols.values())
    kernels = [
        kernel.name
        for kernel in given.source.kernels
        # A template or an undecided #if with no symbol is no kernel of this build.
        if not ((kernel.template or kernel.conditional) and kernel.name not in symbols)
    ]
    others = (*given.entries, *given.header_entries, *names)
    kernels += [name for name in others if name not in claimed or name in names]
    loaded = frozenset(simulation.loaded if simulation else ())
    count = asked_count(given)
    rows = []
    for kernel in dict.fromkeys(kernels):
        symbol = symbols.get(kernel, kernel)
        loader_index = _index(names, symbol) if symbol in names else _index(names, kernel)
        rows.append(
            LadderRow(
                kernel=kernel,
                source_line=lines.get(kernel),
                ptx_index=_index(given.entries, symbol),
                header_index=_index(given.header_entries, symbol),
                loader_index=loader_index,
                counted=loader_index is not None and loader_index < count,
                loads=symbol in loaded,
                note=f"symbol is {symbol}" if symbol != kernel else notes.get(kernel, ""),
            )
        )
    return tuple(rows)


def _symbols(given: RegistryInput) -> dict[str, str]:
    """Source kernel -> its symbol, where it has one."""
    symbols: dict[str, str] = {}
    every = tuple(dict.fromkeys((*given.entries, *given.header_entries)))
    for kernel in given.source.kernels:
        if kernel.name in every:
            symbols[kernel.name] = kernel.name
        elif not kernel.extern_c:
            mangled = next((entry for entry in every if is_mangled(entry, kernel.name)), None)
            if mangled:
                symbols[kernel.name] = mangled
    return symbols


def _note(given: RegistryInput, name: str) -> str:
    kernel = next(kernel for kernel in given.source.kernels if kernel.name == name)
    if kernel.condition:
        return f"under {kernel.condition}"
    if not kernel.extern_c:
        return "template" if kernel.template else 'no extern "C"'
    return "made by a macro" if kernel.from_macro else ""


def _index(names: tuple[str, ...], name: str) -> int | None:
    return names.index(name) if name in names else None
