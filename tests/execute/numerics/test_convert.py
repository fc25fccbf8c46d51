"""cvt against Python's exact integers and NumPy's f16, beside the sampled silicon of test_silicon."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from execute.numerics.exact import MODES, round32

from ssmtool.execute.numerics import convert
from ssmtool.execute.numerics.harness import Mapped, compile_one


def cvt(dst: str, src: str, rounding: str | None = None, **options: bool) -> Mapped:
    return compile_one(lambda b, v: convert.cvt(b, v[0], dst, src, rounding, **options), (src,), dst)


def test_all_65536_halves_widen_exactly() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    number = ~np.isnan(halves.view(np.float16))
    with np.errstate(invalid="ignore"):
        single = halves.view(np.float16).astype(np.float32).view(np.uint32)
        double = halves.view(np.float16).astype(np.float64).view(np.uint64)
    assert np.array_equal(cvt("f32", "f16")(halves)[number], single[number])
    assert (cvt("f32", "f16")(halves)[~number] == 0x7FFFFFFF).all()
    assert np.array_equal(cvt("f64", "f16")(halves)[number], double[number])


def test_narrowing_to_half_rounds_once_in_every_mode() -> None:
    # around every half: the half itself, the midpoint to the next, and an ulp of f32 to each side of both
    low = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    high = np.append(low[1:], 65536.0)
    middle = (low + high) / 2
    for source, unsigned in (("f32", np.uint32), ("f64", np.uint64)):
        real = np.float32 if source == "f32" else np.float64
        for points, exact in ((low, True), (middle, False)):
            bits = points.astype(real).view(unsigned)
            down, up = np.arange(0x7C00), np.arange(1, 0x7C01)
            even = np.where(down % 2 == 0, down, up)
            nearest = down if exact else even
            got = {m: cvt("f16", source, m)(bits) for m in MODES}
            assert np.array_equal(got["rn"], nearest)
            assert np.array_equal(got["rz"], down) and np.array_equal(got["rm"], down)
            assert np.array_equal(got["rp"], np.minimum(down if exact else up, 0x7C00))
            above = {m: cvt("f16", source, m)(bits + unsigned(1)) for m in MODES}
            assert np.array_equal(above["rn"], down if exact else up)
            assert np.array_equal(above["rp"], up) and np.array_equal(above["rz"], down)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_integers_to_f32_by_integer_arithmetic(kind: str, mode: str) -> None:
    rng = np.random.default_rng(1)
    bits = int(kind[1:])
    shift = rng.integers(0, bits, 200_000).astype(np.uint64)
    raw = rng.integers(0, 1 << 63, 200_000, dtype=np.uint64) * np.uint64(2) >> np.uint64(64 - bits) >> shift
    raw = raw.astype(f"u{bits // 8}")
    raw = raw[raw != 0]
    value = raw.view(f"i{bits // 8}") if kind[0] == "s" else raw
    negative = value < 0
    size = np.where(negative, (~raw.astype(np.uint64) + np.uint64(1)), raw.astype(np.uint64))
    if bits == 32:
        size = np.where(negative, size & np.uint64(0xFFFFFFFF), size)
    # the oracle takes 62 bits: hand it the upper part and whether anything is below, small ones widened
    wide = size >= np.uint64(1 << 30)
    mantissa = np.where(wide, size >> np.uint64(4), size << np.uint64(30)).astype(np.int64)
    sticky = wide & (size & np.uint64(15) != 0)
    want = round32(negative, mantissa, np.where(wide, 4, -30), sticky, mode)
    assert np.array_equal(cvt("f32", kind, mode)(raw), want)


@pytest.mark.parametrize(
    ("rounding", "exact"), [("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)]
)
@pytest.mark.parametrize("dst", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
def test_floats_to_integers_round_then_clamp(dst: str, rounding: str, exact: object) -> None:
    rng = np.random.default_rng(2)
    bits = int(dst[1:])
    edge = [2.0**k + d for k in (7, 8, 15, 16, 31, 32) for d in (-1.5, -1, -0.5, 0, 0.5, 1.5)]
    edge += [2.0**63, 2.0**64, 2.0**63 - 1024, 2.0**64 - 2048, 1e300, math.inf, 0.0, -0.0, 0.5, 1.5, 2.5]
    x = np.array([*edge, *(-e for e in edge), *(rng.normal(size=2000) * 2.0 ** rng.integers(-2, 66, 2000))])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dst[0] == "s" else (0, (1 << bits) - 1)

    def one(v: float) -> int:
        if math.isinf(v):
            return high if v > 0 else low
        return min(max(exact(Fraction(v)), low), high)  # type: ignore[operator]

    want = np.array([one(float(v)) & ((1 << bits) - 1) for v in x], np.uint64)
    assert np.array_equal(cvt(dst, "f64", rounding)(x).astype(np.uint64), want)
