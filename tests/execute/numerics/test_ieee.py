"""IEEE operations in every rounding against MPFR and against vectorised integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest
from execute.numerics.exact import MODES, round32, split32

from ssmtool.execute.numerics import ieee
from ssmtool.execute.numerics.harness import compile_one

ROUND = {
    "rn": gmpy2.RoundToNearest, "rz": gmpy2.RoundToZero, "rm": gmpy2.RoundDown, "rp": gmpy2.RoundUp,
}  # fmt: skip
FORMATS = {"f32": (24, 128, -148, np.uint32, np.float32), "f64": (53, 1024, -1073, np.uint64, np.float64)}
OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, gmpy2.add), "sub": (2, gmpy2.sub), "mul": (2, gmpy2.mul), "div": (2, gmpy2.div),
    "fma": (3, gmpy2.fma), "sqrt": (1, gmpy2.sqrt),
}  # fmt: skip


def floats(rng: np.random.Generator, kind: str, count: int, low: int, high: int) -> np.ndarray:
    """Bits with exponent fields in low..high-1; often few or all mantissa bits set, so that ties and carries come."""
    bits, fraction = (32, 23) if kind == "f32" else (64, 52)
    unsigned = FORMATS[kind][3]
    mantissa = rng.integers(0, 1 << fraction, count, dtype=np.uint64)
    style = rng.integers(0, 8, count)
    mantissa = np.where(style == 0, 0, np.where(style == 1, (1 << fraction) - 1, mantissa))
    cut = fraction * 2 // 3
    mantissa = np.where(style == 2, mantissa >> cut << cut, np.where(style == 3, mantissa >> cut, mantissa))
    field = rng.integers(low, high, count, dtype=np.uint64)
    sign = rng.integers(0, 2, count, dtype=np.uint64)
    return (sign << (bits - 1) | field << fraction | mantissa.astype(np.uint64)).astype(unsigned)


def ranges(kind: str) -> list[tuple[tuple[int, int], ...]]:
    """Exponent fields of the operands: near one; everything; products and sums at both ends of the format."""
    bias, top = (127, 255) if kind == "f32" else (1023, 2047)
    near, every = (bias - 3, bias + 3), (0, top)
    low, high = (0, 30), (top - 30, top)
    third, half = (bias // 2 - 15, bias // 2 + 15), (bias * 3 // 2 - 15, bias * 3 // 2 + 15)
    return [(near,) * 3, (every,) * 3, (low, near, low), (third, third, low), (half, half, high), (high, near, high)]


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_every_rounding_is_mpfr_s(op: str, kind: str) -> None:
    precision, emax, emin, unsigned, real = FORMATS[kind]
    operands, exact = OPERATIONS[op]
    rng = np.random.default_rng(4)
    columns = [np.concatenate([floats(rng, kind, 4000, *spans[k]) for spans in ranges(kind)]) for k in range(operands)]
    if op == "fma":  # an addend that cancels the product to within its last bits
        with np.errstate(all="ignore"):
            product = (-(columns[0].view(real) * columns[1].view(real))).view(unsigned)
        cancel = rng.random(len(product)) < 0.3
        columns[2] = np.where(cancel, product ^ rng.integers(0, 2, len(product)).astype(unsigned), columns[2])
    values = [[gmpy2.mpfr(float(x), 53) for x in column.view(real)] for column in columns]
    for mode in MODES:
        mapped = compile_one(lambda b, v, m=mode: getattr(ieee, op)(b, *v, rounding=m), (kind,) * operands, kind)
        got = mapped(*columns)
        with gmpy2.context(precision=precision, emax=emax, emin=emin, subnormalize=True, round=ROUND[mode]):
            want = np.array([float(exact(*row)) for row in zip(*values, strict=True)]).astype(real)
        nan = np.isnan(want)
        assert np.array_equal(np.isnan(got.view(real)), nan)
        assert np.array_equal(got[~nan], want.view(unsigned)[~nan]), mode


@pytest.mark.parametrize("mode", MODES)
def test_f32_products_and_quotients_by_the_million(mode: str) -> None:
    rng = np.random.default_rng(7)
    x, y = floats(rng, "f32", 1_000_000, 0, 255), floats(rng, "f32", 1_000_000, 0, 255)
    close = rng.random(len(x)) < 0.4  # aim at the edges: results around 2^-126 and 2^128
    partner = 254 - (x >> 23 & 255).astype(np.int64) + rng.choice([-127, 126], len(x)) + rng.integers(-3, 4, len(x))
    y = np.where(close, y & 0x807FFFFF | np.clip(partner, 0, 254).astype(np.uint32) << 23, y).astype(np.uint32)
    keep = (x & 0x7FFFFFFF != 0) & (y & 0x7FFFFFFF != 0)
    x, y = x[keep], y[keep]
    (nx, mx, ex), (ny, my, ey) = split32(x), split32(y)
    product = round32(nx != ny, (mx * my) << 2, ex + ey - 2, np.zeros(len(x), bool), mode)
    mul = compile_one(lambda b, v: ieee.mul(b, *v, rounding=mode), ("f32", "f32"), "f32")
    assert np.array_equal(mul(x, y), product)
    quotient, rest = np.divmod(mx << 37, my)
    div = compile_one(lambda b, v: ieee.div(b, *v, rounding=mode), ("f32", "f32"), "f32")
    assert np.array_equal(div(x, y), round32(nx != ny, quotient, ex - ey - 37, rest > 0, mode))


def test_fma_is_not_done_through_double() -> None:
    mapped = compile_one(lambda b, v: ieee.fma(b, *v), ("f32",) * 3, "f32")
    x = np.array([1 + 2.0**-12], np.float32)
    assert mapped(x, x, np.array([2.0**-70], np.float32))[0] == 0x3F801001


def test_an_exact_zero_is_minus_zero_only_under_rm_and_an_underflow_keeps_its_side() -> None:
    one, tiny = np.array([1.0], np.float32), np.array([2.0**-100], np.float32)
    zero = np.array([0.0], np.float32)

    def fma(mode: str, *values: np.ndarray) -> int:
        mapped = compile_one(lambda b, v: ieee.fma(b, *v, rounding=mode), ("f32",) * 3, "f32")
        return int(mapped(*values)[0])

    assert [fma(m, one, one, -one) for m in MODES] == [0, 0, 0x80000000, 0]
    assert [fma(m, tiny, tiny, zero) for m in MODES] == [0, 0, 0, 1]
    assert [fma(m, tiny, -tiny, zero) for m in MODES] == [0x80000000, 0x80000000, 0x80000001, 0x80000000]


def test_ftz_and_sat_clean_nan_and_minus_zero() -> None:
    def mapped(**options: Any) -> Any:
        return compile_one(lambda b, v: ieee.add(b, *v, **options), ("f32", "f32"), "f32")

    minus_zero, nan = np.array([-0.0, -0.0], np.float32), np.array([np.nan, 2.0], np.float32)
    assert mapped(sat=True)(minus_zero, minus_zero).tolist() == [0, 0]
    assert mapped(sat=True)(nan, nan).tolist() == [0, 0x3F800000]
    small = np.array([0x80000001, 0x007FFFFF], np.uint32)
    assert mapped(ftz=True)(small, small).tolist() == [0x80000000, 0]


def test_f64_fma_sees_a_remainder_that_two_roundings_hide() -> None:
    # product = p + half an ulp exactly, addend = half an ulp less 2^-106: their sum rounds to a whole ulp
    x, y = np.array([1 + 3 * 2.0**-52]), np.array([1.5])
    z = np.array([2.0**-53 - 2.0**-106])
    got = [compile_one(lambda b, v, m=m: ieee.fma(b, *v, rounding=m), ("f64",) * 3, "f64")(x, y, z)[0] for m in MODES]
    five = np.float64(1.5 + 5 * 2.0**-52).view(np.uint64)
    assert got == [five, five - np.uint64(1), five - np.uint64(1), five]
