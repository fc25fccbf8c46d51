"""A saved failure is a vector that fails again by itself; what failed last is remembered outside the repository."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from verify.conftest import Cases, edited, verified

from ssmtool import ptx
from ssmtool.golden import read_case
from ssmtool.verify import Options, Text
from ssmtool.verify.saving import save_failures
from ssmtool.verify.state import read_failed, state_path, write_failed


def test_a_saved_failure_fails_again_by_itself(text: Text, cases: Cases, tmp_path: Path) -> None:
    broken = edited(text, "fc_ssm_decay_gate_nx", "add.rn.f32", "sub.rn.f32")
    outcome = verified(broken, cases("decay-gate/h1-n1", "sigmoid/n1"), options=Options(keep=True))
    saved = save_failures(tmp_path, outcome.results, [Text(text.module)])
    names = {path.name for path in saved}
    assert names == {"module.ptx", "decay-gate-h1-n1-cpu.npz", "decay-gate-h1-n1-cpu.got.npz"}
    case = read_case(tmp_path / "decay-gate-h1-n1-cpu.npz")
    assert [run.name for run in case.meta.runs] == ["fc_ssm_decay_gate_nx"]
    assert verified(broken, [case]).failed
    got = np.load(tmp_path / "decay-gate-h1-n1-cpu.got.npz")["fc_ssm_decay_gate_nx.g"]
    assert got.shape == case.after["g"].shape
    assert (got != case.after["g"]).all()


def test_what_is_kept_beside_other_runs_has_the_ptx_that_failed(text: Text, cases: Cases, tmp_path: Path) -> None:
    first = edited(text, "fc_ssm_decay_gate_nx", "add.rn.f32", "sub.rn.f32")
    outcome = verified(first, cases("decay-gate/h1-n1"), options=Options(keep=True))
    second = first.replace("fc_sigmoid", "fc_other")
    paths = [
        save_failures(tmp_path, outcome.results, [Text(ptx.parse(each))], beside=True)[0] for each in (first, second)
    ]
    assert [path.read_text("utf-8") for path in paths] == [first, second]


def test_both_sides_of_a_relation_are_saved(text: Text, tmp_path: Path) -> None:
    broken = edited(text, "fc_ssm_decay_gate_nx", "add.rn.f32", "sub.rn.f32")
    options = Options(keep=True, names=frozenset(["R4/decay-gate"]), rounds=1)
    outcome = verified(broken, (), "R4/decay-gate", options=options)
    save_failures(tmp_path, outcome.results, [])
    sides = np.load(tmp_path / "R4-decay-gate-cpu.got.npz")
    assert (sides["g.got"] != sides["g.want"]).any()


def test_nothing_is_written_when_nothing_failed(text: Text, cases: Cases, tmp_path: Path) -> None:
    outcome = verified(text, cases("sigmoid/n1"))
    assert save_failures(tmp_path / "new", outcome.results, [text]) == []
    assert not (tmp_path / "new").exists()


def test_what_failed_is_remembered_by_project(tmp_path: Path) -> None:
    assert write_failed(tmp_path, ["b", "a", "a"]) is None
    assert read_failed(tmp_path) == ["a", "b"]
    assert read_failed(tmp_path / "other") is None


@pytest.mark.parametrize("data", [b"", b"[]", b'{"failed": 1}', b'{"failed": [1]}', b"\xff", b"[" * 100_000])
def test_a_damaged_memory_is_none(tmp_path: Path, data: bytes) -> None:
    path = state_path(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    assert read_failed(tmp_path) is None
