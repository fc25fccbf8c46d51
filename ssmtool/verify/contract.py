"""How the product's kernels are launched: argument order, layout and launch shape by name (docs/kernels.md).

The relations are written with it. A PTX without these names is not the product, and the relations do not apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssmtool.golden.reference import KERNELS

# The one state size that kernels 9, 10 and the fast ones are made for.
SPECIAL_SIZE = 128
FAST_ENTRIES = ("fc_ssm_recurrence_slots_warp", "fc_ssm_recurrence_seq_warp_multi", "fc_ssm_decode_step")
SPECIAL_ENTRIES = ("fc_ssm_recurrence_seq_unroll128", "fc_ssm_recurrence_seq_warp", *FAST_ENTRIES)
_THREADS = 256


@dataclass(frozen=True)
class Dims:
    """Sizes that a launch goes by: `heads` V-heads, `key_heads` K-heads, state `size`, `n` positions, `users` slots.

    `rows` of the state are what a warp of kernels 16 (2, 4 or 8) and 17 (4 or 8) takes: their launch's shape says it.
    """

    heads: int = 1
    key_heads: int = 1
    size: int = SPECIAL_SIZE
    n: int = 1
    users: int = 1
    channels: int = 1
    taps: int = 4
    rows: int = 8

    @property
    def groups(self) -> int:
        """V-heads of one K-head."""
        return self.heads // self.key_heads


Extent = tuple[int, int, int]
Shape = tuple[Extent, int, int]


def _row_blocks(d: Dims) -> Shape:
    return (d.size, d.heads, 1), d.size, d.size


def _warp_rows(d: Dims) -> Shape:
    return (max(1, d.size // 4), d.heads, 1), _THREADS // 2, 2 * d.n


def _channels(d: Dims) -> Shape:
    return (_blocks(d.channels), 1, 1), _THREADS, 0


def _blocks(count: int) -> int:
    return max(1, -(-count // _THREADS))


# entry -> (grid, threads of a block, floats of dynamic shared memory)
_SHAPES: dict[str, Callable[[Dims], Shape]] = {
    "fc_ssm_recurrence": _row_blocks,
    "fc_ssm_conv1d_silu": _channels,
    "fc_ssm_gated_norm": lambda d: ((d.heads, 1, 1), d.size, d.size),
    "fc_sigmoid": lambda d: ((_blocks(d.n), 1, 1), _THREADS, 0),
    "fc_ssm_decay_gate": lambda d: ((_blocks(d.heads), 1, 1), _THREADS, 0),
    "fc_ssm_qknorm_gqa": lambda d: ((d.key_heads, 1, 1), d.size, 2 * d.size),
    "fc_ssm_conv1d_silu_seq": _channels,
    "fc_ssm_recurrence_seq": _row_blocks,
    "fc_ssm_recurrence_seq_unroll128": _row_blocks,
    "fc_ssm_recurrence_seq_warp": _warp_rows,
    "fc_ssm_conv1d_silu_slots": lambda d: ((_blocks(d.channels), d.users, 1), _THREADS, 0),
    "fc_ssm_recurrence_slots": lambda d: ((d.size, d.heads, d.users), d.size, d.size),
    "fc_ssm_recurrence_slots_2pass": lambda d: ((d.size, d.heads, d.users), d.size, 3 * d.size),
    "fc_ssm_decay_gate_nx": lambda d: ((_blocks(d.n * d.heads), 1, 1), _THREADS, 0),
    "fc_ssm_qknorm_gqa_nx": lambda d: ((d.key_heads, max(1, d.n), 1), d.size, 2 * d.size),
    # One warp a block in 16, four in 17; any other of their shapes gives the same bits.
    "fc_ssm_recurrence_slots_warp": lambda d: ((SPECIAL_SIZE // d.rows, d.heads, d.users), 32, 0),
    "fc_ssm_recurrence_seq_warp_multi": lambda d: ((SPECIAL_SIZE // (4 * d.rows), d.heads, 1), 128, 0),
    "fc_ssm_decode_step": lambda d: ((d.key_heads, d.users, 1), 512, (2 + 2 * d.groups) * d.size),
}

ENTRIES = tuple(_SHAPES)

# Parameters in order, by their names in C.
_PARAMETERS: dict[str, tuple[str, ...]] = {entry: names for entry, (_, names) in KERNELS.items()}


@dataclass(frozen=True)
class Call:
    """One launch of a product's kernel with its arguments in order."""

    entry: str
    grid: Extent
    block: Extent
    shared_bytes: int
    args: tuple[Any, ...]


def call(entry: str, dims: Dims, arguments: Mapping[str, Any]) -> Call:
    """A launch, arguments by the contract's names; integers that follow from `dims` are filled in.

    Python integers become int32 and floats fp32; arrays and None are buffers and null.
    """
    known = _scalars(dims, entry)
    values = [arguments[name] if name in arguments else known[name] for name in _PARAMETERS[entry]]
    grid, block, floats = _SHAPES[entry](dims)
    return Call(entry, grid, (block, 1, 1), 4 * floats, tuple(_typed(value) for value in values))


def block_of(entry: str, dims: Dims) -> int:
    """Threads of a block."""
    return _SHAPES[entry](dims)[1]


def _scalars(d: Dims, entry: str) -> dict[str, Any]:
    key_dim, value_dim = d.key_heads * d.size, d.heads * d.size
    return {
        "state_size": d.size,
        "S": d.size,
        "n_v_heads": d.heads,
        "n_heads": d.heads,
        "n_k_heads": d.key_heads,
        "kv_groups": d.groups,
        "key_dim": key_dim,
        "val_dim": value_dim,
        "conv_dim": d.channels,
        "conv_kernel": d.taps,
        "n": d.heads if entry == "fc_ssm_decay_gate" else d.n,
        "total": d.n * d.heads,
        "scale": float(1 / np.sqrt(d.size)),
        "eps": 1e-6,
        "qk_eps": 1e-6,
        "norm_eps": 1e-6,
        "snaps": None,
    }


def _typed(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, np.ndarray | np.generic):
        return value
    return np.int32(value) if isinstance(value, int) else np.float32(value)
