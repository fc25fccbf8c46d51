"""Reads the measured files of `measured/` (see its README.md)."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "measured"
STRIDE = 32771
THINNED = 16


@cache
def _file(name: str) -> dict[str, NDArray[Any]]:
    with np.load(FOLDER / name) as found:
        return {key: found[key] for key in found.files}


def unpack(raw: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """A sweep from its packed second differences (the packing is `pack` in tools/numerics/measure_h200.py)."""
    data = raw.tobytes()
    head = np.frombuffer(data[1:17], "<i8")
    body = np.frombuffer(lzma.decompress(data[17:]), np.int8 if data[:1] == b"1" else "<i4").astype(np.int64)
    return np.cumsum(np.cumsum(np.concatenate([head, body]))).astype(np.uint32)


def sweep(unit: str, first: int) -> NDArray[np.uint32]:
    """Result bits of `unit.approx.ftz.f32` for the 2^23 inputs from bits `first` on."""
    if (unit, first) == ("ex2", 0x3F800000):
        return (_exp2_rounded().astype(np.int64) + _file("ex2_ulp_h200.npz")["d"]).astype(np.uint32)
    return unpack(_file("units_h200.npz")[f"{unit}_{first:08x}"])


@cache
def _exp2_rounded() -> NDArray[np.uint32]:
    """2^x correctly rounded for x in [1, 2): f64 first, and MPFR wherever f64 is near a tie of two floats."""
    import gmpy2

    x = (np.arange(1 << 23, dtype=np.uint32) + np.uint32(0x3F800000)).view(np.float32).astype(np.float64)
    value = np.exp2(x)
    result = value.astype(np.float32)
    spacing = 2.0**-22
    off = np.abs(np.abs(value - result.astype(np.float64)) / spacing - 0.5)
    with gmpy2.context(precision=24):
        for i in np.nonzero(off < 2.0**-26)[0]:
            result[i] = float(gmpy2.exp2(gmpy2.mpfr(float(x[i]), 24)))
    return result.view(np.uint32)


def edges(name: str) -> NDArray[Any]:
    """One array of `edges_h200.npz`."""
    return _file("edges_h200.npz")[name]


def edge_inputs(count: int) -> NDArray[np.uint32]:
    """The inputs of the unit arrays of `edges_h200.npz`."""
    return (np.arange(count, dtype=np.uint64) * np.uint64(STRIDE * THINNED)).astype(np.uint32)


@cache
def silicon() -> tuple[dict[str, NDArray[np.uint64]], list[str]]:
    """Result bits by form name, and the names of the forms the driver's assembler refuses."""
    found = _file("silicon_h200.npz")
    table = np.zeros((len(found["names"]), found["byte0"].shape[1]), np.uint64)
    for k in range(8):
        table |= found[f"byte{k}"].astype(np.uint64) << np.uint64(8 * k)
    return dict(zip(found["names"].tolist(), table, strict=True)), found["rejected"].tolist()
