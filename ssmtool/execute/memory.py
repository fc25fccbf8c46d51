"""What a kernel may touch: the launch's buffers and the module's variables, as rows for it and as words for people."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute.layout import ALLOCATION_WORDS, READ_ONLY, AllocationSlot

GRANULE = 4
"""Bytes of an allocation that one byte of its shadow stands for."""

# An address this small is a null pointer with an offset, not a buffer missed by that much.
_NULL_PAGE = 1 << 16


class Uninitialised:
    """A buffer that nothing has written yet: `check="all"` reports a load of what no kernel wrote before.

    Given again, it remembers what earlier launches with `check="all"` wrote; after a launch with less checking it
    counts as written. Its bytes are left as they are.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.written = np.zeros(-(-array.nbytes // GRANULE), np.uint8)


@dataclass(frozen=True, eq=False)
class Buffer:
    """One array that a launch gives to a kernel, or one variable of the module.

    `axes` names the array's dimensions, `shape` are those that its indices are shown in.
    """

    name: str
    array: NDArray[Any]
    base: int
    shape: tuple[int, ...]
    axes: tuple[str, ...] = ()
    read_only: bool = False
    unwritten: Uninitialised | None = None

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.base + int(self.array.nbytes)

    @property
    def kind(self) -> str:
        """`float32[32, 128]`."""
        return f"{self.array.dtype}[{', '.join(map(str, self.shape))}]"

    def element(self, address: int) -> str:
        """`y[h=3, j=17]`, with the byte within the element unless it is the first."""
        size = self.array.dtype.itemsize or 1
        index, byte = divmod(address - self.base, size)
        places = [int(place) for place in np.unravel_index(index, self.shape)]
        words = [f"{axis}={place}" for axis, place in zip(self.axes, places, strict=True)] if self.axes else places
        rest = f" byte {byte}" if byte else ""
        return f"{self.name}[{', '.join(map(str, words))}]{rest}"


class Memory:
    """Every buffer of a launch. Buffers that overlap are one allocation.

    `rows` are the kernel's allocation table. A view's neighbours in the array it was taken from are outside.
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = tuple(buffers)
        self._ordered = sorted((each for each in buffers if each.array.nbytes), key=lambda each: (each.base, each.end))
        self._groups: list[list[Buffer]] = []
        end = 0
        for buffer in self._ordered:
            if self._groups and buffer.base < end:
                self._groups[-1].append(buffer)
            else:
                self._groups.append([buffer])
            end = max(end, buffer.end)
        self._shadows: list[NDArray[np.uint8] | None] = []
        self.rows = np.zeros((len(self._groups), ALLOCATION_WORDS), np.int64)
        for row, group in zip(self.rows, self._groups, strict=True):
            base, end = group[0].base, max(each.end for each in group)
            shadow = _shadow(group, base, end)
            self._shadows.append(shadow)
            row[AllocationSlot.BASE] = base
            row[AllocationSlot.BYTES] = end - base
            row[AllocationSlot.SHADOW] = 0 if shadow is None else shadow.ctypes.data
            # Where one of two names for a place may be written, the place may be.
            row[AllocationSlot.FLAGS] = READ_ONLY if all(each.read_only for each in group) else 0

    def row_of(self, buffer: Buffer) -> int | None:
        """Index of the buffer's row; None for an empty buffer, which has none."""
        return next((index for index, group in enumerate(self._groups) if buffer in group), None)

    def keep_written(self, *, tracked: bool) -> None:
        """Note in every `Uninitialised` what the launch wrote; everything, when the kernel did not track it."""
        for group, shadow in zip(self._groups, self._shadows, strict=True):
            for buffer in group:
                if buffer.unwritten is None or shadow is None:
                    continue
                if tracked:
                    first = (buffer.base - group[0].base) // GRANULE
                    written = buffer.unwritten.written
                    written |= shadow[first : first + len(written)]
                else:
                    buffer.unwritten.written[:] = 1

    def describe(self, address: int, size: int) -> str:
        """Where an access of `size` bytes lies: an element of a buffer, or how far outside the nearest one."""
        place = bisect_right(self._ordered, address, key=lambda each: each.base) - 1
        inside = [each for each in self._ordered if each.base <= address < each.end]
        if inside:
            buffer = inside[-1]
            over = address + size - buffer.end
            beyond = f", of which the last {_bytes(over)} are past the end of {buffer.name}" if over > 0 else ""
            return f"{buffer.element(address)}{beyond}{_size(buffer) if beyond else ''}"
        if 0 <= address < _NULL_PAGE:
            return f"a null pointer plus {_bytes(address)}" if address else "a null pointer"
        near = self._ordered[max(place, 0) : place + 2]
        near += [max(self._ordered[: place + 1], key=lambda each: each.end)] if place >= 0 else []
        if not near:
            return f"address {address & (1 << 64) - 1:#x}; the launch has no buffer"
        nearest = min(near, key=lambda each: max(each.base - address, address - each.end))
        if address < nearest.base:
            return f"{_bytes(nearest.base - address)} before {nearest.name}{_size(nearest)}"
        item = nearest.array.dtype.itemsize or 1
        index, byte = divmod(address - nearest.base, item)
        flat = f"{nearest.name}[{index}]{f' byte {byte}' if byte else ''}"
        over = address - nearest.end
        far = f"{_bytes(over)} past the end of" if over else "just past the end of"
        return f"{flat}, {far} {nearest.name}{_size(nearest)}"


def _shadow(group: Sequence[Buffer], base: int, end: int) -> NDArray[np.uint8] | None:
    """The shadow of an allocation, None if all of it counts as written."""
    if all(each.unwritten is None for each in group):
        return None
    shadow = np.zeros(-(-(end - base) // GRANULE) + 16, np.uint8)
    for buffer in group:
        first, last = (buffer.base - base) // GRANULE, -(-(buffer.end - base) // GRANULE)
        shadow[first:last] |= 1 if buffer.unwritten is None else buffer.unwritten.written[: last - first]
    return shadow


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"


def _size(buffer: Buffer) -> str:
    return f" ({buffer.kind}, {_bytes(int(buffer.array.nbytes))})"
