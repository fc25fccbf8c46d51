"""The fake driver, compiled once, and devices on it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from device.fake import FakeDriver

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`libcuda.so.1` in a folder of its own."""
    compiler = next((each for each in ("gcc", "clang", "cc") if shutil.which(each)), None)
    if compiler is None:
        pytest.skip("no C compiler: no path of a card was checked, neither success nor any failure")
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    command = [compiler, "-shared", "-fPIC", "-Wall", str(HERE / "fake_driver.c"), "-o", str(library), "-ldl"]
    done = subprocess.run([*command, "-lpthread"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


@pytest.fixture
def fake(fake_library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The fake as this process's driver, for `ctypes` and for `cuda`."""
    for name in ("DEVICES", "VERSION", "CAPABILITY", "FAIL", "LOG", "HANG", "SHARED"):
        monkeypatch.delenv(f"FAKE_CUDA_{name}", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("FAKE_CUDA_SELF", str(fake_library))
    monkeypatch.setattr("ssmtool.device.libcuda.LIBRARIES", (str(fake_library),))
    monkeypatch.setattr("ssmtool.device.select._has_cuda_python", lambda: False)
    yield FakeDriver(fake_library)
