"""Mistakes about states: their layout, their decay, their update, their slots and snapshots."""

# What each does is its name here, and in words in `ssmtool.golden.mistakes`.
# ruff: noqa: D101, D102
# NumPy types an operation of an array and a scalar of unknown kind as Any.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ssmtool.golden.reference.arithmetic import Array, exp, fp32_range
from ssmtool.golden.reference.rules import Rules

_WARP = 32


def _turned(s: Array) -> Array:
    """The transpose of a state; a convolution's history is no square."""
    return np.swapaxes(s, -1, -2) if s.shape[-1] == s.shape[-2] else s


class ReadTransposed(Rules):
    def load(self, s: Array) -> Array:
        return _turned(s).copy()


class WrittenTransposed(Rules):
    def store(self, s: Array, state: Array) -> None:
        s[...] = _turned(state)


class Transposed(ReadTransposed, WrittenTransposed):
    pass


class Reset(Rules):
    def load(self, s: Array) -> Array:
        return np.zeros_like(s)


class NotWritten(Rules):
    def store(self, s: Array, state: Array) -> None:
        return


class StateBf16(Rules):
    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        y = super().step(s, q, k, v, g, beta, scale)
        # Upper half of an fp32, to the nearest, ties to even.
        bits = s.astype(np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
        s[...] = rounded.astype(np.uint32).view(np.float32)
        return y


class StateFp16(Rules):
    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        y = super().step(s, q, k, v, g, beta, scale)
        s[...] = s.astype(np.float16)
        return y


class LinearDecay(Rules):
    def decay(self, g: Array) -> Array:
        return g


class DecayTwice(Rules):
    def decay(self, g: Array) -> Array:
        return exp(exp(g))


class DecayMissing(Rules):
    def decay(self, g: Array) -> Array:
        return np.ones_like(g)


class DecayQuotients(Rules):
    """A chunked form: the state divided by the product of all decays so far, multiplied by it when it is read."""

    def __init__(self, conventions: dict[str, Any] | None = None) -> None:
        super().__init__(conventions)
        self.logarithm: Array | None = None

    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        self.logarithm = g if self.logarithm is None else self.logarithm + g
        product = exp(self.logarithm)[..., None, None]
        s[...] = s * (self.decay(g)[..., None, None] * fp32_range(product / product))
        predicted = self.total(s * k[..., None, :])
        s[...] = self.update(k[..., None, :], self.delta(v, predicted, beta)[..., None], s)
        return self.scale(scale, s) * self.total(s * q[..., None, :])


class DecayOnUpdate(Rules):
    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        decay = self.decay(g)[..., None, None]
        s *= decay
        delta = self.delta(v, self.total(s * k[..., None, :]), beta)
        s += decay * k[..., None, :] * delta[..., None]
        return self.scale(scale, s) * self.total(s * q[..., None, :])


class DecayAfterUpdate(Rules):
    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        delta = self.delta(v, self.total(s * k[..., None, :]), beta)
        s[...] = self.update(k[..., None, :], delta[..., None], s) * self.decay(g)[..., None, None]
        return self.scale(scale, s) * self.total(s * q[..., None, :])


class PredictedBeforeDecay(Rules):
    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        delta = self.delta(v, self.total(s * k[..., None, :]), beta)
        s[...] = self.update(k[..., None, :], delta[..., None], s * self.decay(g)[..., None, None])
        return self.scale(scale, s) * self.total(s * q[..., None, :])


class OldState(Rules):
    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        old = s * self.decay(g)[..., None, None]
        super().step(s, q, k, v, g, beta, scale)
        return self.scale(scale, s) * self.total(old * q[..., None, :])

    def step_two_pass(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        return self.step(s, q, k, v, g, beta, scale)


class BetaMissing(Rules):
    def delta(self, v: Array, predicted: Array, beta: Array) -> Array:
        return v - predicted


class DeltaMissing(Rules):
    def delta(self, v: Array, predicted: Array, beta: Array) -> Array:
        return v * beta[..., None]


class ScaleMissing(Rules):
    def scale(self, scale: Any, s: Array) -> Any:
        return s.dtype.type(1)


class ScaleTwice(Rules):
    def scale(self, scale: Any, s: Array) -> Any:
        return scale * scale


class Unfused(Rules):
    def update(self, k: Array, delta: Array, s: Array) -> Array:
        return (k * delta).astype(np.float32).astype(s.dtype) + s


class LostWarp(Rules):
    def total(self, products: Array) -> Array:
        return super().total(products[..., :_WARP])


class SnapshotBefore(Rules):
    def snapshots(self, snaps: Array, images: Sequence[Array]) -> None:
        for t, image in enumerate(images[:-1]):
            snaps[t] = image


class SnapshotsReversed(Rules):
    def snapshots(self, snaps: Array, images: Sequence[Array]) -> None:
        for t, image in enumerate(images[:0:-1]):
            snaps[t] = image


class ZeroLengthWrites(Rules):
    def positions(self, n: int) -> int:
        return max(n, 1)


class GuardMissing(Rules):
    def guarded(self, size: int, special: int) -> bool:
        return True

    def guarded_taps(self, taps: int, longest: int) -> bool:
        return True


class SlotZero(Rules):
    def load(self, s: Array) -> Array:
        return np.broadcast_to(s[:1], s.shape).copy()


class SlotsShifted(Rules):
    def load(self, s: Array) -> Array:
        return np.roll(s, -1, axis=0)


class AllSlots(Rules):
    def slots(self, launched: int, there: int) -> int:
        return there
