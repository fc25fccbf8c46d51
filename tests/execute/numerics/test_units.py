"""The approximation units: model against measured sweeps, all 2^23 mantissas, and the two versions of the model."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from execute.numerics import unit_reference as reference
from execute.numerics.measured import edge_inputs, edges, sweep

from ssmtool.execute.numerics import approx
from ssmtool.execute.numerics.harness import Mapped, compile_one
from ssmtool.probe.inputs import pairs

SWEEPS = [
    ("ex2", 0x3F800000), ("ex2", 0xBF800000), ("rcp", 0x3F800000), ("rsqrt", 0x3F800000), ("rsqrt", 0x40000000),
    ("sqrt", 0x3F800000), ("sqrt", 0x40000000), ("lg2", 0x3F800000), ("lg2", 0x40000000), ("lg2", 0x3F000000),
    ("sin", 0x3F800000), ("cos", 0x3F000000), ("cos", 0x3F800000),
]  # fmt: skip


@cache
def unit(op: str, ftz: bool) -> Mapped:
    return compile_one(lambda b, v: approx.approx(b, op, v[0], ftz), ("f32",), "f32")


@pytest.mark.parametrize(("op", "first"), SWEEPS)
def test_every_mantissa_of_a_binade_is_the_card_s(op: str, first: int) -> None:
    x = (np.arange(1 << 23) + first).astype(np.uint32)
    assert np.array_equal(unit(op, True)(x), sweep(op, first))


@pytest.mark.parametrize("ftz", [True, False])
@pytest.mark.parametrize("op", approx.UNITS)
def test_inputs_of_every_exponent_are_the_card_s(op: str, ftz: bool) -> None:
    want = edges(f"{op}_approx{'_ftz' * ftz}_f32")
    x = edge_inputs(len(want))
    assert np.array_equal(unit(op, ftz)(x), want)
    model = getattr(reference, f"mufu_{op}" if ftz and op not in ("sin", "cos") else op)
    with np.errstate(all="ignore"):
        assert np.array_equal(model(np, x.astype(np.int64)), want)


def test_ex2_of_negative_numbers_complements_the_fraction_but_not_of_whole_ones() -> None:
    x = np.array([-1.0, -2.0, -1e-30, -0.0, -126.0, -126.5, -149.0, -151.0, 128.0, -np.inf, np.inf], np.float32)
    want = [0x3F000000, 0x3E800000, 0x3F800000, 0x3F800000, 0x00800000, None, 1, 0, 0x7F800000, 0, 0x7F800000]
    got = unit("ex2", False)(x).tolist()
    assert [g for g, w in zip(got, want, strict=True) if w is not None] == [w for w in want if w is not None]
    assert unit("ex2", True)(x).tolist()[5:8] == [0, 0, 0]


def test_llvm_and_numpy_models_agree_between_the_measured_points() -> None:
    # every 9973rd of the 2^32 inputs, which the measured strides do not meet
    x = (np.arange((1 << 32) // 9973, dtype=np.uint64) * np.uint64(9973)).astype(np.uint32)
    wide = x.astype(np.int64)
    with np.errstate(all="ignore"):
        for op in approx.UNITS:
            assert np.array_equal(unit(op, False)(x), getattr(reference, op)(np, wide)), op


@pytest.mark.parametrize(("full", "ftz"), [(False, False), (False, True), (True, False), (True, True)])
def test_approximate_division_scales_as_the_compiler_does(full: bool, ftz: bool) -> None:
    want = edges(f"div_{'full' if full else 'approx'}{'_ftz' * ftz}_f32")
    x, y = pairs(len(want))
    mapped = compile_one(lambda b, v: approx.div(b, v[0], v[1], ftz, full), ("f32", "f32"), "f32")
    assert np.array_equal(mapped(x, y), want)


@pytest.mark.parametrize("name", ["rcp_approx_ftz_f64", "rsqrt_approx_ftz_f64", "rsqrt_approx_f64"])
def test_f64_units_see_the_high_word_only(name: str) -> None:
    def emit(b: object, v: object) -> object:
        if name.startswith("rcp"):
            return approx.rcp_f64(b, v[0])
        return approx.rsqrt_f64(b, v[0], "ftz" in name)

    mapped = compile_one(emit, ("f64",), "f64")
    low = np.uint64(0xFFFFFFFF)
    want = edges(name)
    x = edge_inputs(len(want)).astype(np.uint64) << np.uint64(32) | low
    assert np.array_equal(mapped(x), want)
    near = edges(name + "_hi")
    x = (np.arange(len(near), dtype=np.uint64) * np.uint64(64) + np.uint64(0x3FF00000)) << np.uint64(32) | low
    assert np.array_equal((mapped(x) >> np.uint64(32)).astype(np.uint32), near)
