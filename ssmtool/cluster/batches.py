"""Pieces in tasks of some tenths of a second: a task costs milliseconds on its way, and a round may take less.

How long a piece takes is learned from those that came back, by the kind of piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ssmtool.cluster.sweep import Piece

# Seconds of a task: the overhead is then about a hundredth, and a lost worker takes little along.
TASK_S = 0.4
_LEAST_S = 0.05
# What one task may carry through the scheduler, unless one piece alone is more.
_BYTES = 4 << 20
_MOST = 256
# Weight of the newest time of a kind.
_NEWEST = 0.3


@dataclass(frozen=True)
class Sized:
    """A piece to come: its number, what kind it is, how long it may take (before one is known), and how large it is."""

    number: int
    kind: str
    seconds: float
    nbytes: int = 0


class Batches:
    """An iterator of tasks over pieces, which may be without end; `count` of them where that is known.

    `load` makes what is sent of a piece, when it is its turn; `slots` is how many tasks run at once.
    """

    def __init__(
        self, pieces: Iterable[Sized], load: Callable[[int], Any], slots: Callable[[], int], count: int | None = None
    ) -> None:
        self._pieces = iter(pieces)
        self._load = load
        self._slots = slots
        self._left = count
        self._next = next(self._pieces, None)
        self._known: dict[str, float] = {}
        self._kinds: dict[int, str] = {}

    def learn(self, number: int, seconds: float) -> None:
        """The piece of this number took so long."""
        kind = self._kinds.pop(number)
        before = self._known.get(kind, seconds)
        self._known[kind] = (1 - _NEWEST) * before + _NEWEST * seconds

    def __iter__(self) -> Iterator[list[Piece]]:
        return self

    def __next__(self) -> list[Piece]:
        if self._next is None:
            raise StopIteration
        most = self._most()
        batch: list[Piece] = []
        seconds, nbytes = 0.0, 0
        while (each := self._next) is not None and len(batch) < _MOST:
            takes = self._known.get(each.kind, each.seconds)
            if batch and (seconds + takes > most or nbytes + each.nbytes > _BYTES):
                break
            seconds, nbytes = seconds + takes, nbytes + each.nbytes
            batch.append(Piece(each.number, self._load(each.number)))
            self._kinds[each.number] = each.kind
            self._next = next(self._pieces, None)
        if self._left is not None:
            self._left -= len(batch)
        return batch

    def _most(self) -> float:
        """Seconds of the next task: less towards the end, so that all workers end together."""
        if self._left is None or not self._known:
            return TASK_S
        rest = self._left * sum(self._known.values()) / len(self._known)
        return min(TASK_S, max(_LEAST_S, rest / (3 * max(1, self._slots()))))
