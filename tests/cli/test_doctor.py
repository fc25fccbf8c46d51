"""`ssmtool doctor` as a command: formats, exit codes, what may be asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doctor.recorded import Recorded, load

from conftest import ROOT, Run
from ssmtool.doctor import run as doctor_run


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A laptop in the place of this machine; the test may change it."""
    data = load("laptop")
    monkeypatch.setattr(doctor_run, "ThisMachine", lambda: Recorded(data))
    return data


def test_this_very_machine_is_examined(run: Run) -> None:
    ran = run(ROOT, "doctor", "--format", "json")
    assert ran.code == ran.json["exit_code"]
    assert {check["id"] for check in ran.json["checks"]} >= {"base/python", "build/compiler", "card/present"}
    assert not any("the check itself failed" in check["found"] for check in ran.json["checks"])


@pytest.mark.usefixtures("machine")
def test_a_laptop_without_gpu_and_cuda_is_fine(run: Run) -> None:
    ran = run(ROOT, "doctor")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "ok: all links but the card's can be checked here; its numbers want a K80"


@pytest.mark.usefixtures("machine")
def test_quiet_prints_nothing_when_all_is_well(run: Run) -> None:
    assert run(ROOT, "doctor", "--quiet").out == ""


def test_a_broken_part_is_exit_code_1_with_its_mend(run: Run, machine: dict[str, object]) -> None:
    machine["settings"] = "unknown key"
    ran = run(ROOT, "doctor")
    assert ran.code == 1
    assert "problem" in ran.out
    assert "mend it: docs/settings.md lists every key" in ran.out
    assert ran.out.splitlines()[-1].startswith("wrong: base/settings: ")


@pytest.mark.usefixtures("machine")
def test_what_is_required_and_not_here_is_exit_code_1(run: Run) -> None:
    ran = run(ROOT, "doctor", "--require", "sm_37:2", "--require", "nvrtc-11.4,nvcc-11.4", "--format", "json")
    verdicts = {check["id"]: check["verdict"] for check in ran.json["checks"] if check["id"].startswith("require/")}
    assert verdicts == {
        "require/sm_37:2": "problem",
        "require/nvrtc-11.4": "ok",
        "require/nvcc-11.4": "problem",
    }
    assert ran.code == 1


@pytest.mark.parametrize("words", ["gpus", "sm_37:", "nvcc-", ",", "", "driver"])
def test_a_requirement_that_means_nothing_is_usage(run: Run, words: str) -> None:
    ran = run(ROOT, "doctor", "--require", words, "--format", "json")
    assert (ran.code, ran.json["exit_code"]) == (2, 2)
    assert "--require" in ran.err


def test_a_folder_that_is_none_is_usage(run: Run, tmp_path: Path) -> None:
    assert run(tmp_path / "none", "doctor").code == 2


@pytest.mark.parametrize("output_format", ["markdown", "github"])
def test_the_other_formats_carry_verdict_and_mend(run: Run, machine: dict[str, object], output_format: str) -> None:
    machine["ptxas"] = []
    machine["free"] = 5 << 20
    ran = run(ROOT, "doctor", "--format", output_format)
    assert ran.code == 1
    assert "wrong" in ran.out
    assert "pip install" in ran.out
    if output_format == "github":
        assert ran.out.startswith("::error title=doctor/base/disk::")
        assert "::warning title=doctor/build/ptxas::" in ran.out


@pytest.mark.usefixtures("machine")
def test_the_json_has_links_checks_and_facts(run: Run) -> None:
    document = json.loads(run(ROOT, "doctor", "--format", "json").out)
    assert document["verdict"] == "ok"
    assert [link["link"] for link in document["links"] if not link["here"]] == ["numbers on the card"]
    assert document["machine"]["compilers"][0]["version"] == "11.4.152"
