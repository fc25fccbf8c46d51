"""Named choices of one round, read from a string of bytes: what hypothesis draws, and what it shrinks.

All bytes zero is the simplest round: every choice is then its lowest value, every pick its first option. Nothing here
imports hypothesis, so that a round can be made again from its bytes without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

# Bytes of a round: more than any draw of the product's kernels reads. What is read beyond is 0.
TAPE_BYTES = 96
# Characters of an option, as reports tell it.
_LONGEST = 40


class Choices:
    """Choices read from `tape`, two bytes each (one where a byte is enough), in the order in which they are asked for.

    `made` has every choice by its name as a number, of a pick the option's; `values` what it stands for, as reports
    tell it; `bounds` has the lowest and the highest number it could be.
    """

    def __init__(self, tape: bytes) -> None:
        self._tape = tape
        self._at = 0
        self.made: dict[str, int] = {}
        self.values: dict[str, str] = {}
        self.bounds: dict[str, tuple[int, int]] = {}

    def integer(self, name: str, low: int, high: int) -> int:
        """A number from low to high, both included. Raises ValueError where there is none."""
        if high < low:
            raise ValueError(f"{name}: there is no integer from {low} to {high}")
        value = self.made[name] = self._value(name, low, high)
        self.values[name] = str(value)
        self.bounds[name] = low, high
        return value

    def _value(self, _name: str, low: int, high: int) -> int:
        width = 1 if high - low < 256 else 2 if high - low < 65536 else 4
        word = int.from_bytes(self._tape[self._at : self._at + width].ljust(width, b"\0"), "big")
        self._at += width
        return low + word % (high - low + 1)

    def pick(self, name: str, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest. An option that is there twice is drawn twice as often."""
        picked = options[self.integer(name, 0, len(options) - 1)]
        self.values[name] = _told(picked)
        return picked

    def flag(self, name: str) -> bool:
        """Yes or no; no is simpler."""
        return bool(self.integer(name, 0, 1))

    def rarely(self, name: str, one_in: int) -> bool:
        """Yes, once in so many rounds."""
        return self.integer(name, 0, one_in - 1) == one_in - 1


def _told(value: object) -> str:
    """An option in a few characters of one line; one that does not print is told by its type."""
    try:
        words = " ".join((f"{value:g}" if isinstance(value, float) else str(value)).split())
    except Exception:  # a user's own object may raise anything
        words = type(value).__name__
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


class Replayed(Choices):
    """Choices that were made before, by their names; one that was not is the lowest."""

    def __init__(self, made: Mapping[str, int]) -> None:
        super().__init__(b"")
        self._before = made

    def _value(self, name: str, low: int, high: int) -> int:
        return min(max(self._before.get(name, low), low), high)
