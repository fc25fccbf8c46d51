"""Kernels 3, 6, 15: the gated RMS norm of the output; the L2 norm of q and k, repeated to V-heads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.reference.arithmetic import fma, tree_sum
from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules

Array = NDArray[Any]


def gated_norm(launch: Bound, rules: Rules) -> None:
    """Each head by its own mean square; the weight is shared by the heads. The grid is n_v_heads."""
    size, heads, threads = launch.int("state_size"), launch.grid[0], launch.block[0]
    y, z = launch.array("y", heads, size), launch.array("z", heads, size)
    inv = rules.rms(_strided_sumsq(y, threads), launch.float("eps"), size)[:, None]
    gated = rules.gated(y, inv, launch.array("weight", size), z)
    launch.array("gated", heads, size)[...] = rules.result(gated)


def _strided_sumsq(y: Array, threads: int) -> Array:
    """Thread t sums the squares of elements t, t + threads, ...; then the tree over the threads."""
    rows = -(-y.shape[-1] // threads)
    padded = np.zeros((*y.shape[:-1], rows * threads), y.dtype)
    padded[..., : y.shape[-1]] = y
    parts = padded.reshape(*y.shape[:-1], rows, threads)
    acc = np.zeros_like(parts[..., 0, :])
    for row in range(rows):
        acc = fma(parts[..., row, :], parts[..., row, :], acc)
    return tree_sum(acc)


def qknorm_gqa(launch: Bound, rules: Rules) -> None:
    """One position. The grid is n_k_heads."""
    _qknorm(launch, rules, n=1, size_of_v=0)


def qknorm_gqa_nx(launch: Bound, rules: Rules) -> None:
    """All n positions, and a copy of v. The grid is (n_k_heads, n)."""
    _qknorm(launch, rules, n=launch.grid[1], size_of_v=launch.int("val_dim"))


def _qknorm(launch: Bound, rules: Rules, *, n: int, size_of_v: int) -> None:
    heads, groups, size = launch.int("n_k_heads"), launch.int("kv_groups"), launch.int("S")
    key_dim, eps = launch.int("key_dim"), launch.float("eps")
    row = launch.array("conv_out", n, 2 * key_dim + size_of_v)
    used = heads * size
    q, k = rules.order(row[:, :used], row[:, key_dim : key_dim + used])
    of_v_head = rules.key_heads(heads, groups)
    for name, x in (("qg", q), ("kg", k)):
        vectors = x.reshape(n, heads, size)
        inv = rules.l2(tree_sum(vectors * vectors), eps, size)[..., None]
        launch.array(name, n, groups * heads, size)[...] = rules.result((vectors * inv)[:, of_v_head])
    if size_of_v:
        launch.array("vg", n, size_of_v)[...] = rules.values(row, key_dim)
