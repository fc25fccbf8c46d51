"""The buffers of a launch on a card: one allocation for those that overlap, with guards on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssmtool.device.binding import Binding
from ssmtool.device.errors import OutsideWriteError

if TYPE_CHECKING:
    from ssmtool.execute.memory import Buffer

# Bytes before and after each allocation: enough for a row of 128 floats missed by one, and keeps the alignment of 256.
GUARD = 1024
# A NaN, so that what is read out there shows in the results as well.
_PATTERN = 0x7FC0CAFE


@dataclass
class _Group:
    """Buffers that overlap: `host` is all their bytes (of one buffer the array's own), at `address` on the card."""

    buffers: list[Buffer]
    host: NDArray[np.uint8]
    base: int
    address: int


class CardMemory:
    """All buffers of one launch on the card. Raises BindingError; nothing is left allocated then."""

    def __init__(self, binding: Binding, buffers: Sequence[Buffer]) -> None:
        self._binding = binding
        self._groups: list[_Group] = []
        self._guard = np.full(GUARD // 4, _PATTERN, np.uint32).view(np.uint8)
        try:
            for members in _overlapping(buffers):
                self._groups.append(self._place(members))
        except BaseException:
            self.free()
            raise

    def _place(self, members: list[Buffer]) -> _Group:
        base, end = members[0].base, max(each.end for each in members)
        host = _bytes_of(members, base, end)
        allocation = self._binding.alloc(end - base + 2 * GUARD)
        group = _Group(members, host, base, allocation + GUARD)
        try:
            self._binding.copy_in(allocation, self._guard)
            self._binding.copy_in(group.address, host)
            self._binding.copy_in(group.address + host.nbytes, self._guard)
        except BaseException:
            self._binding.free(allocation)
            raise
        return group

    def address(self, buffer: Buffer) -> int:
        """Where a buffer lies on the card; one without bytes lies where the host says."""
        for group in self._groups:
            if any(each is buffer for each in group.buffers):
                return group.address + buffer.base - group.base
        return buffer.base

    def put_back(self) -> None:
        """Everything as it was before the launch."""
        for group in self._groups:
            self._binding.copy_in(group.address, group.host)

    def fetch(self, entry: str) -> None:
        """Bring the buffers back into the caller's arrays.

        Raises OutsideWriteError when a guard or a read-only array has changed; the arrays are brought back even then.
        """
        wrong: list[str] = []
        for group in self._groups:
            self._fetch(group, wrong)
            before = self._changed(group.address - GUARD)
            after = self._changed(group.address + group.host.nbytes)
            last = max(group.buffers, key=lambda each: each.end)
            if before.size:
                wrong.append(f"{_element(group.buffers[0], int(before[-1]) - GUARD)}, before its start, was written")
            if after.size:
                wrong.append(f"{_element(last, last.array.nbytes + int(after[0]))}, past its end, was written")
        if wrong:
            raise OutsideWriteError(
                f"{entry} stored outside its buffers: {'; '.join(wrong)}",
                hint="run it with `ssmtool run ... --check all`, which names the access",
            )

    def _fetch(self, group: _Group, wrong: list[str]) -> None:
        """Bring back one allocation, without a second copy where it is one array: that may be most of the memory."""
        only = group.buffers[0]
        if len(group.buffers) == 1 and not only.read_only:
            self._binding.copy_out(group.host, group.address)
            return
        inside = np.empty(group.host.nbytes, np.uint8)
        self._binding.copy_out(inside, group.address)
        fixed = all(each.read_only for each in group.buffers)
        for buffer in group.buffers:
            start = buffer.base - group.base
            part = inside[start : start + buffer.array.nbytes]
            if not buffer.read_only:
                buffer.array.reshape(-1).view(np.uint8)[...] = part
            elif fixed and not np.array_equal(part, group.host[start : start + buffer.array.nbytes]):
                wrong.append(f"{buffer.name}, which is read-only, was written")

    def _changed(self, address: int) -> NDArray[np.intp]:
        """Which bytes of the guard at an address are not as they were."""
        found = np.empty(GUARD, np.uint8)
        self._binding.copy_out(found, address)
        return np.flatnonzero(found != self._guard)

    def free(self) -> None:
        """Give all of it back. A second call does nothing."""
        while self._groups:
            self._binding.free(self._groups.pop().address - GUARD)


def _element(buffer: Buffer, offset: int) -> str:
    """`y[32]` of a byte's offset in the flat array."""
    return f"{buffer.name}[{offset // (buffer.array.dtype.itemsize or 1)}]"


def _overlapping(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """Buffers that share bytes, together, each group in the order of addresses."""
    groups: list[list[Buffer]] = []
    end = 0
    for buffer in sorted((each for each in buffers if each.array.nbytes), key=lambda each: (each.base, each.end)):
        if groups and buffer.base < end:
            groups[-1].append(buffer)
        else:
            groups.append([buffer])
        end = max(end, buffer.end)
    return groups


def _bytes_of(members: Sequence[Buffer], base: int, end: int) -> NDArray[np.uint8]:
    """The members' bytes, as they are now: the array itself where it is one."""
    if len(members) == 1:
        return members[0].array.reshape(-1).view(np.uint8)
    host = np.empty(end - base, np.uint8)
    for buffer in members:
        start = buffer.base - base
        host[start : start + buffer.array.nbytes] = buffer.array.reshape(-1).view(np.uint8)
    return host
