"""Ctrl-C and SIGTERM while compiling and while writing: the old files stay, and nothing runs or lies about after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Run, snapshot
from ssmtool.build import rebuild
from ssmtool.files import write_atomic
from ssmtool.project import find_project

KERNELS = 'extern "C" __global__ void one(float *x) { x[0] = 1; }\n'
SETTINGS = '[[module]]\nsource = "k.cu"\nconstant = "K"\n'
LOADER = """\
static const char *const names[] = { "one" };
void start(void) { load(names, 1); }
"""
# An nvcc that starts a process of its own, as the real one does, and waits for it.
SLOW_NVCC = """\
#!/bin/sh
case "$*" in *--version*) echo "Cuda compilation tools, release 11.4, V11.4.152"; exit 0;; esac
sleep 300 & echo $! > child.pid.new && mv child.pid.new child.pid; wait
"""


def is_running(pid: int) -> bool:
    """Whether the process runs; one that ended and was not waited for by init yet does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def wait_for(what: object) -> None:
    """Until `what()` is true, 20 s at most."""
    assert callable(what)
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc: children of a stopped build not looked for")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopped_build_takes_its_compiler_along(tmp_path: Path, number: signal.Signals, code: int) -> None:
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(SLOW_NVCC)
    nvcc.chmod(0o755)
    (tmp_path / "k.cu").write_text(KERNELS)
    (tmp_path / "ssmtool.toml").write_text('nvcc = "./nvcc"\nheader = "g.h"\n' + SETTINGS)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = snapshot(tmp_path)
    build = subprocess.Popen(
        [sys.executable, "-m", "ssmtool", "-C", str(tmp_path), "build"],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid_file = tmp_path / "child.pid"
    try:
        wait_for(pid_file.exists)
        build.send_signal(number)
        assert build.wait(timeout=20) == code
    finally:
        build.kill()
        build.wait()
    pid = int(pid_file.read_text())
    pid_file.unlink()
    wait_for(lambda: not is_running(pid))
    assert snapshot(tmp_path) == before
    assert list(temporary.iterdir()) == []


def test_an_interrupt_between_header_and_loader_puts_the_header_back(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.cu").write_text(KERNELS)
    (tmp_path / "loader.c").write_text(LOADER)
    loader = '[module.loader]\npath = "loader.c"\narray = "names"\nfunction = "load"\n'
    (tmp_path / "ssmtool.toml").write_text('header = "g.h"\n' + SETTINGS + loader)
    assert run(tmp_path, "build").code == 0
    (tmp_path / "k.cu").write_text(KERNELS + KERNELS.replace("one", "two"))
    before = snapshot(tmp_path)

    def interrupted(path: Path, data: bytes) -> bool:
        if path.name == "loader.c" and data != before["loader.c"]:
            raise KeyboardInterrupt
        return write_atomic(path, data)

    monkeypatch.setattr(rebuild, "write_atomic", interrupted)
    assert run(tmp_path, "build").code == 130
    assert snapshot(tmp_path) == before
    monkeypatch.undo()
    assert run(tmp_path, "build").code == 0
    assert b'"one", "two"' in (tmp_path / "loader.c").read_bytes()
    assert find_project(tmp_path).header_path.read_bytes() != before["g.h"]


@pytest.mark.parametrize("place", ["loop", "below-a-file", "new", "linked"])
def test_a_header_behind_links(tmp_path: Path, run: Run, place: str) -> None:
    (tmp_path / "k.cu").write_text(KERNELS)
    (tmp_path / "ssmtool.toml").write_text('header = "g/k.h"\n' + SETTINGS)
    real = tmp_path / "real.h"
    if place == "below-a-file":
        (tmp_path / "g").write_text("mine\n")
    else:
        (tmp_path / "g").mkdir()
        (tmp_path / "g/k.h").symlink_to("k.h" if place == "loop" else "../real.h")
    if place == "linked":
        real.touch()
    ran = run(tmp_path, "build")
    if place in ("loop", "below-a-file"):
        assert ran.code == 2
        assert "g/k.h: the header cannot be written there" in ran.err
        assert ran.err.count("error:") == 1
        assert (tmp_path / "g/k.h").is_symlink() or (tmp_path / "g").read_text() == "mine\n"
    else:
        assert ran.code == 0
        assert (tmp_path / "g/k.h").is_symlink()
        assert b"one" in real.read_bytes()
        assert run(tmp_path, "build", "--check").code == 0
