"""Mistakes about norms, gates and heads, and about numbers that are not ordinary."""

# What each does is its name here, and in words in `ssmtool.golden.mistakes`.
# ruff: noqa: D101, D102
# NumPy types an operation of an array and a scalar of unknown kind as Any.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any

import numpy as np

from ssmtool.golden.reference.arithmetic import Array, exp, log1p
from ssmtool.golden.reference.rules import Rules

_SMALLEST_NORMAL = 2.0**-126


class GroupedHeads(Rules):
    """In the norm, where heads are repeated; in a recurrence, q and k repeated so by the host."""

    def key_heads(self, n_k_heads: int, kv_groups: int) -> Array:
        return np.arange(n_k_heads * kv_groups) // kv_groups

    def inputs(self, q: Array, k: Array) -> tuple[Array, Array]:
        heads = q.shape[-2]
        used = int(self.conventions.get("n_k_heads") or heads)
        grouped = np.arange(heads) // max(heads // used, 1)
        return q[..., grouped, :], k[..., grouped, :]


class RsqrtEps(Rules):
    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / np.sqrt(sumsq + eps)


class EpsAdded(Rules):
    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / (np.sqrt(sumsq) + eps)


class EpsSquared(Rules):
    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / np.sqrt(np.maximum(sumsq, eps))


class NoEps(Rules):
    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / np.sqrt(sumsq)


class RmsInsteadOfL2(Rules):
    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / np.sqrt(sumsq / size + eps)

    def inputs(self, q: Array, k: Array) -> tuple[Array, Array]:
        factor = np.sqrt(q.dtype.type(q.shape[-1]))
        return q * factor, k * factor


class Swapped(Rules):
    def order(self, q: Array, k: Array) -> tuple[Array, Array]:
        return k, q

    def inputs(self, q: Array, k: Array) -> tuple[Array, Array]:
        return k, q


class ValueFromKey(Rules):
    def values(self, row: Array, key_dim: int) -> Array:
        return row[:, key_dim : row.shape[1] - key_dim]


class WeightPlusOne(Rules):
    def norm_weight(self, weight: Array) -> Array:
        return 1 + weight


class L2InsteadOfRms(Rules):
    def rms(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / np.fmax(np.sqrt(sumsq), eps)


class RmsEpsMissing(Rules):
    def rms(self, sumsq: Array, eps: Any, size: int) -> Array:
        return 1 / np.sqrt(sumsq / size)


class GateSigmoid(Rules):
    def gate(self, z: Array) -> Array:
        return 1 / (1 + exp(-z))


class GateBeforeNorm(Rules):
    def gated(self, y: Array, inv: Array, weight: Array, z: Array) -> Array:
        gated = y * self.gate(z)
        return gated * (1 / np.sqrt((gated * gated).mean(axis=-1, keepdims=True) + 1e-6)) * weight


class SigmoidOfMinus(Rules):
    def sigmoid(self, x: Array) -> Array:
        return 1 / (1 + exp(x))


class SoftplusNoBranch(Rules):
    def softplus(self, v: Array) -> Array:
        return log1p(exp(v))


class SoftplusMissing(Rules):
    def softplus(self, v: Array) -> Array:
        return v


class ALog(Rules):
    def log_decay(self, a: Array, softplus: Array) -> Array:
        return -exp(a) * softplus


class DtMissing(Rules):
    def biased(self, alpha: Array, dt: Array) -> Array:
        return alpha


class NanToZero(Rules):
    def log_decay(self, a: Array, softplus: Array) -> Array:
        return np.where(softplus == 0, 0.0, a * softplus).astype(softplus.dtype)


class HeadsDivided(Rules):
    def gate_heads(self, total: int, n_heads: int) -> Array:
        return np.arange(total) // max(total // n_heads, 1) % n_heads


class Flushed(Rules):
    def result(self, value: Array) -> Array:
        return np.where(np.abs(value) < _SMALLEST_NORMAL, value * 0, value)


class NanSpread(Rules):
    def result(self, value: Array) -> Array:
        return np.full_like(value, np.nan) if np.isnan(value).any() else value
