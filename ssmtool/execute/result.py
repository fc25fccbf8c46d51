"""What a launch gives back beside the buffers: faults, what is known of each output, counts, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ssmtool.execute.counters import Counters
from ssmtool.execute.errors import ArgumentError
from ssmtool.execute.faults import KernelFault
from ssmtool.execute.layout import KernelFacts
from ssmtool.execute.memory import Buffer, Memory
from ssmtool.execute.numerics.evidence import CONTRACTION, EXACT, H200, Evidence, Level

_LAST_BIT = 63


class LaunchResult:
    """One launch that has run.

    `faults` are what the kernel did wrong, `notes` what only some GPUs permit; `stopped` says that the launch was
    ended before its last block. `counters` is None unless they were asked for. `seconds` is the time of the kernel
    itself on `threads` threads, without compiling; `cached` says that its code came from the disk. `facts` are the
    compiled kernel's.
    """

    def __init__(
        self,
        facts: KernelFacts,
        names: Sequence[str],
        arguments: Sequence[Buffer],
        memory: Memory,
        *,
        faults: Sequence[KernelFault],
        notes: Sequence[KernelFault],
        stopped: bool,
        touched: Mapping[int, int],
        counters: Counters | None,
        seconds: float,
        threads: int,
        cached: bool,
    ) -> None:
        self.facts = facts
        self.entry = facts.entry
        self.names = tuple(names)
        self.faults = tuple(faults)
        self.notes = tuple(notes)
        self.stopped = stopped
        self.counters = counters
        self.seconds = seconds
        self.threads = threads
        self.cached = cached
        self._arguments = tuple(arguments)
        self._memory = memory
        self._touched = touched

    @property
    def ok(self) -> bool:
        """Whether there was no fault."""
        return not self.faults

    @property
    def buffers(self) -> dict[str, NDArray[Any]]:
        """The arrays given as arguments, by the parameters' names."""
        return {buffer.name: buffer.array for buffer in self._arguments}

    def evidence(self, argument: str | int | NDArray[Any]) -> Evidence:
        """What is known about the bits that this launch left in a buffer.

        The buffer is named by its parameter (name or number), by a module variable's name, or is the array itself. A
        buffer that nothing was stored into is exact. With check="none" stores are not told apart: then every buffer
        has the label of all stores together. Raises ArgumentError when there is no such buffer.
        """
        return _joined(self.facts, self._stores(self._buffer(argument)))

    def written(self, argument: str | int | NDArray[Any]) -> bool | None:
        """Whether the launch stored into a buffer; None with check="none", where that is not known."""
        stores = self._stores(self._buffer(argument))
        return bool(stores) if self.facts.mode.bounds else None

    def _stores(self, buffer: Buffer) -> list[int]:
        """The store instructions that met a buffer; all of them where they are not told apart."""
        if not self.facts.mode.bounds:
            return [index for index, site in enumerate(self.facts.sites) if site.store]
        row = self._memory.row_of(buffer)
        bit = 0 if row is None else 1 << min(row, _LAST_BIT)
        return [index for index, mask in self._touched.items() if mask & bit and self.facts.sites[index].store]

    def _buffer(self, argument: str | int | NDArray[Any]) -> Buffer:
        if isinstance(argument, int) and 0 <= argument < len(self.names):
            argument = self.names[argument]
        for buffer in self._memory.buffers:
            if buffer.array is argument or (isinstance(argument, str) and argument in self._spellings(buffer)):
                return buffer
        raise ArgumentError(f"{self.entry}: {argument!r} is no buffer of this launch")

    def _spellings(self, buffer: Buffer) -> set[str]:
        """Every name of a buffer: the shown one, and its parameter's in the PTX."""
        if buffer not in self._arguments:
            return {buffer.name}
        full = self.facts.params[self.names.index(buffer.name)].name
        return {buffer.name, full, full.removeprefix(f"{self.entry}_")}


def _joined(facts: KernelFacts, sites: Sequence[int]) -> Evidence:
    """The strongest doubt of several stores, with every unit that has part in it."""
    level = Level(max((facts.sites[index].level for index in sites), default=0))
    if level is Level.EXACT:
        return EXACT
    if level is Level.CONTRACTION:
        return CONTRACTION
    units = sorted({unit for index in sites for unit in facts.sites[index].units})
    return Evidence(level, ", ".join(units), H200)
