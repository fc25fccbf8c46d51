"""The exponential of a kernel of the recurrence, asked of the kernel itself.

With a state of ones, k = 0 and beta = 0 one position leaves exp(g) in the state, since 1 * exp(g) + 0 * 0 is exact. So
the last bits of each exponential are known before the kernel is judged, and everything after them is held to its bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.roundings import LAST_BITS
from ssmtool.golden.case import poisoned
from ssmtool.golden.reference.arithmetic import exp
from ssmtool.verify.contract import FAST_ENTRIES, Dims, call

if TYPE_CHECKING:
    from ssmtool.golden import GoldenCase, Run
    from ssmtool.verify.loaded import Loaded

_RECURRENCE = "fc_ssm_recurrence"
# Heads of one such launch; only their first rows are worked on.
_MOST = 64


class OwnExp:
    """Exponentials that kernels have told, kept by kernel and state size."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, int], dict[int, int]] = {}

    def of(self, case: GoldenCase, run: Run, loaded: Loaded) -> dict[int, int]:
        """Bits of a logarithm to bits of its exponential, for those of the run that are not exact.

        Left out are those that are not within the contract: the case itself then shows what is wrong.
        """
        found: dict[int, int] = {}
        for launch in run.launches:
            if not launch.entry.startswith(_RECURRENCE):
                continue
            values = {argument.name: argument.value for argument in launch.args}
            size, buffer = int(values["state_size"] or 0), next(a.buffer for a in launch.args if a.name == "g")
            told = self._told.setdefault((launch.entry, size), {})
            wanted = {} if buffer is None else _inexact(case.image(buffer).reshape(-1))
            fresh = [bits for bits in wanted if bits not in told]
            for start in range(0, len(fresh), _MOST):
                part = fresh[start : start + _MOST]
                told.update(_ask(launch.entry, size, np.asarray(part, np.int32), loaded))
            found |= {bits: told[bits] for bits in wanted if bits in told}
        return found


def _inexact(g: NDArray[Any]) -> dict[int, None]:
    with np.errstate(invalid="ignore"):
        kept = g[(g != 0) & (np.abs(g) <= 110)]
    return dict.fromkeys(kept.view(np.int32).tolist())


def _ask(entry: str, size: int, bits: NDArray[Any], loaded: Loaded) -> dict[int, int]:
    """One launch, a head for each logarithm."""
    heads = len(bits)
    g = bits.view(np.float32)
    q, k, v = np.zeros((3, heads, size), np.float32)
    state = np.ones((heads, size, size), np.float32)
    launch = call(entry, Dims(heads=heads, size=size), {
        "s": state, "q": q, "k": k, "v": v, "g": g, "beta": np.zeros(heads, np.float32), "y": poisoned(v.shape),
        "scale": 1.0,
    })  # fmt: skip
    try:
        # One block of rows is enough, the others stay as they are; kernels whose grid says how they work get all of it.
        grid = launch.grid if entry in FAST_ENTRIES else (1, heads, 1)
        loaded.launch(entry, grid, launch.block, launch.args, launch.shared_bytes)
    except SsmtoolError:
        return {}
    with np.errstate(all="ignore"):
        own, right = state[:, 0, 0].copy(), exp(g)
    near = np.abs(own.view(np.int32).astype(np.int64) - right.view(np.int32)) <= LAST_BITS
    return {int(b): int(e) for b, e, fits in zip(bits, own.view(np.int32), near, strict=True) if fits}
