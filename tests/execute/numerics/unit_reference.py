"""The approximation units once more, in NumPy: an independent version to check the LLVM one and the silicon by.

`xp` may be numpy or cupy: on a GPU machine the same text is compared with the card over all 2^32 inputs
(tools/numerics/compare_h200.py). Bits go in and come out as int64 arrays. `mufu_*` are the bare units, which flush
subnormals; the names without it are the .f32 forms without .ftz, with the scaling the compiler puts around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssmtool.execute.numerics.data import unit_tables as tables

NAN = 0x7FFFFFFF
INFINITY = 0x7F800000
Array = Any


def square(xp: Any, x: Array, drop: int) -> Array:
    """x*x without the partial products in columns below `drop`, shifted right by it."""
    low = xp.zeros_like(x)
    for i in range((drop + 1) // 2):
        bit = (x >> i) & 1
        low += bit << (2 * i)
        low += bit * (((x >> (i + 1)) << (2 * i + 2)) & ((1 << drop) - 1))
    return (x * x - low) >> drop


class Table:
    """One unit's quadratics."""

    def __init__(
        self, rows: Any, bias: int, index_bits: int, drop: int, c1_shift: int, c1_sign: int, c2_sign: int
    ) -> None:
        self.rows = np.array(rows, np.int64)
        self.bias, self.low_bits, self.drop = bias, 23 - index_bits, drop
        self.c1_shift, self.c1_sign, self.c2_sign = c1_shift, c1_sign, c2_sign

    def total(self, xp: Any, fraction: Array, half: Array | int = 0) -> Array:
        """The fixed-point sum for 23-bit fractions; `half` picks the odd exponents' rows."""
        rows = xp.asarray(self.rows)
        index = (fraction >> self.low_bits) + half * (1 << (23 - self.low_bits))
        xl = fraction & ((1 << self.low_bits) - 1)
        total = (rows[index, 0] << 31) + self.bias
        total = total + self.c1_sign * ((rows[index, 1] * xl) << self.c1_shift)
        return total + self.c2_sign * ((rows[index, 2] * square(xp, xl, self.drop)) << self.drop)


EX2 = Table(tables.EX2, tables.EX2_BIAS, 6, 19, 19, 1, 1)
RCP = Table(tables.RCP, tables.RCP_BIAS, 7, 17, 18, -1, 1)
RSQRT = Table(tables.RSQRT, tables.RSQRT_BIAS, 6, 19, 17, -1, 1)
SQRT = Table(tables.SQRT, tables.SQRT_BIAS, 6, 19, 18, 1, -1)
LG2 = Table(tables.LG2, tables.LG2_BIAS, 6, 19, 19, 1, -1)
SIN = Table(tables.SIN, tables.SIN_BIAS, 6, 19, 19, 1, -1)


def bits(xp: Any, f: Array) -> Any:
    return f.view(xp.uint32).astype(xp.int64)


def floats(xp: Any, b: Array) -> Any:
    return b.astype(xp.uint32).view(xp.float32)


def ilog(xp: Any, v: Array) -> Any:
    """floor(log2 v) for v > 0."""
    e = xp.zeros_like(v)
    for k in (32, 16, 8, 4, 2, 1):
        big = (v >> k) > 0
        e = xp.where(big, e + k, e)
        v = xp.where(big, v >> k, v)
    return e


def from_fixed(xp: Any, v: Array, scale: Any) -> Any:
    """v * 2^-scale (v >= 0) truncated to 24 bits, as float bits; 0 below 2^-126."""
    e = ilog(xp, xp.maximum(v, 1))
    sh = e - 23
    m = xp.where(sh >= 0, v >> xp.maximum(sh, 0), v << xp.maximum(-sh, 0))
    exponent = e - scale + 127
    return xp.where((v == 0) | (exponent <= 0), 0, (exponent << 23) | (m & 0x7FFFFF))


def split(x: Array) -> Any:
    return x >> 31, (x >> 23) & 255, x & 0x7FFFFF


def mufu_rcp(xp: Any, x: Array) -> Any:
    s, e, m = split(x)
    v = RCP.total(xp, m)
    exponent = 127 - (e - 127) - 1
    over = (v >> 57) > 0
    mant = xp.where(over, 0, (v >> 33) & 0x7FFFFF)
    exponent = xp.where(over, exponent + 1, exponent)
    r = xp.where(exponent <= 0, 0, (exponent << 23) | mant)
    r = xp.where(e == 0, INFINITY, r)
    r = xp.where(e == 255, 0, r)
    return xp.where((e == 255) & (m != 0), NAN, r | (s << 31))


def mufu_rsqrt(xp: Any, x: Array) -> Any:
    s, e, m = split(x)
    par = (e - 127) & 1
    h = (e - 127 - par) >> 1
    v = RSQRT.total(xp, m, par)
    r = ((126 - h) << 23) | ((v >> 33) & 0x7FFFFF)
    r = xp.where((par == 0) & (m == 0), (127 - h) << 23, r)
    r = xp.where(s == 1, NAN, r)
    r = xp.where(e == 255, xp.where((m == 0) & (s == 0), 0, NAN), r)
    return xp.where(e == 0, INFINITY | (s << 31), r)


