"""What is timed: the recurrences over positions and over users, and the whole decode step, by docs/kernels.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.bench.beside.api import DECODE, PREFILL, STEP
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.golden import GoldenCase

F32 = NDArray[np.float32]
S = 128
_SCALE = np.float32(S**-0.5)
_EPS = np.float32(1e-6)
_FLOAT = 4
# Of one element of one row and position: decay, two products, two sums, the update (two).
_OPERATIONS = 7

# Buffers of a recurrence, by the names of its parameters.
_RECURRENCE: dict[str, Any] = {name: name for name in ("s", "q", "k", "v", "g", "beta", "y")}
_MOST_SHARED = 48 * 1024

CHAIN = "single kernels"
"""The case that is not one kernel: 11, 15, 14, 4, 12 and 3, which `fc_ssm_decode_step` does in one launch."""


@dataclass(frozen=True)
class Part:
    """A buffer from one of its elements on, each of `itemsize` bytes."""

    buffer: str
    element: int
    itemsize: int


@dataclass(frozen=True)
class Call:
    """One launch; arguments by their names in C, buffers by name or as `Part`."""

    entry: str
    grid: tuple[int, ...]
    block: int | tuple[int, ...]
    shared_bytes: int
    args: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """Launches that are timed as one. `outputs` are the buffers whose bits are compared within a group."""

    name: str
    group: str
    calls: tuple[Call, ...]
    outputs: tuple[str, ...]
    rows: int
    bytes: int


@dataclass
class Group:
    """Cases over the same buffers: `make` gives their contents, `kept` names those that are put back each time.

    `kind`, `positions`, `users`, `heads`, `size` and `scale` are what work from outside is told. `unit` is what the
    rows of its cases are; `vector` what a group made of a golden vector is held to.
    """

    title: str
    make: Callable[[], dict[str, NDArray[Any]]]
    kept: tuple[str, ...]
    kind: str
    positions: int
    users: int
    heads: int
    snapshots: bool = False
    cases: list[Case] = field(default_factory=list)
    size: int = S
    scale: float = float(_SCALE)
    unit: str = "row and position"
    vector: GoldenCase | None = None

    @property
    def operations(self) -> int:
        """Floating-point operations of the recurrence itself; 0 for a vector, of which they are not known."""
        return 0 if self.vector is not None else self.cases[0].rows * S * _OPERATIONS


def _normal(rng: np.random.Generator, *shape: int) -> F32:
    return rng.standard_normal(shape).astype(np.float32)


def _rows(n: int, heads: int) -> dict[str, F32]:
    """q, k, v, g and beta of n positions or users, and y."""
    rng = np.random.default_rng(n)
    q, k = _normal(rng, n, heads, S), _normal(rng, n, heads, S)
    return {
        "q": q / np.linalg.norm(q, axis=-1, keepdims=True),
        "k": k / np.linalg.norm(k, axis=-1, keepdims=True),
        "v": _normal(rng, n, heads, S),
        "g": -rng.exponential(0.1, (n, heads)).astype(np.float32),
        "beta": rng.uniform(0, 1, (n, heads)).astype(np.float32),
        "y": np.zeros((n, heads, S), np.float32),
    }


def _states(users: int, heads: int) -> F32:
    """A state of each user; as large as they get, so that drawing them all would take longer than the timing."""
    rng = np.random.default_rng(1)
    factors = rng.uniform(0.5, 2, (users, 1, 1, 1)).astype(np.float32)
    return factors * _normal(rng, heads, S, S)


def prefill(n: int, heads: int, snapshots: bool = False) -> Group:
    """Kernels 8, 9, 10 and 17 over n positions of one user; 17 with eight and with four rows a warp.

    With `snapshots` they also store the state after each position, 4*n*heads*S*S bytes.
    """

    def make() -> dict[str, F32]:
        images = {"snaps": np.zeros((n, heads, S, S), np.float32)} if snapshots else {}
        return {"s": _normal(np.random.default_rng(0), heads, S, S), **_rows(n, heads), **images}

    title = f"prefill, {n} position{'s' * (n > 1)}{', every snapshot' * snapshots}"
    group = Group(title, make, ("s", "y"), PREFILL, n, 1, heads, snapshots)
    scalars = {"state_size": S, "n_v_heads": heads, "n": n, "scale": _SCALE, "snaps": "snaps" if snapshots else None}
    moved = (2 + n * snapshots) * heads * S * S + n * heads * (4 * S + 2)
    multi = "fc_ssm_recurrence_seq_warp_multi"
    shapes: dict[str, tuple[str, tuple[int, ...], int, int]] = {
        "fc_ssm_recurrence_seq": ("", (S, heads), S, S * _FLOAT),
        "fc_ssm_recurrence_seq_unroll128": ("", (S, heads), S, S * _FLOAT),
        "fc_ssm_recurrence_seq_warp": ("", (S // 4, heads), 128, 2 * n * _FLOAT),
        f"{multi}, 8 rows a warp": (", 8 rows a warp", (4, heads), 128, 0),
        f"{multi}, 4 rows a warp": (", 4 rows a warp", (8, heads), 128, 0),
    }
    outputs = ("s", "y", "snaps") if snapshots else ("s", "y")
    for name, (suffix, grid, block, shared) in shapes.items():
        if shared > _MOST_SHARED:
            continue
        call = Call(name.removesuffix(suffix), grid, block, shared, _RECURRENCE | scalars)
        group.cases.append(Case(name, group.title, (call,), outputs, n * heads * S, moved * _FLOAT))
    return group


def decode(users: int, heads: int) -> Group:
    """Kernels 12, 13 and 16 for one position of each user; 16 with the rows a warp that suit the number of users."""
    group = Group(
        f"decode, {users} user{'s' * (users > 1)}",
        lambda: {"s": _states(users, heads), **_rows(users, heads)},
        ("s", "y"),
        DECODE,
        1,
        users,
        heads,
    )
    scalars = {"state_size": S, "n_v_heads": heads, "scale": _SCALE}
    rows = users * heads * S
    moved = (2 * rows * S + users * heads * (4 * S + 2)) * _FLOAT
    shapes: dict[str, tuple[str, tuple[int, ...], int, int, tuple[str, ...]]] = {
        "fc_ssm_recurrence_slots": ("", (S, heads, users), S, S * _FLOAT, ("s", "y")),
        "fc_ssm_recurrence_slots_2pass": ("", (S, heads, users), S, 3 * S * _FLOAT, ("s",)),
    }
    for each in (8, 4, 2):
        for warps in (1, 4):
            name = f", {each} rows a warp, {32 * warps} threads"
            shapes["fc_ssm_recurrence_slots_warp" + name] = (
                name,
                (S // each // warps, heads, users),
                32 * warps,
                0,
                ("s", "y"),
            )
    for name, (suffix, grid, block, shared, outputs) in shapes.items():
        call = Call(name.removesuffix(suffix), grid, block, shared, _RECURRENCE | scalars)
        group.cases.append(Case(name, group.title, (call,), outputs, rows, moved))
    return group


def _token_buffers(users: int, heads: int, channels: int) -> dict[str, F32]:
    rng = np.random.default_rng(2)
    per_head = {name: np.zeros((users, heads, S), np.float32) for name in ("q", "k", "v", "y", "gated")}
    return {
        "s": _states(users, heads),
        "qkv": _normal(rng, users, channels),
        "conv_weight": _normal(rng, channels, 4),
        "conv_state": _normal(rng, users, channels, 3),
        "alpha": _normal(rng, users, heads),
        "ssm_dt": _normal(rng, heads),
        "ssm_a": -np.exp(_normal(rng, heads)),
        "beta": _normal(rng, users, heads),
        "z": _normal(rng, users, heads, S),
        "norm_weight": _normal(rng, S),
        "out": np.zeros((users, channels), np.float32),
        "g": np.zeros((users, heads), np.float32),
        **per_head,
    }


def token(users: int, heads: int) -> Group:
    """The decode step in one launch, and the chain of single kernels."""
    key_heads = max(1, heads // 2)
    groups = heads // key_heads
    channels = (2 + groups) * key_heads * S
    group = Group(
        f"decode step, {users} user{'s' * (users > 1)}",
        lambda: _token_buffers(users, heads, channels),
        ("s", "conv_state", "beta", "gated"),
        STEP,
        1,
        users,
        heads,
    )
    total = users * heads
    sizes = {"n_k_heads": key_heads, "kv_groups": groups}
    chain = (
        Call("fc_ssm_conv1d_silu_slots", (-(-channels // 256), users), 256, 0, {
            "qkv": "qkv", "weight": "conv_weight", "conv_state": "conv_state", "out": "out", "conv_dim": channels,
            "conv_kernel": 4}),
        Call("fc_ssm_qknorm_gqa_nx", (key_heads, users), S, 2 * S * _FLOAT, {
            "conv_out": "out", "qg": "q", "kg": "k", "vg": "v", **sizes, "S": S, "key_dim": key_heads * S,
            "val_dim": heads * S, "eps": _EPS}),
        Call("fc_ssm_decay_gate_nx", (-(-total // 256),), 256, 0, {
            "alpha": "alpha", "ssm_dt": "ssm_dt", "ssm_a": "ssm_a", "g": "g", "n_heads": heads, "total": total}),
        Call("fc_sigmoid", (-(-total // 256),), 256, 0, {"x": "beta", "n": total}),
        Call("fc_ssm_recurrence_slots", (S, heads, users), S, S * _FLOAT, {
            **_RECURRENCE, "state_size": S, "n_v_heads": heads,
            "scale": _SCALE}),
        Call("fc_ssm_gated_norm", (total,), 256, 256 * _FLOAT, {
            "y": "y", "weight": "norm_weight", "z": "z", "gated": "gated", "state_size": S, "eps": _EPS}),
    )  # fmt: skip
    names = ("s", "qkv", "conv_weight", "conv_state", "alpha", "ssm_dt", "ssm_a", "beta", "z", "norm_weight", "gated")
    fused = Call(
        "fc_ssm_decode_step", (key_heads, users), 512, (2 + 2 * groups) * S * _FLOAT,
        {**{name: name for name in names}, **sizes, "state_size": S, "conv_kernel": 4, "scale": _SCALE, "qk_eps": _EPS,
         "norm_eps": _EPS},
    )  # fmt: skip
    # State and history in and out, the projections and z in, the gated output out, the weights once.
    moved = 2 * total * S * S + users * channels * 7 + 2 * total * (S + 1) + channels * 4 + 2 * heads + S
    for name, calls in ((CHAIN, chain), ("fc_ssm_decode_step", (fused,))):
        group.cases.append(Case(name, group.title, calls, ("s", "conv_state", "gated"), total * S, moved * _FLOAT))
    return group


def groups_of(
    wanted: Sequence[str],
    positions: Sequence[int],
    users: Sequence[int],
    heads: int,
    entries: Sequence[str],
    snapshots: bool = False,
) -> list[Group]:
    """The groups with the cases whose names fit a pattern of `wanted` (all without one) and whose kernels are there.

    With `snapshots` each prefill is there twice, without and with them.

    Raises SsmtoolError for a pattern that fits no case.
    """
    made = [prefill(n, heads, images) for n in positions for images in ((False, True) if snapshots else (False,))]
    for each in users:
        made += [decode(each, heads), token(each, heads)]
    for group in made:
        group.cases = [case for case in group.cases if all(call.entry in entries for call in case.calls)]
    there = list(dict.fromkeys(case.name for group in made for case in group.cases))
    for pattern in wanted:
        if not fits_any(there, pattern):
            known = ", ".join(sorted({name.partition(",")[0] for name in there})) or "nothing"
            raise SsmtoolError(f'"{pattern}" is nothing that is timed here; there is: {known}')
    for group in made:
        group.cases = [case for case in group.cases if not wanted or any(_fits(case.name, each) for each in wanted)]
    return [group for group in made if group.cases]


def known_names(entries: Sequence[str]) -> list[str]:
    """The cases, each by its kernel's name alone, whose kernels are all among `entries`."""
    names = [case.name.partition(",")[0] for group in groups_of((), [1], [1], 2, entries) for case in group.cases]
    return sorted(set(names))


def fits_any(names: Sequence[str], pattern: str) -> bool:
    """Whether a pattern is for one of the cases."""
    return any(_fits(name, pattern) for name in names)


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name.partition(",")[0], pattern)
