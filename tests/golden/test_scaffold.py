"""The script of `golden new`: nothing before it is edited, and its formula takes the numbers that the kernel reads."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ssmtool.golden import GoldenCase, read_case
from ssmtool.golden.scaffold import PLACEHOLDER, script
from ssmtool.golden.signature import Parameter

_PARAMETERS = (
    Parameter("y", "float32", buffer=True, stored=True),
    Parameter("x", "float32", buffer=True, loaded=True),
    Parameter("a", "float32"),
    Parameter("b", "float64"),
    Parameter("n", "int32"),
)
_TITLE = ('title = "EDIT: what this case is there for"', 'title = "a small one"')


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _made(parameters: Sequence[Parameter], *edits: tuple[str, str]) -> GoldenCase:
    text = script("k", parameters)
    for old, new in (_TITLE, *edits):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    Path("make.py").write_text(text, "utf-8")
    runpy.run_path("make.py", run_name="__main__")
    return read_case(Path("golden/k/small.npz"))


def test_a_script_that_nobody_edited_writes_nothing_and_says_why() -> None:
    Path("make.py").write_text(script("k", _PARAMETERS), "utf-8")
    with pytest.raises(SystemExit, match="nothing is written: its title and formula are still those of the template"):
        runpy.run_path("make.py", run_name="__main__")
    assert not Path("golden").exists()


def test_inputs_are_rounded_before_the_formula() -> None:
    # Drawn in float64 and rounded only on their way into the file, every expectation was off by their rounding: half
    # an ulp of x, and some hundred of exp(20 x).
    case = _made(_PARAMETERS, ('"y": np.zeros(n)', '"y": np.exp(20 * exact["x"])'))
    x = case.before["x"]
    assert x.dtype == np.float32
    assert np.array_equal(case.after["y"], np.exp(20 * x.astype(np.float64)).astype(np.float32))


def test_a_float_argument_is_what_fp32_has() -> None:
    case = _made(_PARAMETERS, ("np.float32(1.0)", "np.float32(0.1)"))
    values = {each.name: each.value for each in case.meta.runs[0].launches[0].args if each.type}
    assert values == {"a": float(np.float32(0.1)), "b": 1.0, "n": 1000}


def test_a_buffer_that_is_read_and_written_is_given_and_expected() -> None:
    both = Parameter("y", "float32", buffer=True, loaded=True, stored=True)
    case = _made((both, *_PARAMETERS[1:]), ('"y": np.zeros(n)', '"y": exact["y"] + exact["x"]'))
    assert (case.meta.buffers["y"].before, case.meta.buffers["y"].after) == ("given", "expected")
    total = case.before["y"].astype(np.float64) + case.before["x"]
    assert np.array_equal(case.after["y"], total.astype(np.float32))


_BYTES = (
    Parameter("q", "int8", buffer=True, stored=True),
    Parameter("v", "uint8", buffer=True, loaded=True),
    Parameter("h", "float16", buffer=True, loaded=True),
    Parameter("n", "int64"),
)


def test_each_buffer_has_its_own_type_and_integers_are_exact() -> None:
    case = _made(_BYTES, ('"q": np.zeros(n)', '"q": exact["v"] - 128'))
    assert {name: each.dtype for name, each in case.meta.buffers.items()} == {
        "q": "int8", "v": "uint8", "h": "float16",
    }  # fmt: skip
    assert (case.before["v"].dtype, case.before["h"].dtype, case.after["q"].dtype) == (np.uint8, np.float16, np.int8)
    assert case.meta.buffers["q"].policy == "exact"
    # Not wrapped at 256: the formula is of whole numbers.
    assert np.array_equal(case.after["q"], case.before["v"].astype(int) - 128)
    assert case.meta.runs[0].launches[0].args[-1].type == "int64"


@pytest.mark.parametrize("formula", ['exact["v"] + 0.5', 'exact["v"] + 128', 'exact["h"] * np.nan'])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_the_type_does_not_have_is_refused_and_not_cut_off(formula: str) -> None:
    with pytest.raises(SystemExit, match="expected 'q': not all are numbers of int8"):
        _made(_BYTES, ('"q": np.zeros(n)', f'"q": {formula}'))
    assert not Path("golden").exists()


def test_a_policy_of_the_file_s_own_is_where_the_comment_shows_it() -> None:
    case = _made(
        _PARAMETERS,
        ("policies = {}\n", 'policies = {"reduction": {"nmse": 1e-12, "max_rms": 1e-5}}\n'),
        ('"y": "elementwise"', '"y": "reduction"'),
    )
    assert case.policy("y").nmse == 1e-12


def test_the_limits_in_its_comment_are_the_policies() -> None:
    from ssmtool.golden.policies import POLICIES

    lines = {line.split()[1]: line for line in script("k").splitlines() if line.startswith("#   ") and ":" in line}
    assert POLICIES.keys() == lines.keys() - {"policies"}
    for name, policy in POLICIES.items():
        for word, limit in (("NMSE", policy.nmse), ("", policy.max_ulp)):
            assert limit is None or f"{word} {limit:g}".strip() in lines[name]
        assert policy.max_rms is None or float(lines[name].partition(" and ")[2].split()[0]) == policy.max_rms


@pytest.mark.parametrize("parameters", [PLACEHOLDER, _PARAMETERS[:1], (Parameter("p", "int32"), *_PARAMETERS[:1])])
def test_it_makes_a_whole_vector_of_zeros_once_it_has_a_title(parameters: tuple[Parameter, ...]) -> None:
    assert not _made(parameters).after["y"].any()


def test_guesses_are_marked() -> None:
    text = script("k", [Parameter("p", "float32", buffer=True, loaded=True, sure=False), _PARAMETERS[0]])
    assert '"p": "float32",  # EDIT: a guess' in text and '"y": "float32",\n' in text
