"""The choices of the contract, one method each. A known mistake is a subclass that makes one of them otherwise.

Axes, where they matter: h V-head, j row of the state (value index), i column (key index), c channel.
"""

# NumPy types an operation of an array and a scalar of unknown kind as Any.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.reference.arithmetic import exp, fma, log1p, tree_sum

Array = NDArray[Any]


class Rules:
    """The contract itself. `conventions` are those of the case, for mistakes that need to know its shape."""

    def __init__(self, conventions: dict[str, Any] | None = None) -> None:
        self.conventions = dict(conventions or {})

    # ------------------------------------------------------------------------------------------------ recurrence

    def step(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        """One position. s [..., h, j, i] is changed in place; returns y [..., h, j].

        S_t = exp(g) S_{t-1} (1 - beta k k^T) + beta v k^T, and y = scale S_t q, rows j of S being contiguous over i.
        """
        s *= self.decay(g)[..., None, None]
        predicted = self.total(s * k[..., None, :])
        delta = self.delta(v, predicted, beta)
        s[...] = self.update(k[..., None, :], delta[..., None], s)
        return self.scale(scale, s) * self.total(s * q[..., None, :])

    def step_two_pass(self, s: Array, q: Array, k: Array, v: Array, g: Array, beta: Array, scale: Any) -> Array:
        """The same step with y from the row before its update: q (r + k delta) = q r + (q k) delta."""
        s *= self.decay(g)[..., None, None]
        predicted = self.total(s * k[..., None, :])
        old = self.total(s * q[..., None, :])
        delta = self.delta(v, predicted, beta)
        s[...] = self.update(k[..., None, :], delta[..., None], s)
        return self.scale(scale, s) * (old + self.total(k * q)[..., None] * delta)

    def decay(self, g: Array) -> Array:
        """The input g is the logarithm of the decay."""
        return exp(g)

    def total(self, products: Array) -> Array:
        """Sum over i."""
        return tree_sum(products)

    def delta(self, v: Array, predicted: Array, beta: Array) -> Array:
        """What is learnt: the part of v that the state does not predict, times the learning rate of the head."""
        return (v - predicted) * beta[..., None]

    def update(self, k: Array, delta: Array, s: Array) -> Array:
        """The sum k delta + s, rounded once."""
        return fma(k, delta, s)

    def scale(self, scale: Any, s: Array) -> Any:
        """Factor of y."""
        return scale

    def inputs(self, q: Array, k: Array) -> tuple[Array, Array]:
        """Vectors q and k [..., h, i] as they arrive: normed, and repeated to all V-heads."""
        return q, k

    def load(self, s: Array) -> Array:
        """The state to work on, [..., h, j, i], from the buffer s[h*S*S + j*S + i]."""
        return s.copy()

    def store(self, s: Array, state: Array) -> None:
        """The state back into its buffer."""
        s[...] = state

    def snapshots(self, snaps: Array, images: Sequence[Array]) -> None:
        """Put the images where they belong: snaps[t] is the state after position t.

        `images` are the states before the first position and after each.
        """
        for t, image in enumerate(images[1:]):
            snaps[t] = image

    def positions(self, n: int) -> int:
        """How many positions a launch has."""
        return n

    def slots(self, launched: int, there: int) -> int:
        """How many users' slots are worked on, of those whose memory is there."""
        return min(launched, there)

    def guarded(self, size: int, special: int) -> bool:
        """Whether a kernel made for one state size runs."""
        return size == special

    def guarded_taps(self, taps: int, longest: int) -> bool:
        """Whether a kernel made for short filters runs."""
        return taps <= longest

    # ----------------------------------------------------------------------------------------------- convolution

    def samples(self, qkv: Array) -> Array:
        """Position-major: [n][c]."""
        return qkv

    def taps(self, weight: Array) -> Array:
        """Filter [c][k]; the last tap multiplies the newest sample."""
        return weight

    def convolve(self, history: Array, x: Array, weight: Array) -> Array:
        """The newest sample first, then the history, oldest first. history [..., c, k-1], x [..., c]."""
        w = self.taps(weight)
        acc = x * w[:, -1]
        for t in range(w.shape[1] - 1):
            acc = fma(history[..., t], w[:, t], acc)
        return acc

    def activation(self, x: Array) -> Array:
        """The silu function: x times its sigmoid."""
        return x / (1 + exp(-x))

    def push(self, history: Array, x: Array, out: Array) -> Array:
        """The oldest sample goes, the raw x comes last."""
        return np.concatenate([history, x[..., None]], axis=-1)[..., 1:]

    def final_history(self, start: Array, samples: Array, history: Array) -> Array:
        """What a launch leaves: `start` was there before it, `samples` [n, c] came."""
        return history

    # ----------------------------------------------------------------------------------------------- norms, gates

    def l2(self, sumsq: Array, eps: Any, size: int) -> Array:
        """1 / max(norm, eps), and not the root of sumsq + eps: they differ for norms near eps. max(NaN, eps) is eps."""
        return 1 / np.fmax(np.sqrt(sumsq), eps)

    def rms(self, sumsq: Array, eps: Any, size: int) -> Array:
        """1 / sqrt(mean square + eps)."""
        return 1 / np.sqrt(sumsq / size + eps)

    def gated(self, y: Array, inv: Array, weight: Array, z: Array) -> Array:
        """Norm first, then the weight, then the gate."""
        return ((y * inv) * self.norm_weight(weight)) * self.gate(z)

    def norm_weight(self, weight: Array) -> Array:
        """The factor itself, not what is to be added to 1."""
        return weight

    def gate(self, z: Array) -> Array:
        """The silu function: x times its sigmoid."""
        return z / (1 + exp(-z))

    def key_heads(self, n_k_heads: int, kv_groups: int) -> Array:
        """K-head of each V-head: interleaved, kh = vh mod n_k_heads."""
        return np.arange(n_k_heads * kv_groups) % n_k_heads

    def values(self, row: Array, key_dim: int) -> Array:
        """The part v [n, val_dim] of the rows [q | k | v]; it is copied as it is."""
        return row[:, 2 * key_dim :]

    def order(self, q: Array, k: Array) -> tuple[Array, Array]:
        """The row conv_out is q, then k, then v."""
        return q, k

    def biased(self, alpha: Array, dt: Array) -> Array:
        """The argument of softplus."""
        return alpha + dt

    def softplus(self, v: Array) -> Array:
        """The function log(1 + e^v); v itself above 20, where fp32 sees no 1 (and e^v overflows above 88)."""
        return np.where(v > 20, v, log1p(exp(np.minimum(v, 20))))

    def log_decay(self, a: Array, softplus: Array) -> Array:
        """The factor ssm_a is already negative, and already out of its logarithm."""
        return a * softplus

    def gate_heads(self, total: int, n_heads: int) -> Array:
        """Head of each index of a position-major array [n][n_heads]."""
        return np.arange(total) % n_heads

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + e^-x)."""
        return 1 / (1 + exp(-x))

    def result(self, value: Array) -> Array:
        """What is stored of a result; subnormal numbers are numbers."""
        return value
