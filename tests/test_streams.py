"""The program's ends: full disks, closed streams, readers that leave, and Ctrl-C; in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT

CHECK = [sys.executable, "-m", "ssmtool", "-C", str(ROOT), "build", "--check"]


def edit(product: Path) -> None:
    source = product / "kernels/ssm_gated_delta.cu"
    source.write_bytes(source.read_bytes() + b"// edited\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here, so a full disk was not checked")
@pytest.mark.parametrize("arguments", [CHECK, [*CHECK[:3], "--help"]], ids=["check", "help"])
def test_a_full_disk_is_one_line_and_never_a_pass(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (
        2,
        "error: the report could not be written: No space left on device\n",
    )


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_closed_streams_change_nothing(closed: tuple[int, ...]) -> None:
    redirections = " ".join(f"{descriptor}>&-" for descriptor in closed)
    ran = subprocess.run(["sh", "-c", f'exec "$@" {redirections}', "sh", *CHECK], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_reader_that_leaves_changes_nothing(product: Path) -> None:
    edit(product)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ssmtool", "-C", str(product), "build", "--check", "--format", "json"]
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_an_encoding_without_the_characters_of_tables_is_no_error() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ssmtool", "-C", str(ROOT), "registry"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("module", ["ssmtool.cli", "ssmtool.cli.build", "ssmtool.registry.project"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str) -> None:
    # The signal comes the moment that module is looked for.
    code = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["ssmtool", "-C", {str(ROOT)!r}, "build", "--check"]
from ssmtool.__main__ import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 130
    assert ran.stdout == ""
    # click closes the terminal's echo of ^C with a line end first.
    assert ran.stderr.lstrip("\n") in ("interrupted\n", "interrupted; no file was left half-written\n")


def test_an_interrupt_of_a_running_build_is_130(product: Path) -> None:
    edit(product)
    command = [sys.executable, "-m", "ssmtool", "-C", str(product), "build"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()  # "compiling ..."
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert rest.splitlines()[-1].startswith("interrupted")
