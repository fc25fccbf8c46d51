"""`ssmtool probe` as a command: files, reports, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from probe.test_probe import ADD, EX2, Bent, trial

from conftest import Run
from ssmtool.device.errors import DeviceError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSMTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("ssmtool.probe.trials.trials", lambda **_quick: [trial(ADD, EX2)])
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def cards(monkeypatch: pytest.MonkeyPatch, *devices: Any) -> None:
    from ssmtool.device.select import Devices

    monkeypatch.setattr("ssmtool.device.select.open_devices", lambda _words, **_require: Devices(devices))


def test_the_self_test_says_that_it_is_no_evidence(run: Run, folder: Path) -> None:
    ran = run(folder, "probe", "--device", "cpu")
    assert ran.code == 0
    assert "self-test of the executor: no evidence about any card" in ran.out
    assert "2 forms, 1024 results compared, every bit is the executor's; no evidence about any card" in ran.out
    (path,) = folder.iterdir()
    assert path.name.startswith("probe-self-test-20")
    assert json.loads(path.read_text())["evidence"] == "self-test of the executor: no evidence about any card"
    assert "  0 %  edge inputs" in ran.err


@pytest.mark.parametrize("form", ["console", "json", "junit", "markdown", "github", "sarif"])
def test_a_card_that_differs_is_a_finding_and_exit_code_1(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def change(results: Any) -> None:
        results[:, 1] ^= 1

    cards(monkeypatch, Bent(change))
    ran = run(folder, "probe", "--out", "k80.json", "--format", form)
    assert ran.code == 1
    words = " ".join(ran.out.split())
    for each in ("ex2.approx.f32", "512 of 512", "1 ulp"):
        assert each in words
    data = json.loads((folder / "k80.json").read_text())
    assert (data["model"], data["target"], data["driver"]) == ("Bent K80", "sm_37", "11.4")
    assert data["different"][0]["name"] == "ex2.approx.f32"


def test_a_card_that_is_lost_is_not_a_pass_and_what_there_is_is_kept(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_results: Any) -> None:
        raise DeviceError("cuda:0 is lost", fatal=True)

    cards(monkeypatch, Bent(lose))
    ran = run(folder, "probe")
    assert ran.code == 2
    assert "not checked: the rest of the probe of cuda:0: cuda:0 is lost" in ran.out
    (path,) = folder.iterdir()
    assert path.name.startswith("probe-bent-k80-20") and json.loads(path.read_text())["problem"] == "cuda:0 is lost"


def test_each_die_has_a_file_of_its_own(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Bent(), Bent()
    second.name = "cuda:1"
    cards(monkeypatch, first, second)
    assert run(folder, "probe", "--out", "one.json").code == 2
    assert run(folder, "probe").code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert [name.partition("-20")[0] for name in names] == ["probe-bent-k80-cuda-0", "probe-bent-k80-cuda-1"]


def test_without_a_card_it_is_not_checked_and_nothing_is_written(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssmtool.device.libcuda.LIBRARIES", (str(folder / "libcuda.so.1"),))
    monkeypatch.setattr("ssmtool.device.select._has_cuda_python", lambda: False)
    ran = run(folder, "probe", "--require", "sm_37")
    assert (ran.code, list(folder.iterdir())) == (2, [])
    assert "no CUDA driver on this machine" in ran.err
