"""Where a relation runs its kernels and says what must be equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import is_poison, poisoned
from ssmtool.verify import contract
from ssmtool.verify.contract import Dims
from ssmtool.verify.loaded import Check, Loaded
from ssmtool.verify.relations.draw import Step

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class Unequal:
    """Two arrays that should have had the same bits: what they are, and where and how they differ."""

    what: str
    message: str
    got: NDArray[Any]
    want: NDArray[Any]
    axes: tuple[str, ...]


class Bench:
    """Launches of one relation on one device. `unequal` are what was found, `compared` counts the comparisons."""

    def __init__(self, loaded: Loaded, check: Check | None = None) -> None:
        self._loaded = loaded
        self._check = check
        self.unequal: list[Unequal] = []
        self.compared = 0

    # ------------------------------------------------------------------------------------------------- launches

    def launch(self, entry: str, dims: Dims, **arguments: Any) -> None:
        """One launch; writable arrays are changed in place. Raises what `Loaded.launch` raises."""
        call = contract.call(entry, dims, arguments)
        self._loaded.launch(call.entry, call.grid, call.block, call.args, call.shared_bytes, check=self._check)

    def step(self, entry: str, d: Dims, s: F32, x: Step) -> tuple[F32, F32]:
        """Kernels 1, 12 and 13: state and y after one position of every user; `s` is left as it is."""
        s, y = s.copy(), poisoned(x.v.shape)
        self.launch(entry, d, s=s, y=y, **x.named())
        return s, y

    def scan(self, entry: str, d: Dims, s: F32, x: Step, *, snaps: bool = True) -> tuple[F32, F32, F32 | None]:
        """Kernels 8 to 10: state, y and snapshots after `d.n` positions; `s` is left as it is."""
        s, y = s.copy(), poisoned(x.v.shape)
        images = poisoned((d.n, *s.shape)) if snaps else None
        self.launch(entry, d, s=s, y=y, snaps=images, **x.named())
        return s, y, images

    def convolve(self, entry: str, d: Dims, state: F32, qkv: F32, weight: F32) -> tuple[F32, F32]:
        """Kernels 2 and 11: history and output after one sample of every user."""
        state, out = state.copy(), poisoned(qkv.shape)
        self.launch(entry, d, qkv=qkv, weight=weight, conv_state=state if state.size else None, out=out)
        return state, out

    def convolve_seq(
        self, d: Dims, state: F32, qkv: F32, weight: F32, *, snaps: bool = True
    ) -> tuple[F32, F32, F32 | None]:
        """Kernel 7: history, output and snapshots after `d.n` samples."""
        state, out = state.copy(), poisoned(qkv.shape)
        images = poisoned((d.n, *state.shape)) if snaps and state.size else None
        history = state if state.size else None
        self.launch(
            "fc_ssm_conv1d_silu_seq", d, qkv=qkv, weight=weight, conv_state=history, out=out, snaps=images
        )  # fmt: skip
        return state, out, images

    # ----------------------------------------------------------------------------------------------- comparisons

    def equal(self, what: str, got: F32, want: F32, axes: str) -> None:
        """The bits must be equal, and all of them written."""
        self.compared += 1
        if not got.size:
            return
        unwritten = is_poison(got) | is_poison(want)
        different = (got.view(np.uint32) != want.view(np.uint32)) | unwritten
        if different.any():
            where = _first(what, axes, different, got, want)
            count = f"{int(different.sum())} of {different.size} elements differ"
            self._add(what, f"{count}, the first is {where}", got, want, axes)

    def close(self, what: str, got: F32, want: F32, axes: str, *, nmse: float, max_rms: float) -> None:
        """Each vector along the last axis must be within the limits: what another order of summation leaves."""
        self.compared += 1
        unwritten = is_poison(got) | is_poison(want)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(got.astype(np.float64) - want.astype(np.float64))
            energy = (want.astype(np.float64) ** 2).sum(axis=-1, keepdims=True)
            rms = np.sqrt(energy / want.shape[-1])
            fits = ((error**2).sum(axis=-1, keepdims=True) <= nmse * energy) & (error <= max_rms * rms)
        different = unwritten | ~fits
        if different.any():
            where = _first(what, axes, different, got, want)
            self._add(what, f"further apart than another order of summation explains, at {where}", got, want, axes)

    def unwritten(self, what: str, array: F32, axes: str) -> None:
        """Nothing may have been stored."""
        self.compared += 1
        touched = ~is_poison(array)
        if touched.any():
            where = _first(what, axes, touched, array, array)
            self._add(what, f"{int(touched.sum())} elements were written, the first is {where}", array, array, axes)

    def _add(self, what: str, message: str, got: F32, want: F32, axes: str) -> None:
        self.unequal.append(Unequal(what, message, got.copy(), want.copy(), tuple(axes.split())))


def _first(what: str, axes: str, where: NDArray[np.bool_], got: F32, want: F32) -> str:
    flat = int(np.argmax(where.reshape(-1)))
    index = np.unravel_index(flat, where.shape)
    name = what.partition(" ")[0]
    place = ", ".join(f"{axis}={int(at)}" for axis, at in zip(axes.split(), index, strict=True))
    return f"{name}[{place}]: {_number(got[index])} against {_number(want[index])}"


def _number(value: Any) -> str:
    return "never written" if is_poison(np.array([value]))[0] else f"{value:.9g}"
