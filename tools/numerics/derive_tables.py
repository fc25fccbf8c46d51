"""Derive the approximation units' tables from the measured sweeps and write them as a module.

    python tools/numerics/derive_tables.py

Each unit is a table of quadratics. The operand's fraction, 23 bits, splits into an index and the rest xl; the result
is, in fixed point with W fraction bits and then truncated to a float,

    (c0 << 31) + bias  +/-  (c1 * xl) << A  +/-  c2 * square(xl)

with `square` the product xl * xl without the partial products in its lowest `drop` columns. For one index every
measured result bounds that sum from both sides, so for a trial (c1, c2) the c0 are an interval, nearly always empty:
the trials around a least-squares fit are tried and exactly one must survive. The bias is one number for all
indices: where all intervals, taken modulo 2^31, overlap. So every table entry is forced by measured bits alone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from execute.numerics.measured import sweep  # noqa: E402

from ssmtool.files import write_atomic  # noqa: E402

OUT = ROOT / "ssmtool" / "execute" / "numerics" / "data" / "unit_tables.py"
Ints = NDArray[np.int64]
FRACTIONS = np.arange(1 << 23, dtype=np.int64)


@dataclass(frozen=True)
class Shape:
    """What is common to a unit's entries; signs are those of the c1 and c2 terms."""

    index_bits: int
    weight: int
    c1_shift: int
    drop: int
    c1_sign: int
    c2_sign: int


SHAPES = {
    "EX2": Shape(6, 57, 19, 19, 1, 1),
    "RCP": Shape(7, 57, 18, 17, -1, 1),
    "RSQRT": Shape(6, 57, 17, 19, -1, 1),
    "SQRT": Shape(6, 58, 18, 19, 1, -1),
    "LG2": Shape(6, 57, 19, 19, 1, -1),
    "SIN": Shape(6, 57, 19, 19, 1, -1),
}


@dataclass(frozen=True)
class Bounds:
    """Measured bounds: at fraction f the untruncated sum lies in [low, high], in units of 2^-W."""

    fraction: Ints
    low: Ints
    high: Ints

    def at(self, keep: NDArray[np.bool_]) -> Bounds:
        """The bounds at some of the points."""
        return Bounds(self.fraction[keep], self.low[keep], self.high[keep])


