"""`ssmtool run --device`: one card, several devices, a bit off, a card that fails."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from device.conftest import fake, fake_library
from device.fake import SCALE, FakeDriver

from conftest import Run

__all__ = ["fake", "fake_library"]

ARGS = ("--grid", "4", "--block", "32", "--arg", "zeros:100", "--arg", "arange:100", "--arg", "2.5", "--arg", "100")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> Path:
    assert fake.path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(SCALE)
    return tmp_path


def test_a_card_alone_shows_and_saves(run: Run, folder: Path) -> None:
    ran = run(folder, "run", "k.ptx", "scale", *ARGS, "--device", "cuda:1", "--show", "param_0:3", "--save", "o.npz")
    assert (ran.code, ran.err) == (0, "wrote o.npz\n")
    assert "cuda:1 (Fake K80, sm_37, driver of CUDA 11.4, by ctypes): 0.500 ms" in ran.out
    assert "param_0[:3] = 0.0 2.5 5.0" in ran.out
    with np.load(folder / "o.npz") as saved:
        assert saved["param_0"][99] == 247.5


def test_all_devices_are_compared(run: Run, folder: Path) -> None:
    ran = run(folder, "run", "k.ptx", "scale", *ARGS, "--device", "all", "--repeat", "2")
    assert ran.code == 0
    assert "ok: scale on cpu, cuda:0, cuda:1: 2 buffers, the same bits on 3 of 3 devices" in ran.out


def test_a_bit_that_differs_is_a_finding(run: Run, folder: Path, fake: FakeDriver) -> None:
    fake.flips = [(0, 4 * 17)]
    ran = run(folder, "run", "k.ptx", "scale", *ARGS, "--device", "cpu,cuda:0", "--format", "json")
    assert ran.code == 1
    (finding,) = json.loads(ran.out)["findings"]
    assert finding["rule"] == "run/devices-differ"
    assert "cuda:0 and cpu differ in 1 element of param_0 (1 x 1 ulp); first: param_0[17]" in finding["message"]


# 999 may be anybody's fault; 700 is the kernel's, which took an address outside all memory.
@pytest.mark.parametrize(("error", "code", "words"), [(999, 2, "not checked: scale on cuda:1"), (700, 1, "cuda:1: ")])
def test_a_card_that_fails_is_not_a_pass(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, error: int, code: int, words: str
) -> None:
    monkeypatch.setenv("FAKE_CUDA_FAIL", f"cuCtxSynchronize={error}@1")
    ran = run(folder, "run", "k.ptx", "scale", *ARGS, "--device", "all")
    assert ran.code == code
    assert words in ran.out
    assert "the same bits on 2 of 3 devices" in ran.out
    assert run(folder, "run", "k.ptx", "scale", *ARGS, "--device", "cuda:1").code == code


def test_what_only_the_executor_can_is_refused(run: Run, folder: Path) -> None:
    ran = run(folder, "run", "k.ptx", "scale", *ARGS, "--device", "cuda:0", "--check", "all")
    assert ran.code == 2 and "--check all and --counters are the executor's" in ran.err
