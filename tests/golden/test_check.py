"""`golden check`: damaged, misnamed, stale and wrong vectors; other people's code as the judge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from golden.checked_in import NAMES, case

from conftest import ROOT
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Verdict
from ssmtool.golden.case import GoldenCase, Provenance
from ssmtool.golden.check import check_files
from ssmtool.golden.format import case_bytes
from ssmtool.golden.make import path_of
from ssmtool.golden.oracles import AGREEMENT, judge, load

GOLDEN = ROOT / "golden"


def _write(folder: Path, made: GoldenCase, name: str | None = None) -> Path:
    path = path_of(folder, name or made.meta.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case_bytes(made))
    return path


def _rules(path: Path, folder: Path, **options: bool) -> list[str]:
    outcome, _ = check_files([path], folder, **options)
    return [finding.rule for finding in outcome.findings]


def test_the_products_own_pass(tmp_path: Path) -> None:
    assert _rules(_write(tmp_path, case("sigmoid/n1")), tmp_path, mistakes=True) == []


def test_damaged_and_misnamed(tmp_path: Path) -> None:
    path = _write(tmp_path, case("sigmoid/n1"), "sigmoid/n2")
    assert _rules(path, tmp_path) == ["golden/misnamed"]
    path.write_bytes(path.read_bytes()[:-100])
    assert _rules(path, tmp_path) == ["golden/damaged"]


def test_a_changed_expectation_is_stale(tmp_path: Path) -> None:
    made = case("sigmoid/n1")
    changed = replace(made, after={"x": np.nextafter(made.after["x"], np.float32(2))})
    assert _rules(_write(tmp_path, changed), tmp_path) == ["golden/stale"]


def _foreign(made: GoldenCase, **changes: object) -> GoldenCase:
    meta = msgspec.structs.replace(made.meta, provenance=Provenance(note="by hand"), **changes)
    return replace(made, meta=meta)


def test_others_vectors_are_held_to_the_reference_by_their_own_tolerance(tmp_path: Path) -> None:
    made = _foreign(case("sigmoid/n255"))
    near = replace(made, after={"x": np.nextafter(made.after["x"], np.float32(2))})
    far = replace(made, after={"x": made.after["x"] * np.float32(1.01)})
    assert _rules(_write(tmp_path, near), tmp_path) == []
    assert _rules(_write(tmp_path, far), tmp_path) == ["golden/reference"]


def test_another_contract_is_told(tmp_path: Path) -> None:
    assert _rules(_write(tmp_path, _foreign(case("sigmoid/n1"), contract="2")), tmp_path) == ["golden/contract"]


def test_mistakes_that_pass_and_that_nobody_knows(tmp_path: Path) -> None:
    made = _foreign(case("sigmoid/n1"), exposes=("subnormals-flushed", "colour-wrong"))
    assert _rules(_write(tmp_path, made), tmp_path) == ["golden/unknown-mistake"]
    assert _rules(_write(tmp_path, made), tmp_path, mistakes=True) == ["golden/unknown-mistake", "golden/not-exposed"]


def test_an_unknown_kernel_is_a_skip_never_a_pass_in_silence(tmp_path: Path) -> None:
    made = case("sigmoid/n1")
    (run,) = made.meta.runs
    launch = msgspec.structs.replace(run.launches[0], entry="mine")
    other = _foreign(made, runs=(msgspec.structs.replace(run, launches=(launch,)),))
    outcome, _ = check_files([_write(tmp_path, other)], tmp_path)
    assert outcome.verdict is Verdict.OK
    assert [skip.reason for skip in outcome.skips] == ["no reference is known for mine: only its form was checked"]


def _judged(name: str, oracle: str) -> tuple[int, float]:
    try:
        judge_of = load(oracle)
    except SsmtoolError as error:
        pytest.skip(f"the reference was not compared with {oracle}: {error}")
    said = [judge(case(each), judge_of) for each in NAMES if each.startswith(name)]
    return sum(not each.skipped for each in said), max((each.nmse for each in said), default=0.0)


@pytest.mark.parametrize(
    ("oracle", "name", "least"),
    [
        ("python", "sigmoid", 9),
        ("python", "decay-gate", 9),
        ("python", "convolution/t", 6),
        ("python", "qknorm", 8),
        ("python", "gated-norm/s", 5),
        ("torch", "convolution/", 10),
        ("torch", "qknorm", 8),
        ("fla", "recurrence/mistake", 5),
        ("fla", "recurrence/nan-s8", 1),
        ("fla", "decay-gate", 9),
        ("fla", "decode-step/mistake", 6),
        ("fla", "slots/guard", 2),
        ("transformers", "recurrence/chunks", 2),
        ("transformers", "convolution/t", 6),
        ("transformers", "gated-norm", 5),
        ("transformers", "decode-step/mistake-", 5),
        ("transformers", "decode-step/odd", 2),
    ],
)
def test_other_peoples_code_agrees(oracle: str, name: str, least: int) -> None:
    count, worst = _judged(name, oracle)
    assert count >= least and worst <= AGREEMENT


def test_an_oracle_sees_a_wrong_reference() -> None:
    vector = case("qknorm/mistake-grouped-heads")
    # As if our contract grouped the heads: their answer is for interleaved ones.
    row = vector.before["conv_out"].copy()
    oracle = load("python")
    assert judge(vector, oracle).ok
    wrong = dict(oracle.formulas)
    wrong["fc_ssm_qknorm_gqa"] = lambda launch: oracle.formulas["fc_ssm_qknorm_gqa"](launch) or _swap(launch)
    assert not judge(vector, replace(oracle, formulas=wrong)).ok
    assert np.array_equal(row, vector.before["conv_out"])


def _swap(launch: object) -> None:
    q = launch.array("qg", 4, 8)  # type: ignore[attr-defined]
    q[[1, 2]] = q[[2, 1]]


def test_an_unknown_oracle_is_an_error() -> None:
    with pytest.raises(SsmtoolError, match="no oracle is named llama; there are: transformers, fla"):
        load("llama")