def square(x: Ints, drop: int) -> Ints:
    """x*x without the partial products in columns below `drop`."""
    lost = np.zeros_like(x)
    for i in range((drop + 1) // 2):
        bit = (x >> i) & 1
        lost += (bit << (2 * i)) + bit * (((x >> (i + 1)) << (2 * i + 2)) & ((1 << drop) - 1))
    return x * x - lost


def bounds(bits: NDArray[np.uint32], weight: int, fraction: Ints = FRACTIONS, finest: int = 0) -> Bounds:
    """Bounds from result bits of positive floats; `finest` widens them where the unit itself truncated earlier."""
    raw = bits.astype(np.int64)
    shift = weight - 23 + (raw >> 23) - 127
    mantissa = (raw & 0x7FFFFF) | 0x800000
    low = mantissa << shift
    return Bounds(fraction, low, np.maximum(((mantissa + 1) << shift) - 1, low + (1 << finest) - 1))


def entry(b: Bounds, xl: Ints, shape: Shape) -> tuple[int, int, int, int]:
    """The one (c1, c2) that fits all bounds of an index, and the interval left for (c0 << 31) + bias."""
    x, s = xl << shape.c1_shift, square(xl, shape.drop)
    few = np.unique(np.append(np.arange(0, len(x), max(1, len(x) // 2048)), len(x) - 1))
    middle = (b.low[few] + b.high[few]) / 2.0

    def least_squares(columns: list[NDArray[np.float64]], y: NDArray[np.float64]) -> NDArray[np.float64]:
        a = np.stack([np.ones(len(few)), *columns], 1)
        scale = np.abs(a).max(0)
        return np.linalg.lstsq(a / scale, y, rcond=None)[0] / scale

    near2 = round(shape.c2_sign * least_squares([x[few] * 1.0, s[few] * 1.0], middle)[2])
    found = []
    for c2 in range(max(0, near2 - 4), near2 + 5):
        term2 = shape.c2_sign * c2 * s
        near1 = round(shape.c1_sign * least_squares([x[few] * 1.0], middle - term2[few])[1])
        for c1 in range(near1 - 6, near1 + 7):
            for chosen in (few, slice(None)):
                rest = term2[chosen] + shape.c1_sign * c1 * x[chosen]
                low, high = int((b.low[chosen] - rest).max()), int((b.high[chosen] - rest).min())
                if low > high:
                    break
            else:
                found.append((c1, c2, low, high))
    if len(found) != 1:
        raise SystemExit(f"{len(found)} quadratics fit one index of {shape}: the structure is wrong for this data")
    return found[0]


def table(name: str, halves: list[list[Bounds]]) -> tuple[list[tuple[int, int, int]], int]:
    """(rows, bias): an entry for every index of every half (odd and even exponents have a half each)."""
    shape = SHAPES[name]
    low_bits = 23 - shape.index_bits
    entries = []
    for parts in halves:
        for index in range(1 << shape.index_bits):
            here = [p.at(p.fraction >> low_bits == index) for p in parts]
            joined = Bounds(*(np.concatenate([getattr(p, f) for p in here]) for f in ("fraction", "low", "high")))
            entries.append(entry(joined, joined.fraction & ((1 << low_bits) - 1), shape))
    narrow = min(entries, key=lambda e: e[3] - e[2])
    guess = (narrow[2] + narrow[3]) // 2 % (1 << 31)
    turns = [round(((low + high) / 2 - guess) / (1 << 31)) for _, _, low, high in entries]
    bias = max(low - (t << 31) for t, (_, _, low, _) in zip(turns, entries, strict=True))
    if any(bias > high - (t << 31) for t, (_, _, _, high) in zip(turns, entries, strict=True)):
        raise SystemExit(f"{name}: no bias common to all entries")
    return [(t, c1, c2) for t, (c1, c2, _, _) in zip(turns, entries, strict=True)], bias


def measured_bounds() -> dict[str, list[list[Bounds]]]:
    """Every unit's bounds from its sweeps. Points a unit answers by another rule are left out."""
    ones, twos = 0x3F800000, 0x40000000
    inside = FRACTIONS > 0
    found = {}
    # 2^x for x in [1, 2) is in [2, 4): drop the exponent.
    found["EX2"] = [[bounds(sweep("ex2", ones) - np.uint32(1 << 23), 57)]]
    found["RCP"] = [[bounds(sweep("rcp", ones), 57).at(inside)]]
    found["RSQRT"] = [[bounds(sweep("rsqrt", ones), 57).at(inside)], [bounds(sweep("rsqrt", twos), 57)]]
    found["SQRT"] = [[bounds(sweep("sqrt", ones), 58)], [bounds(sweep("sqrt", twos), 58)]]
    above = bounds(sweep("lg2", twos), 57)
    above = Bounds(above.fraction, above.low - (1 << 57), above.high - (1 << 57))
    found["LG2"] = [[bounds(sweep("lg2", ones), 57, finest=21).at(inside), above]]
    # The fraction of a quarter turn, from x * (1 / 2 pi) rounded toward zero; the cosine runs it backwards.
    parts = []
    for unit, first in (("sin", ones), ("cos", 0x3F000000), ("cos", ones)):
        x = (FRACTIONS + first).astype(np.uint32).view(np.float32)
        product = x.astype(np.float64) * float(np.float32(0.15915494))
        turn = product.astype(np.float32)
        turn = np.where(turn.astype(np.float64) > product, np.nextafter(turn, np.float32(0)), turn)
        quarter = np.floor(turn.astype(np.float64) * 2.0**25).astype(np.int64)
        fraction = quarter if unit == "sin" else quarter ^ ((1 << 23) - 1)
        parts.append(bounds(sweep(unit, first), 57, fraction).at((quarter < 1 << 23) & (fraction > 0)))
    found["SIN"] = [parts]
    return found


def main() -> None:
    """Derive all six and write the module."""
    lines = [
        '"""The approximation units\' tables, as measured on an NVIDIA H200. Written by a program, not by hand.',
        "",
    ]
    lines += ["`tools/numerics/derive_tables.py` derives every number from `tests/execute/numerics/measured`."]
    lines += [
        "",
        "Rows are (c0, c1, c2); RSQRT and SQRT hold the even exponents' 64 rows, then the odd ones'.",
        '"""',
    ]
    lines += ["", "from __future__ import annotations", ""]
    for name, halves in measured_bounds().items():
        rows, bias = table(name, halves)
        print(name, len(rows), "rows, bias", hex(bias))
        lines += [f"{name}_BIAS = {bias:#x}", f"{name} = ("]
        for k in range(0, len(rows), 4):
            lines.append("    " + " ".join(f"({c0}, {c1}, {c2})," for c0, c1, c2 in rows[k : k + 4]))
        lines += [")", ""]
    lines[-1:] = []
    write_atomic(OUT, ("\n".join(["# fmt: off", *lines]) + "\n").encode())


if __name__ == "__main__":
    main()
