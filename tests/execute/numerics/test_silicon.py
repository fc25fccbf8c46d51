"""Every form of `ssmtool.probe.variants` against what an H200 answered (measured/README.md): silicon is the oracle."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import numpy as np
import pytest
from execute.numerics.measured import FOLDER, silicon

from ssmtool.execute.numerics.form import UnsupportedError
from ssmtool.execute.numerics.harness import Mapped, Operation, compile_all
from ssmtool.probe import stress
from ssmtool.probe.body import emit, forms_of
from ssmtool.probe.inputs import inputs
from ssmtool.probe.variants import Variant, register, variants


@functools.cache
def executed() -> list[Variant]:
    """The forms that the executor takes."""
    found = []
    for v in variants():
        try:
            forms_of(v)
        except UnsupportedError:
            continue
        found.append(v)
    return found


def compiled(forms: Sequence[Variant], lanes: int, level: int) -> list[Mapped]:
    operations = [Operation(emit(v), tuple(register(k) for k in v.operands), register(v.result)) for v in forms]
    return compile_all(operations, lanes, level=level)


def raw(v: Variant, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The operands cut to their registers' width."""
    return [a.astype(f"u{int(register(k)[1:]) // 8}") for k, a in zip(v.operands, arrays, strict=True)]


def test_every_executed_form_gives_the_silicon_s_bits() -> None:
    results, _ = silicon()
    wrong = []
    forms = executed()
    for start in range(0, len(forms), 256):
        group = forms[start : start + 256]
        for v, mapped in zip(group, compiled(group, 8, 0), strict=True):
            got = mapped(*raw(v, [inputs(k, i) for i, k in enumerate(v.operands)]))
            if (got.astype(np.uint64) != results[v.name]).any():
                wrong.append(v.name)
    assert wrong == []
    assert len(forms) == 2984


def test_optimised_float_forms_keep_the_bits_on_special_values_and_at_the_format_s_edges() -> None:
    # optimised: LLVM once folded the NaN test of a square root away
    hashes = json.loads((FOLDER / "stress_h200.json").read_text())["sha256"]
    forms = stress.forms()
    assert len(forms) == len(hashes) == 514
    cases = {v.operands: stress.stress(v.operands) for v in forms}
    wrong = []
    for start in range(0, len(forms), 128):
        group = forms[start : start + 128]
        for v, mapped in zip(group, compiled(group, 32, 2), strict=True):
            got = mapped(*raw(v, cases[v.operands]))
            if stress.digest(got.astype(np.uint64)) != hashes[v.name]:
                wrong.append(v.name)
    assert wrong == []


def test_what_is_refused_is_what_ptxas_refuses_and_the_video_forms_in_doubt() -> None:
    results, rejected = silicon()
    run = {v.name for v in executed()}
    assert run.isdisjoint(rejected)
    refused = set(results) - run
    assert all(name.startswith("v") for name in refused)
    assert len(refused) == 265


@pytest.mark.parametrize("features", ["", "+sse4.1", "+avx2,+fma,+bmi2"])
def test_processors_without_avx512_or_fma_give_the_same_bits(features: str) -> None:
    results, _ = silicon()
    names = {
        "fma.rn.f32", "fma.rn.f64", "fma.rm.ftz.f32", "mul.rp.f64", "sqrt.rp.f64", "ex2.approx.f32", "lg2.approx.f32",
        "sin.approx.f32", "cvt.rni.s32.f32", "cvt.rzi.s64.f64", "cvt.rmi.u32.f32", "cvt.rpi.f64.f64",
        "cvt.rn.f16.f32", "cvt.f32.f16", "cvt.rn.f32.u64", "div.u64", "mul.hi.s64", "popc.b64", "brev.b32", "min.f32",
    }  # fmt: skip
    forms = [v for v in variants() if v.name in names]
    assert len(forms) == len(names)
    operations = [Operation(emit(v), tuple(register(k) for k in v.operands), register(v.result)) for v in forms]
    for v, mapped in zip(forms, compile_all(operations, 32, features), strict=True):
        got = mapped(*raw(v, [inputs(k, i) for i, k in enumerate(v.operands)]))
        assert np.array_equal(got.astype(np.uint64), results[v.name]), v.name
