"""The inputs that instruction forms are tried on: a fixed function of kind, operand and case number.

Nothing random is stored, and no bit depends on the NumPy version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ssmtool.probe.variants import width

CASES = 256


def mix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit finaliser (splitmix64's): the same bits on every NumPy, which a seeded generator does not promise."""
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _float_edges(bits: int) -> list[int]:
    e, m = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[bits]
    bias, one_ = (1 << (e - 1)) - 1, 1 << m
    top = ((1 << e) - 1) << m
    exponents = [
        1,
        2,
        bias - m - 1,
        bias - 25,
        bias - 1,
        bias,
        bias + 1,
        bias + 7,
        bias + 15,
        bias + 31,
        bias + 63,
        bias + m,
    ]
    exponents = sorted({x for x in exponents if 0 < x < (1 << e) - 1})
    values = [
        0,
        1,
        2,
        3,
        one_ // 2,
        one_ - 1,
        top,
        top + 1,
        top + one_ // 2,
        top + one_ // 2 + 5,
        top + one_ - 1,
        top - 1,
        top - 2,
    ]
    for x in exponents:
        values += [(x << m) + low for low in (0, 1, one_ // 2, one_ - 1)]
    return [v for x in values for v in (x, x | 1 << (bits - 1))]


def _integer_edges(bits: int) -> list[int]:
    values = [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        31,
        32,
        33,
        63,
        64,
        0x7F,
        0x80,
        0xFF,
        0x100,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x10000,
    ]
    values += [
        0x7FFFFF,
        0x800000,
        0xFFFFFF,
        0x1000001,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
        1 << 32,
        (1 << 53) + 1,
    ]
    values += [(1 << bits - 1) - 1, 1 << (bits - 1), (1 << bits) - 1, (1 << bits) - 2]
    every = {v & ((1 << bits) - 1) for x in values for v in (x, -x, ~x)}
    return sorted(every)


def inputs(kind: str, position: int, cases: int = CASES) -> NDArray[np.uint64]:
    """The bits operand `position` (0, 1, 2) of kind `kind` takes in each case, shape (cases,).

    About half are edge values, the rest random bits; floats also draw from a narrow range of exponents so that
    sums cancel and products round. 8- and 16-bit integer kinds keep random bits above their width, which an
    instruction must ignore. In an eighth of the cases operands 1 and 2 repeat operand 0's draw, so that equality is
    met. `p5` is 0..31; `p7` a shift amount, mostly 0..127 but at times any 32-bit value; `n5` is -16..15 as 32 bits.
    """
    bits = width(kind)
    index = np.arange(cases, dtype=np.uint64) * np.uint64(0x2545F4914F6CDD1D)
    draw = mix64(index ^ np.uint64(ord(kind[0]) << 16 | bits << 8 | position))
    if position:
        same = index ^ np.uint64(ord(kind[0]) << 16 | bits << 8)
        draw = np.where(mix64(~index) % np.uint64(8) == 0, mix64(same), draw)
    more = mix64(draw)
    choice = mix64(more) % np.uint64(8)
    if kind[0] == "p":
        small = draw % np.uint64(1 << bits)
        return small if bits == 5 else np.where(choice < 7, small, more & np.uint64(0xFFFFFFFF))
    if kind[0] == "n":
        return (draw % np.uint64(32) - np.uint64(16)) & np.uint64(0xFFFFFFFF)
    if kind[0] == "f":
        edges = np.array(_float_edges(bits), np.uint64)
        m = {16: 10, 32: 23, 64: 52}[bits]
        bias = {16: 15, 32: 127, 64: 1023}[bits]
        fraction = more & np.uint64((1 << m) - 1)
        near = (
            np.uint64(bias - 3) + draw % np.uint64(7) << np.uint64(m)
            | fraction
            | (more >> np.uint64(63)) << np.uint64(bits - 1)
        )
        anything = more & np.uint64((1 << bits) - 1) if bits < 64 else more
        picked = edges[(draw % np.uint64(len(edges))).astype(np.int64)]
        return np.where(choice < 4, picked, np.where(choice < 7, near, anything))
    edges = np.array(_integer_edges(bits), np.uint64)
    picked = edges[(draw % np.uint64(len(edges))).astype(np.int64)]
    if bits < 32:
        picked |= more & np.uint64((0xFFFFFFFF >> bits) << bits)
    return np.where(choice < 5, picked, more)


def pairs(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Dividends and divisors: near one, any bits, and divisors at both ends of the exponent range."""
    k = np.arange(count, dtype=np.uint64)
    a, b = mix64(k * np.uint64(2) + np.uint64(11)), mix64(k * np.uint64(2) + np.uint64(12))
    which = k % np.uint64(4)
    near = np.uint64(0x7FFFFF)
    x = np.where(which == 0, a & near | np.uint64(0x3F800000), a >> np.uint64(32))
    y = np.where(which == 0, b & near | np.uint64(0x3F800000), b >> np.uint64(32))
    high, low = b >> np.uint64(40), np.uint64(23)
    y = np.where(which == 2, (b & near) | (np.uint64(248) + high % np.uint64(8)) << low, y)
    y = np.where(which == 3, (b & near) | (high % np.uint64(4)) << low, y)
    return x.astype(np.uint32), y.astype(np.uint32)
