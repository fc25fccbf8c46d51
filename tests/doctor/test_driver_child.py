"""The child process that starts the driver, on a libcuda that is real but for its cards."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from ssmtool.doctor.facts import Driver, Facts
from ssmtool.doctor.model import Verdict
from ssmtool.doctor.run import examine
from ssmtool.doctor.system import ThisMachine

SOURCE = ROOT / "tests" / "device" / "fake_driver.c"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose libcuda.so.1 is the fake driver."""
    compiler = next((each for each in ("gcc", "clang", "cc") if shutil.which(each)), None)
    if compiler is None:
        pytest.skip("no C compiler: the child process was not run against a driver library")
    folder = tmp_path_factory.mktemp("libcuda")
    command = [compiler, "-shared", "-fPIC", str(SOURCE), "-o", str(folder / "libcuda.so.1"), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def system(folder: Path) -> ThisMachine:
    machine = ThisMachine()
    machine.environ = {**machine.environ, "LD_LIBRARY_PATH": str(folder)}
    return machine


def _driver(system: ThisMachine, **told: str) -> Driver:
    system.environ = {**system.environ, **{f"FAKE_CUDA_{name}": value for name, value in told.items()}}
    return Facts(system, ROOT).driver


def test_two_dies_are_seen_with_what_the_driver_tells(system: ThisMachine, folder: Path) -> None:
    driver = _driver(system)
    assert driver.failure is None
    assert driver.files == (str(folder / "libcuda.so.1"),)
    assert driver.version == 11040
    assert [(gpu.target, gpu.memory) for gpu in driver.gpus] == [("sm_37", 11996954624)] * 2
    assert driver.gpus[0].ecc is None


def test_a_driver_that_does_not_start_gives_call_and_code(system: ThisMachine) -> None:
    driver = _driver(system, FAIL="cuInit=804")
    assert (driver.call, driver.code, driver.starts) == ("cuInit", 804, False)
    assert driver.version == 11040


def test_a_driver_that_dies_takes_only_the_child(system: ThisMachine, tmp_path: Path) -> None:
    source = tmp_path / "dies.c"
    source.write_text("#include <stdlib.h>\nint cuDriverGetVersion(int *v) { abort(); return *v; }\n")
    library = tmp_path / "libcuda.so.1"
    compiler = next(each for each in ("gcc", "clang", "cc") if shutil.which(each))
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True, capture_output=True)
    system.environ = {**system.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    assert "was killed by signal 6" in str(Facts(system, ROOT).driver.failure)


def test_a_library_that_is_no_driver_is_told_and_not_a_crash(system: ThisMachine, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"not a library")
    system.environ = {**system.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    driver = Facts(system, ROOT).driver
    assert driver.opened is None
    assert any("libcuda.so.1" in error for error in driver.errors)


def test_the_whole_examination_on_a_driver_without_a_kernel_module(system: ThisMachine) -> None:
    system.environ = {**system.environ, "FAKE_CUDA_DEVICES": "2"}
    report = examine(ROOT, ("gpu", "sm_37:2"), system)
    verdicts = {check.id: check.verdict for check in report.checks}
    assert verdicts["driver/starts"] is Verdict.OK
    assert verdicts["gpu/target"] is Verdict.OK
    assert verdicts["require/sm_37:2"] is Verdict.OK
    assert report.machine["target_cards"] == 2
