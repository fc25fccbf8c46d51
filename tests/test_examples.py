"""The example project goes through every command as its page says, in a copy, and a mistake in it is caught."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, snapshot

EXAMPLE = ROOT / "examples" / "vector_kernels"
PAGE = (EXAMPLE / "README.md").read_text("utf-8")
BARRIER = "            sums[thread] = __fadd_rn(sums[thread], sums[thread + stride]);\n        __syncthreads();\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "vector_kernels"
    shutil.copytree(EXAMPLE, folder)
    return folder


def call(project: Path, command: str) -> subprocess.CompletedProcess[str]:
    """The command of the page; `ssmtool` and `python` are this Python's."""
    program, *arguments = command.split()
    prefix = [sys.executable, "-m", "ssmtool"] if program == "ssmtool" else [sys.executable]
    cache = str(project.parent / "cache")
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "SSMTOOL_CACHE_DIR": cache}
    return subprocess.run(
        [*prefix, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=240
    )


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines that it prints there."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def lasting(line: str) -> str:
    """A line without what differs between machines: times, and the processor's name."""
    return re.sub(r"\d+\.\d+ s\b", "T s", re.sub(r"\(CPU executor on .*?\);", "(CPU);", line)).strip()


def test_the_page_names_every_link_of_the_chain() -> None:
    said = [command for command, _ in steps()]
    for word in ("build", "registry", "audit-ptx", "golden", "verify"):
        assert any(command.startswith(f"ssmtool {word}") for command in said)
    assert sum(command.startswith("python ") for command in said) == 3


def test_the_project_goes_through_every_command_as_its_page_says_and_nothing_checked_in_changes(project: Path) -> None:
    before = snapshot(project)
    for command, lines in steps():
        ran = call(project, command)
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        printed = {lasting(line) for line in (ran.stdout + ran.stderr).splitlines()}
        for line in lines:
            assert lasting(line) in printed, f"{command} does not print: {line}"
    after = snapshot(project)
    changed = [name for name in after if after[name] != before.get(name) and not name.endswith(".npz")]
    assert not changed, "the header, the baseline and the loader are what the commands make"
    assert set(after) == set(before)


def test_a_dropped_barrier_in_the_example_is_caught(project: Path) -> None:
    source = project / "kernels" / "vector.cu"
    text = source.read_text()
    assert BARRIER in text
    source.write_text(text.replace(BARRIER, BARRIER.replace("        __syncthreads();\n", "")))
    assert call(project, "ssmtool build").returncode == 0
    ran = call(project, "ssmtool verify --device cpu")
    assert ran.returncode == 1
    assert "vec_rms_norm" in ran.stderr
    assert "with no barrier between" in ran.stderr + ran.stdout
