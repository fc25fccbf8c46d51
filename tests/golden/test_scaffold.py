"""The script of `golden new`: it runs as it is, and its formula takes the numbers that the kernel reads."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from ssmtool.golden import GoldenCase, read_case
from ssmtool.golden.scaffold import script

_PARAMETERS = (("y", "u64"), ("x", "u64"), ("a", "f32"), ("b", "f64"), ("n", "u32"))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _made(text: str) -> GoldenCase:
    Path("make.py").write_text(text, "utf-8")
    runpy.run_path("make.py", run_name="__main__")
    return read_case(Path("golden/k/small.npz"))


def _edited(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_inputs_are_rounded_before_the_formula() -> None:
    # Drawn in float64 and rounded only on their way into the file, every expectation was off by their rounding: half
    # an ulp of x, and some hundred of exp(20 x).
    case = _made(_edited(script("k", _PARAMETERS), "np.zeros(n)", 'np.exp(20 * exact["x"])'))
    x = case.before["x"]
    assert x.dtype == np.float32
    assert np.array_equal(case.after["y"], np.exp(20 * x.astype(np.float64)).astype(np.float32))


def test_a_float_argument_is_what_fp32_has() -> None:
    case = _made(_edited(script("k", _PARAMETERS), "np.float32(1.0)", "np.float32(0.1)"))
    values = {each.name: each.value for each in case.meta.runs[0].launches[0].args if each.type}
    assert values == {"a": float(np.float32(0.1)), "b": 1.0, "n": 1000}


def test_a_buffer_that_is_read_and_written_is_given_and_expected() -> None:
    text = _edited(script("k", _PARAMETERS), '    "x": random', '    "y": random.standard_normal(n),\n    "x": random')
    case = _made(_edited(text, "np.zeros(n)", 'exact["y"] + exact["x"]'))
    assert (case.meta.buffers["y"].before, case.meta.buffers["y"].after) == ("given", "expected")
    total = case.before["y"].astype(np.float64) + case.before["x"]
    assert np.array_equal(case.after["y"], total.astype(np.float32))


@pytest.mark.parametrize("parameters", [(), (("p", "u64"),), (("p", "u64"), ("n", "s64"))])
def test_it_runs_as_it_is(parameters: tuple[tuple[str, str], ...]) -> None:
    assert not _made(script("k", parameters)).after[parameters[0][0] if parameters else "y"].any()
