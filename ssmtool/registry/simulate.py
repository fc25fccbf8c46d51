"""The loader, simulated: it takes the names in order, up to the count, and stops at the first the module lacks."""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.registry.loader_kind import (
    DRIVER_NULL_NAME,
    count_message,
    disagreement,
    missing_message,
    short_message,
)
from ssmtool.registry.model import RegistryInput, Simulation


def simulate(given: RegistryInput) -> Simulation | None:
    """What would load, where it would stop and with which words; None without a loader.

    A count that cannot be told is taken as the number of names.
    """
    loader = given.loader
    if loader is None:
        return None
    names = loader.names[: loader.length]
    count = asked_count(given)
    entries = given.header_entries
    module = frozenset(entries)
    if given.kind.own:
        refused = _own_refusal(given, names, count)
        if refused is not None:
            return refused
    for index in range(count):
        if index >= loader.length:
            return Simulation("undefined", names[:index], _inert(entries, names, names[:index]), index)
        if index >= len(names):
            return Simulation("stopped", names[:index], _inert(entries, names, names[:index]), index, DRIVER_NULL_NAME)
        if names[index] not in module:
            message = missing_message(given.kind, names, count, index, entries)
            return Simulation("stopped", names[:index], _inert(entries, names, names[:index]), index, message)
    reached = names[: max(count, 0)]
    return Simulation("loaded", reached, _inert(entries, names, reached))


def asked_count(given: RegistryInput) -> int:
    """How many names the loader asks for."""
    loader = given.loader
    if loader is None:
        return 0
    if loader.count is None or loader.count.value is None:
        return len(loader.names)
    return loader.count.value


def user_sees(simulation: Simulation, *, whole: bool = False) -> str:
    """The end of an effect: the loader's own words, to the letter; the first line of them unless `whole`."""
    if simulation.message is None:
        return "no message is printed"
    message = simulation.message if whole else simulation.message.split("\n", 1)[0]
    return f"the loader does not compile: {message}" if simulation.when == "compile" else f"the user sees: {message}"


def _own_refusal(given: RegistryInput, names: Sequence[str], count: int) -> Simulation | None:
    """`fc_cuda.c` compares its lists first: it may not compile, or load nothing."""
    loader = given.loader
    assert loader is not None
    inert = _inert(given.header_entries, names, ())
    short = short_message(given.kind, names)
    if short:
        return Simulation("compile", (), inert, message=short)
    apart = disagreement(given.kind, names)
    if apart:
        return Simulation("refused", (), inert, apart[0], apart[1])
    if count != loader.length:
        return Simulation("refused", (), inert, message=count_message(names, count))
    return None


def _inert(entries: Sequence[str], names: Sequence[str], loaded: Sequence[str]) -> tuple[str, ...]:
    """What the module or the array has and the loader does not hand out, in the order of the array, then of the PTX."""
    reached = frozenset(loaded)
    return tuple(name for name in dict.fromkeys((*names, *entries)) if name not in reached)
