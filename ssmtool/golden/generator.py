"""Inputs whose bits depend on a name and nothing else: not on NumPy's version, not on the machine.

Words come from Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011), a
function of a counter and a key; the key is the SHA-256 of the stream's name. Floats are made from the words by exact
steps: integers below 2^24 times a power of two, or IEEE operations that round once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

# Raised whenever the bits of some stream change.
VERSION = 1

F32 = NDArray[np.float32]

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10


def philox(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """The four words of each counter, shape (n, 4), each below 2^32. `key` is two words; counters are below 2^64."""
    x0, x1 = counter & _LOW, counter >> _HALF
    x2 = x3 = np.zeros_like(counter)
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = x0 * _MULTIPLIERS[0], x2 * _MULTIPLIERS[1]
        x0, x1, x2, x3 = (
            (product1 >> _HALF) ^ x1 ^ np.uint64(k0),
            product1 & _LOW,
            (product0 >> _HALF) ^ x3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([x0, x1, x2, x3], axis=1)


class Stream:
    """Random arrays of one case. Each array has its own name, so adding one changes none of the others."""

    def __init__(self, seed: str) -> None:
        self.seed = seed

    def words(self, name: str, count: int) -> NDArray[np.uint64]:
        """`count` words below 2^32."""
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        key = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")
        return philox(np.arange(-(-count // 4), dtype=np.uint64), key).reshape(-1)[:count]

    def uniform(self, name: str, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> F32:
        """Uniform in [low, high): low + (high - low) * i / 2^24, rounded once from float64."""
        unit = (self.words(name, prod(shape)) >> np.uint64(8)).astype(np.float64) * 2.0**-24
        return np.asarray(low + (high - low) * unit, np.float32).reshape(shape)

    def bell_integers(self, name: str, shape: Sequence[int]) -> NDArray[np.int64]:
        """Sums of eight 16-bit integers about their mean: within 2^18, standard deviation 53510."""
        words = self.words(name, prod(shape) * 4).reshape(-1, 4)
        halves = (words & np.uint64(0xFFFF)) + (words >> np.uint64(16))
        sums: NDArray[np.int64] = halves.sum(axis=1).astype(np.int64).reshape(shape)
        return sums - 4 * 0xFFFF

    def bell(self, name: str, shape: Sequence[int], exponent: int = 0) -> F32:
        """Much like a normal distribution of standard deviation 0.82 * 2^exponent; every value is exact in fp32."""
        return (self.bell_integers(name, shape).astype(np.float64) * 2.0 ** (exponent - 16)).astype(np.float32)

    def unit(self, name: str, shape: Sequence[int]) -> F32:
        """`bell`, each vector along the last axis divided by its Euclidean norm.

        The squares are summed as integers, so that no order of summation is left to NumPy.
        """
        values = self.bell_integers(name, shape)
        norm = np.sqrt((values * values).sum(axis=-1, keepdims=True).astype(np.float64))
        return np.asarray(values.astype(np.float64) / norm, np.float32)


def ramp(low: float, high: float, count: int) -> F32:
    """`count` numbers from low to high, evenly spaced: low + i * step, in float64, then rounded."""
    return np.asarray(low + np.arange(count, dtype=np.float64) * ((high - low) / (count - 1)), np.float32)
