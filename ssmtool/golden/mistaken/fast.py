"""Mistakes about the decode step: what its parts take from each other."""

# What each does is its name here, and in words in `ssmtool.golden.mistakes`.
# ruff: noqa: D101, D102
from __future__ import annotations

from typing import Any

import numpy as np

from ssmtool.golden.reference.arithmetic import Array
from ssmtool.golden.reference.rules import Rules


class HistoryBeforeUse(Rules):
    def convolve(self, history: Array, x: Array, weight: Array) -> Array:
        return super().convolve(self.push(history, x, x), x, weight)


class BetaRaw(Rules):
    def sigmoid(self, x: Array) -> Array:
        return x


class _Grouped(Rules):
    def _grouped(self, heads: int) -> Array:
        """Where V-head vh is when the V-heads of one K-head lie side by side."""
        key_heads = int(self.conventions.get("n_k_heads") or 1)
        return np.arange(heads).reshape(key_heads, -1).T.reshape(-1)


class GateHeadsGrouped(_Grouped):
    def gate_heads(self, total: int, n_heads: int) -> Array:
        return self._grouped(n_heads)[np.arange(total) % n_heads]


class ValuesGrouped(_Grouped):
    def values(self, row: Array, key_dim: int) -> Array:
        v = super().values(row, key_dim)
        key_heads = int(self.conventions.get("n_k_heads") or 1)
        size = key_dim // key_heads
        return v.reshape(v.shape[0], -1, size)[:, self._grouped(v.shape[1] // size)].reshape(v.shape)


class OneEps(Rules):
    def __init__(self, conventions: dict[str, Any] | None = None) -> None:
        super().__init__(conventions)
        self.first: Any = None

    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        self.first = eps
        return super().l2(sumsq, eps, size)

    def rms(self, sumsq: Array, eps: Any, size: int) -> Array:
        return super().rms(sumsq, self.first, size)
