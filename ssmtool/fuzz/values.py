"""What the arrays of a round hold: from ones to what finds numeric bugs, the same bits on every machine.

Each fill is a name; `FILLS` has them from the simplest on, since a failure shrinks towards the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from ssmtool.fuzz.choices import Choices
from ssmtool.golden.generator import Stream

F32 = NDArray[np.float32]

# Fills whose results stay finite in every kernel, the likely ones several times.
MODEST = ("ones", "zeros", "small", "bell", "bell", "bell", "signs", "sparse", "one-hot", "unit")
# The others: cancellation, wide ranges, subnormal numbers, overflow, NaN and infinities in one place.
FILLS = (*MODEST, "bell", "pairs", "mixed", "tiny", "huge", "special")


class Source:
    """Arrays of one round. `seed` names the stream; each array has a fill of its own, drawn by its name."""

    def __init__(self, choices: Choices, *, fills: Sequence[str] = FILLS, seed: int | None = None) -> None:
        self.choices = choices
        self._fills = fills
        self.stream = Stream(f"fuzz/{choices.integer('data', 0, 65535) if seed is None else seed}")

    def array(self, name: str, *shape: int, fills: Sequence[str] | None = None) -> F32:
        """An array of the shape, its fill drawn."""
        return filled(self.stream, name, shape, self.choices.pick(f"fill of {name}", fills or self._fills))

    def uniform(self, name: str, *shape: int, low: float, high: float) -> F32:
        """Numbers of an interval."""
        return self.stream.uniform(name, shape, low, high)

    def chosen(self, name: str, values: Sequence[float], *shape: int) -> F32:
        """Each element one of the values."""
        words = self.stream.words(name, prod(shape)) % np.uint64(len(values))
        return np.asarray(values, np.float32)[words.astype(np.int64)].reshape(shape)


def filled(stream: Stream, name: str, shape: tuple[int, ...], fill: str) -> F32:
    """The array `name` of the stream, filled in the way named."""
    if fill == "ones":
        return np.ones(shape, np.float32)
    if fill == "zeros":
        return np.zeros(shape, np.float32)
    words = stream.words(f"{name}/{fill}", prod(shape)).astype(np.int64).reshape(shape)
    if fill == "small":
        return (words % 5 - 2).astype(np.float32)
    if fill == "signs":  # with zeros of both signs among them
        return np.asarray([1, -1, 1, -1, 1, -1, 0.0, -0.0], np.float32)[words % 8]
    if fill == "unit":
        return stream.unit(name, shape) if shape[-1] > 1 else np.ones(shape, np.float32)
    bell = stream.bell(name, shape)
    if fill == "sparse":
        return np.where(words % 8 == 0, bell, np.float32(0))
    if fill == "one-hot":
        return np.where(np.arange(shape[-1]) == words[..., :1] % shape[-1], np.float32(1), np.float32(0))
    if fill == "pairs":  # the second half of the last axis takes back the first, up to its last bits
        half = shape[-1] // 2
        bell[..., half : 2 * half] = -bell[..., :half] * (1 + (words[..., :half] % 3) * np.float32(2.0**-22))
        return bell
    if fill == "mixed":
        return np.ldexp(bell, (words % 41 - 20).astype(np.int32))
    if fill == "tiny":  # half of them subnormal
        return np.ldexp(bell, (words % 24 - 140).astype(np.int32))
    if fill == "huge":
        return np.ldexp(bell, (words % 8 + 96).astype(np.int32))
    if fill == "special":
        flat = bell.reshape(-1)
        for number, value in enumerate((np.nan, np.inf, -np.inf, -0.0)[: 1 + int(words.reshape(-1)[0]) % 4]):
            flat[int(stream.words(f"{name}/place {number}", 1)[0]) % flat.size] = value
        return bell
    return bell
