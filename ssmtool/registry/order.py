"""The order the names should stand in, and where a list departs from it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ssmtool.registry.loader_kind import mangled_names
from ssmtool.registry.model import RegistryInput


def reference_order(given: RegistryInput) -> dict[str, int]:
    """Kernel -> its place.

    The source's order, since that is what people read and append to, and no compiler promises to keep it; symbols that
    the source does not show follow the symbol before them in the PTX.
    """
    symbols = frozenset(given.entries)
    order = [
        kernel.name
        for kernel in given.source.kernels
        if kernel.extern_c and (kernel.condition is None or kernel.name in symbols)
    ]
    known = frozenset(order)
    # What follows each name (None: what stands before all) that the source does not show.
    following: dict[str | None, list[str]] = {}
    anchor: str | None = None
    for entry in dict.fromkeys(given.entries):
        if entry in known:
            anchor = entry
        else:
            following.setdefault(anchor, []).append(entry)
    whole = following.get(None, [])
    for name in dict.fromkeys(order):
        whole += [name, *following.get(name, ())]
    return {name: place for place, name in enumerate(whole)}


def mangled_by_accident(given: RegistryInput) -> frozenset[str]:
    """Symbols of kernels that lack extern "C": what they want is the plain name, not a place in the loader.

    A template's symbol is mangled by necessity and may stand in a loader.
    """
    lacking = frozenset(kernel.name for kernel in given.source.kernels if not kernel.extern_c and not kernel.template)
    every = (*given.entries, *given.header_entries) if lacking else ()
    return frozenset(symbol for symbol in every if not lacking.isdisjoint(mangled_names((symbol,))))


def in_order(names: Sequence[str], reference: dict[str, int]) -> list[int]:
    """Indices of a longest run of `names` that already stands in order; names without a place are left out."""
    tails: list[int] = []
    tail_places: list[int] = []
    back: dict[int, int | None] = {}
    for index, name in enumerate(names):
        place = reference.get(name)
        if place is None:
            continue
        at = bisect_left(tail_places, place)
        back[index] = tails[at - 1] if at else None
        if at == len(tails):
            tails.append(index)
            tail_places.append(place)
        else:
            tails[at] = index
            tail_places[at] = place
    run: list[int] = []
    current: int | None = tails[-1] if tails else None
    while current is not None:
        run.append(current)
        current = back[current]
    return run[::-1]


def misplaced(names: Sequence[str], reference: dict[str, int]) -> list[str]:
    """Names that would have to move; each name is looked at once, where it first stands."""
    unique = [name for name in dict.fromkeys(names) if name in reference]
    kept = frozenset(in_order(unique, reference))
    return [name for index, name in enumerate(unique) if index not in kept]
