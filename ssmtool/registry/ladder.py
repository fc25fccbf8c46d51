"""The ladder: each kernel's rung in source, PTX, header and loader."""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.csource import SourceKernel
from ssmtool.registry.loader_kind import mangled_names
from ssmtool.registry.model import LadderRow, RegistryInput, Simulation
from ssmtool.registry.simulate import asked_count


def climb(given: RegistryInput, simulation: Simulation | None) -> tuple[LadderRow, ...]:
    """A row for every kernel that any of the four places mentions: the source's first, in its order."""
    symbols = _symbols(given)
    sources: dict[str, SourceKernel] = {}
    for kernel in given.source.kernels:
        sources.setdefault(kernel.name, kernel)
    names = given.loader.names if given.loader else ()
    in_loader, in_ptx, in_header = _places(names), _places(given.entries), _places(given.header_entries)
    claimed = frozenset(symbols.values())
    kernels = [
        kernel.name
        for kernel in given.source.kernels
        # A template or an undecided #if with no symbol is no kernel of this build.
        if not ((kernel.template or kernel.conditional) and kernel.name not in symbols)
    ]
    others = (*given.entries, *given.header_entries, *names)
    kernels += [name for name in others if name not in claimed or name in in_loader]
    loaded = frozenset(simulation.loaded if simulation else ())
    count = asked_count(given)
    rows = []
    for name in dict.fromkeys(kernels):
        symbol = symbols.get(name, name)
        source = sources.get(name)
        loader_index = in_loader.get(symbol, in_loader.get(name))
        rows.append(
            LadderRow(
                kernel=name,
                source_line=source.line if source else None,
                source_path=source.path if source else None,
                ptx_index=in_ptx.get(symbol),
                header_index=in_header.get(symbol),
                loader_index=loader_index,
                counted=loader_index is not None and loader_index < count,
                loads=symbol in loaded,
                note=_note(given, source, symbol) if source else "",
            )
        )
    return tuple(rows)


def _symbols(given: RegistryInput) -> dict[str, str]:
    """Source kernel -> its symbol, where it has one."""
    symbols: dict[str, str] = {}
    every = dict.fromkeys((*given.entries, *given.header_entries))
    mangled = mangled_names(tuple(every))
    for kernel in given.source.kernels:
        if kernel.name in every:
            symbols[kernel.name] = kernel.name
        elif not kernel.extern_c and kernel.name in mangled:
            symbols[kernel.name] = mangled[kernel.name]
    return symbols


def _note(given: RegistryInput, kernel: SourceKernel, symbol: str) -> str:
    notes = [f"in {kernel.path}"] if kernel.path != given.source.path else []
    if symbol != kernel.name:
        notes.append(f"symbol is {symbol}")
    elif kernel.condition:
        notes.append(f"under {kernel.condition}")
    elif not kernel.extern_c:
        notes.append("template" if kernel.template else 'no extern "C"')
    elif kernel.from_macro:
        notes.append("made by a macro")
    return ", ".join(notes)


def _places(names: Sequence[str]) -> dict[str, int]:
    """Name -> its first index."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        places.setdefault(name, index)
    return places
