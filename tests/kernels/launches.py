"""Launches of the checked-in kernels on the executor, with every check, and inputs that tell bits apart."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute import Module
from ssmtool.header import read_header

F32 = NDArray[np.float32]
S = 128
SCALE = np.float32(S**-0.5)
KINDS = ("plain", "denormal", "special", "strong decay", "zero", "wide")
_HEADER = Path(__file__).parents[2] / "generated" / "fc_cuda_ptx.h"
_SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, -1e38, 1e-45], np.float32)


@functools.cache
def modules() -> dict[str, Module]:
    """Entry -> its module, of both constants."""
    found = {}
    for held in read_header(_HEADER).modules:
        names = {
            entry.name: tuple(each.split()[1] for each in entry.parameters.split(", ")) for entry in held.record.entries
        }
        module = Module(held.ptx, parameters=names)
        found.update(dict.fromkeys(held.entry_names, module))
    return found


def launch(entry: str, grid: tuple[int, ...], block: int, shared_bytes: int = 0, **args: Any) -> None:
    """One launch with races, unwritten memory and barriers checked; Python numbers become int32 and fp32."""
    typed = {
        name: np.int32(value) if isinstance(value, int) else np.float32(value) if isinstance(value, float) else value
        for name, value in args.items()
    }
    modules()[entry].launch(entry, grid, block, typed, shared_bytes, check="all")


def unwritten(*shape: int) -> F32:
    """NaNs of a payload that no kernel makes: what was not written differs from everything."""
    return np.full(shape, 0x7FC0DEAD, np.uint32).view(np.float32)


def same(got: F32, want: F32) -> bool:
    """Every bit."""
    return bool((got.view(np.uint32) == want.view(np.uint32)).all())


def spoil(rng: np.random.Generator, *arrays: F32) -> None:
    """Puts infinities, NaNs, zeros of both signs, huge and denormal numbers at a few places."""
    for array in arrays:
        at = rng.random(array.shape) < 0.002
        array[at] = rng.choice(_SPECIAL, int(at.sum()))


@dataclass
class Rows:
    """Inputs of a recurrence over `n` positions or users, as the contract lays them out; `s` of one user."""

    s: F32
    q: F32
    k: F32
    v: F32
    g: F32
    beta: F32

    def named(self) -> dict[str, F32]:
        return {name: getattr(self, name) for name in ("q", "k", "v", "g", "beta")}

    def part(self, first: int, end: int) -> dict[str, F32]:
        return {name: np.ascontiguousarray(array[first:end]) for name, array in self.named().items()}


def rows(n: int, heads: int, kind: str = "plain", seed: int = 5) -> Rows:
    """Random inputs of a kind of KINDS."""
    rng = np.random.default_rng([seed, n, heads])

    def normal(*shape: int) -> F32:
        return rng.standard_normal(shape).astype(np.float32)

    s, q, k, v = normal(heads, S, S), normal(n, heads, S), normal(n, heads, S), normal(n, heads, S)
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    g = -rng.exponential(1, (n, heads)).astype(np.float32)
    beta = rng.uniform(0, 1, (n, heads)).astype(np.float32)
    if kind == "denormal":
        s *= np.float32(1e-38)
        v *= np.float32(1e-39)
    elif kind == "special":
        spoil(rng, s, q, k, v)
    elif kind == "strong decay":
        g[:] = -26
    elif kind == "zero":
        s[:], k[:], v[::2] = 0, 0, -0.0
    elif kind == "wide":
        s *= np.exp(rng.normal(0, 15, s.shape)).astype(np.float32)
    return Rows(s, q, k, v, g, beta)


def scan(entry: str, grid: tuple[int, ...], shared_bytes: int, x: Rows, *, snaps: bool, size: int = S) -> list[F32]:
    """State, y and, with `snaps`, every snapshot, of a kernel with kernel 8's arguments and a block of 128."""
    n, heads = x.g.shape
    s, y = x.s.copy(), unwritten(n, heads, S)
    images = unwritten(n, heads, S, S) if snaps else None
    launch(
        entry, grid, 128, shared_bytes, s=s, y=y, state_size=size, n_v_heads=heads, n=n, scale=float(SCALE),
        snaps=images, **x.named(),
    )  # fmt: skip
    return [s, y] if images is None else [s, y, images]


def step(
    entry: str, grid: tuple[int, ...], block: int, shared_bytes: int, states: F32, x: Rows, size: int = S
) -> list[F32]:
    """State and y of a kernel with kernel 12's arguments."""
    users, heads = x.g.shape
    s, y = states.copy(), unwritten(users, heads, S)
    launch(
        entry, grid, block, shared_bytes, s=s, y=y, state_size=size, n_v_heads=heads, scale=float(SCALE), **x.named()
    )  # fmt: skip
    return [s, y]
