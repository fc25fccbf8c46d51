"""Devices that work together: a case takes one that is free. A device that is lost leaves, the others go on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Condition

from ssmtool.errors import SsmtoolError
from ssmtool.verify.loaded import Loaded


class LostError(SsmtoolError):
    """Every device of the team is out of use."""


class Team:
    """Loaded devices, lent one at a time; the CPU may be lent to `jobs` cases at once."""

    def __init__(self, members: Sequence[Loaded], jobs: int) -> None:
        self.members = tuple(members)
        self.slots = sum(1 if each.device.real else jobs for each in members)
        self._free: SimpleQueue[Loaded] = SimpleQueue()
        self._there = self.slots
        self._changed = Condition()
        self._why = ""
        for each in members:
            for _ in range(1 if each.device.real else jobs):
                self._free.put(each)

    @property
    def name(self) -> str:
        """`cuda:0+cuda:1`."""
        return "+".join(each.device.name for each in self.members)

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Loaded]:
        """A free device, waiting for one. Raises LostError when none is left."""
        loaded = self._take()
        try:
            yield loaded
        finally:
            with self._changed:
                problem = loaded.device.problem
                if problem is None:
                    self._free.put(loaded)
                else:
                    self._there -= 1
                    self._why = str(problem)
                self._changed.notify_all()

    def _take(self) -> Loaded:
        with self._changed:
            while True:
                with contextlib.suppress(Empty):
                    return self._free.get_nowait()
                if self._there <= 0:
                    raise LostError(f"{self.name} is out of use: {self._why}", hint="run it again")
                self._changed.wait()
