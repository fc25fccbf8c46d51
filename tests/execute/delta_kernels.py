"""Small launches of the 15 kernels: buffers just as long as each kernel reads or writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from conftest import ROOT
from ssmtool.execute.module import Module
from ssmtool.execute.result import LaunchResult
from ssmtool.ptx import extract

SCALE, EPS = np.float32(0.1), np.float32(1e-6)


@lru_cache(maxsize=1)
def text() -> str:
    """The PTX that is checked in."""
    embedded = extract((ROOT / "generated/fc_cuda_ptx.h").read_text())
    (found,) = (each for each in embedded if each.name == "FC_PTX_SSM_GATED_DELTA")
    return found.text


@lru_cache(maxsize=1)
def module() -> Module:
    return Module(text())


@dataclass
class Case:
    """One launch. `args` holds arrays where the kernel has buffers, numbers, and None for a pointer that may be null.

    `outputs` are the arguments that the kernel writes all of and reads nothing of.
    """

    entry: str
    grid: tuple[int, ...]
    block: int
    shared: int
    args: list[Any]
    outputs: tuple[int, ...]

    def launch(self, made: Module | None = None, **options: Any) -> LaunchResult:
        """With every check; faults are collected."""
        return (made or module()).launch(
            self.entry, self.grid, self.block, self.args, self.shared, check="all", on_fault="collect", **options
        )


def _random(seed: int) -> Any:
    source = np.random.default_rng(seed)
    return lambda *shape: source.standard_normal(shape).astype(np.float32)


def recurrence(entry: str, size: int = 128, heads: int = 2, n: int = 2, snaps: bool = True) -> Case:
    """Kernels 1, 8, 9, 10, 12, 13; `n` is positions, or users."""
    f = _random(size + heads + n)
    slots = "slots" in entry
    lead = () if entry == "fc_ssm_recurrence" else (n,)
    state = f(*(lead if slots else ()), heads, size, size) * np.float32(0.1)
    q, k, v, g, beta, y = (f(*lead, heads, *each) for each in ((size,), (size,), (size,), (), (), (size,)))
    g = -np.abs(g)
    args: list[Any] = [state, q, k, v, g, beta, y, size]
    grid: tuple[int, ...] = (size, heads)
    shared = 4 * size
    if entry == "fc_ssm_recurrence":
        args += [SCALE]
    elif slots:
        args += [heads, SCALE]
        grid, shared = (size, heads, n), 4 * size * (3 if "2pass" in entry else 1)
    else:
        args += [heads, n, SCALE, f(n, heads, size, size) if snaps else None]
        if "warp" in entry:
            grid, shared = (size // 4, heads), 8 * n
    outputs = (6, 11) if not slots and lead and snaps else (6,)
    return Case(entry, grid, 128 if "warp" in entry else size, shared, args, outputs)


def convolution(entry: str, channels: int = 300, taps: int = 4, n: int = 2, snaps: bool = True) -> Case:
    """Kernels 2, 7, 11."""
    f = _random(channels + taps + n)
    lead = () if entry == "fc_ssm_conv1d_silu" else (n,)
    state = f(*(lead if "slots" in entry else ()), channels, taps - 1)
    args: list[Any] = [f(*lead, channels), f(channels, taps), state, f(*lead, channels), channels, taps]
    if "seq" in entry:
        args += [n, f(n, channels, taps - 1) if snaps else None]
    grid: tuple[int, ...] = (-(-channels // 256), n) if "slots" in entry else (-(-channels // 256),)
    return Case(entry, grid, 256, 0, args, (3, 7) if "seq" in entry and snaps else (3,))


def norm(heads: int = 3, size: int = 128, block: int = 256) -> Case:
    """Kernel 3."""
    f = _random(heads + size)
    args = [f(heads, size), f(size), f(heads, size), f(heads, size), size, EPS]
    return Case("fc_ssm_gated_norm", (heads,), block, 4 * block, args, (3,))


def sigmoid(n: int = 300) -> Case:
    """Kernel 4."""
    return Case("fc_sigmoid", (-(-n // 256),), 256, 0, [_random(n)(n), n], ())


def gate(heads: int = 32, n: int = 10) -> Iterator[Case]:
    """Kernels 5 and 14."""
    f = _random(heads + n)
    yield Case("fc_ssm_decay_gate", (1,), 256, 0, [f(heads), f(heads), f(heads), f(heads), heads], (3,))
    total = heads * n
    args = [f(n, heads), f(heads), f(heads), f(n, heads), heads, total]
    yield Case("fc_ssm_decay_gate_nx", (-(-total // 256),), 256, 0, args, (3,))


def qknorm(heads: int = 2, groups: int = 2, size: int = 128, n: int = 3) -> Iterator[Case]:
    """Kernels 6 and 15; 6 reads the q and k of a position, not its v."""
    f = _random(heads + groups + n)
    keys, values = heads * size, heads * groups * size
    args = [f(2 * keys), f(values), f(values), heads, groups, size, keys, EPS]
    yield Case("fc_ssm_qknorm_gqa", (heads,), size, 8 * size, args, (1, 2))
    args = [f(n, 2 * keys + values), *(f(n, values) for _ in range(3)), heads, groups, size, keys, values, EPS]
    yield Case("fc_ssm_qknorm_gqa_nx", (heads, n), size, 8 * size, args, (1, 2, 3))


SEQUENCES = ("fc_ssm_recurrence_seq", "fc_ssm_recurrence_seq_unroll128", "fc_ssm_recurrence_seq_warp")
SLOTS = ("fc_ssm_recurrence_slots", "fc_ssm_recurrence_slots_2pass")
CONVOLUTIONS = ("fc_ssm_conv1d_silu", "fc_ssm_conv1d_silu_seq", "fc_ssm_conv1d_silu_slots")


def every() -> list[Case]:
    """One launch of each kernel."""
    cases = [recurrence(each) for each in ("fc_ssm_recurrence", *SEQUENCES, *SLOTS)]
    cases += [convolution(each) for each in CONVOLUTIONS]
    return [*cases, norm(), sigmoid(), *gate(), *qknorm()]
