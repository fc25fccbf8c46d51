"""How far another implementation's outputs are from ours: it need not have our bits, and is not held to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.bench.beside.load import BesideError, attempt

# Elements at a time: states of hundreds of users would take gigabytes in float64.
_PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one output: mean square error over the mean square of ours, the largest error, and the root of that square."""

    output: str
    nmse: float
    max_abs: float
    rms: float


def differences(given: Mapping[str, Any], ours: Mapping[str, NDArray[np.float32]], what: str) -> tuple[Difference, ...]:
    """Each output that both have, in our order. Raises BesideError for another number of elements, or no numbers."""
    return tuple(
        _difference(name, _plain(given[name], reference, f"{what}: output {name}"), reference)
        for name, reference in ours.items()
        if name in given
    )


def _plain(found: Any, reference: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    array: NDArray[np.float32] = attempt(lambda: np.asarray(found, np.float32), what)
    if array.size != reference.size:
        raise BesideError(f"{what} has the shape {array.shape}; ours has {reference.shape}")
    return array.reshape(-1)


def _difference(name: str, found: NDArray[np.float32], reference: NDArray[np.float32]) -> Difference:
    flat = reference.reshape(-1)
    error = square = largest = 0.0
    for start in range(0, flat.size, _PIECE):
        ours = flat[start : start + _PIECE].astype(np.float64)
        distance = found[start : start + _PIECE] - ours
        error += float(distance @ distance)
        square += float(ours @ ours)
        largest = max(largest, float(np.abs(distance).max(initial=0.0))) if np.isfinite(error) else np.inf
    nmse = error / square if square else (0.0 if error == 0 else np.inf)
    return Difference(name, float(nmse) if np.isfinite(nmse) else float("inf"), largest, (square / flat.size) ** 0.5)
