"""Random shapes and inputs of one round of a relation: the same for the same seed, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.generator import Stream
from ssmtool.verify.contract import SPECIAL_SIZE, Dims

F32 = NDArray[np.float32]
T = TypeVar("T")

# State sizes beside 128: few, and those of the vectors, since the executor compiles a kernel for each.
SMALL_SIZES = (16,)
# Most elements of all states of one launch: a few MB, so that no round is long.
_MOST_STATE = 1 << 18


@dataclass(frozen=True)
class Step:
    """Inputs of the recurrence. q, k, v are [..., h, i]; g and beta [..., h]; read-only: no kernel may write them."""

    q: F32
    k: F32
    v: F32
    g: F32
    beta: F32

    def __getitem__(self, index: Any) -> Step:
        """The inputs of some positions or users."""
        return Step(*(_kept(getattr(self, each.name)[index]) for each in fields(self)))

    def heads(self, order: NDArray[np.int64]) -> Step:
        """The same with its heads in another order."""
        rows = (np.take(each, order, axis=-2) for each in (self.q, self.k, self.v))
        return Step(*map(_kept, (*rows, np.take(self.g, order, axis=-1), np.take(self.beta, order, axis=-1))))

    def named(self) -> dict[str, F32]:
        """By the contract's names."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Draw:
    """Choices and arrays of one round; each has a name, so that one more changes none of the others."""

    def __init__(self, seed: int, relation: str, number: int) -> None:
        self.round = number
        self._stream = Stream(f"verify/{seed}/{relation}/{number}")

    def integer(self, name: str, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return low + int(self._stream.words(name, 1)[0]) % (high - low + 1)

    def pick(self, name: str, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(name, 0, len(options) - 1)]

    def order(self, name: str, count: int) -> NDArray[np.int64]:
        """A permutation that moves something, where anything can be moved."""
        order = np.argsort(self._stream.words(name, count), kind="stable").astype(np.int64)
        return np.roll(order, 1) if count > 1 and (order == np.arange(count)).all() else order

    def dims(self, *, size: int | None = None, most_n: int = 9, most_users: int = 1) -> Dims:
        """A shape: the first round of every relation has S = 128, the size of the model."""
        size = size or (SPECIAL_SIZE if self.round == 0 else self.pick("size", (SPECIAL_SIZE, *SMALL_SIZES)))
        users = self.integer("users", min(most_users, 2), most_users)
        # 5 once in every relation: a loop over groups that is unrolled by 4 then runs its body and its rest.
        groups = 5 if self.round == 1 else self.pick("groups", (1, 2, 3, 4))
        room = _MOST_STATE // (size * size * users)
        key_heads = self.integer("key_heads", 1, max(1, min(4, room // groups)))
        return Dims(
            heads=key_heads * groups,
            key_heads=key_heads,
            size=size,
            n=self.integer("n", 1, most_n),
            users=users,
            channels=self.integer("channels", 1, 700),
            taps=4 if self.round == 0 else self.integer("taps", 1, 4),
        )

    def state(self, d: Dims, *lead: int) -> F32:
        """A state that some tokens have left."""
        return self._stream.bell("s", (*lead, d.heads, d.size, d.size), -4)

    def step(self, d: Dims, *lead: int) -> Step:
        """Inputs: q and k of length 1, decays from none to strong."""
        rows, heads = (*lead, d.heads, d.size), (*lead, d.heads)
        stream = self._stream
        return Step(
            *map(
                _kept,
                (
                    stream.unit("q", rows),
                    stream.unit("k", rows),
                    stream.bell("v", rows),
                    stream.uniform("g", heads, -3.0, 0.0),
                    stream.uniform("beta", heads),
                ),
            )
        )

    def bell(self, name: str, *shape: int, exponent: int = 0) -> F32:
        """An input much like normal numbers."""
        return _kept(self._stream.bell(name, shape, exponent))

    def uniform(self, name: str, *shape: int, low: float, high: float) -> F32:
        """An input of an interval."""
        return _kept(self._stream.uniform(name, shape, low, high))

    def cuts(self, n: int) -> list[int]:
        """Lengths of chunks: n in chunks of 1 and 2 and larger ones, in random order."""
        left, sizes = n, []
        for number in range(n):
            if left == 0:
                break
            wish = (1, 2)[number] if number < 2 else self.integer(f"cut {number}", 1, left)
            sizes.append(min(wish, left))
            left -= sizes[-1]
        return [sizes[index] for index in self.order("cuts", len(sizes))]


def _kept(array: F32) -> F32:
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array.flags.writeable = False
    return array