def mufu_sqrt(xp: Any, x: Array) -> Any:
    s, e, m = split(x)
    par = (e - 127) & 1
    h = (e - 127 - par) >> 1
    v = SQRT.total(xp, m, par)
    r = ((127 + h) << 23) | ((v >> 35) & 0x7FFFFF)
    r = xp.where(s == 1, NAN, r)
    r = xp.where(e == 255, xp.where((m == 0) & (s == 0), INFINITY, NAN), r)
    return xp.where(e == 0, s << 31, r)


def mufu_lg2(xp: Any, x: Array) -> Any:
    s, e, m = split(x)
    v = (LG2.total(xp, m) >> 21) + ((e - 127) << 36)
    a = xp.where(v < 0, ~v, v)
    r = from_fixed(xp, a, 36) | xp.where(v < 0, 1 << 31, 0)
    r = xp.where(x == 0x3F800000, 0, r)
    r = xp.where(s == 1, NAN, r)
    r = xp.where(e == 255, xp.where((m == 0) & (s == 0), INFINITY, NAN), r)
    return xp.where(e == 0, 0xFF800000, r)


def mufu_ex2(xp: Any, x: Array) -> Any:
    s, e, m = split(x)
    sig = m | 0x800000
    sh = e - 127
    f = xp.where(sh >= 0, sig << xp.clip(sh, 0, 8), sig >> xp.clip(-sh, 0, 24))
    f = xp.where(s == 1, xp.where((f & 0x7FFFFF) == 0, -f, ~f), f)
    n = f >> 23
    fr = f & 0x7FFFFF
    v = EX2.total(xp, fr)
    exponent = n + 127
    r = xp.where(exponent <= 0, 0, (exponent << 23) | ((v >> 34) & 0x7FFFFF))
    r = xp.where((exponent >= 255), INFINITY, r)
    r = xp.where(sh >= 8, xp.where(s == 1, 0, INFINITY), r)
    r = xp.where(e == 0, 0x3F800000, r)
    return xp.where((e == 255) & (m != 0), NAN, r)


def rcp(xp: Any, x: Array) -> Any:
    e = split(x)[1]
    big = e >= 253
    small = e == 0
    xs = bits(
        xp,
        floats(xp, x)
        * xp.where(small, xp.float32(2**24), xp.where(big, xp.float32(0.25), xp.float32(1))).astype(xp.float32),
    )
    r = mufu_rcp(xp, xs)
    return bits(
        xp,
        floats(xp, r)
        * xp.where(small, xp.float32(2**24), xp.where(big, xp.float32(0.25), xp.float32(1))).astype(xp.float32),
    )


def scaled(xp: Any, x: Array, unit: Any, back: Any) -> Any:
    e = split(x)[1]
    small = e == 0
    xs = bits(xp, floats(xp, x) * xp.where(small, xp.float32(2**24), xp.float32(1)).astype(xp.float32))
    r = unit(xp, xs)
    return xp.where(small, back(r), r)


def rsqrt(xp: Any, x: Array) -> Any:
    return scaled(xp, x, mufu_rsqrt, lambda r: bits(xp, floats(xp, r) * xp.float32(4096)))


def sqrt(xp: Any, x: Array) -> Any:
    return scaled(xp, x, mufu_sqrt, lambda r: bits(xp, floats(xp, r) * xp.float32(2**-12)))


def lg2(xp: Any, x: Array) -> Any:
    return scaled(xp, x, mufu_lg2, lambda r: bits(xp, floats(xp, r) - xp.float32(24)))


def ex2(xp: Any, x: Array) -> Any:
    low = (x > 0xC2FC0000) & (x <= 0xFF800000)
    r = mufu_ex2(xp, bits(xp, xp.where(low, floats(xp, x) * xp.float32(0.5), floats(xp, x))))
    return xp.where(low, bits(xp, floats(xp, r) * floats(xp, r)), r)


def turns(xp: Any, x: Array) -> Any:
    p = floats(xp, x).astype(xp.float64) * float(np.float32(0.15915493667125701904))
    f = p.astype(xp.float32)
    fb = bits(xp, f)
    back = xp.abs(f.astype(xp.float64)) > xp.abs(p)
    y = xp.where(back, fb - 1, fb)
    return y


def mufu_sincos(xp: Any, y: Array, cos: Any) -> Any:
    s, e, m = split(y)
    sig = m | 0x800000
    sh = e - 127 + 2
    f = xp.where(sh >= 0, sig << xp.clip(sh, 0, 38), sig >> xp.clip(-sh, 0, 24))
    f = xp.where(e == 0, 0, f)
    f = xp.where(sh >= 38, 0, f)
    q = (f >> 23) + cos
    fr = f & 0x7FFFFF
    fr = xp.where((q & 1) == 1, fr ^ 0x7FFFFF, fr)
    v = SIN.total(xp, fr)
    r = from_fixed(xp, v, 57)
    sign = ((q >> 1) & 1) ^ (0 if cos else s)
    r = r | (sign << 31)
    return xp.where(e == 255, NAN, r)


def sin(xp: Any, x: Array) -> Any:
    return mufu_sincos(xp, turns(xp, x), 0)


def cos(xp: Any, x: Array) -> Any:
    return mufu_sincos(xp, turns(xp, x), 1)
