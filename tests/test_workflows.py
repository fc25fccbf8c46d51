"""The workflows of GitHub: linted, pinned, careful with the card's host, and every command in them run here.

What needs a card or CUDA's nvcc is pointed at the CPU executor and the embedded compiler by `SUBSTITUTES`, the only
place where a command differs from what a runner executes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
BIN = Path(sys.executable).parent

# text in a command -> what stands there in this test
SUBSTITUTES = {
    # The environment that runs the tests is the one that `make` would set up. Its `verify` is quick here, as that of
    # `ssmtool ci` below: all vectors and relations take a minute, and the tests of verify run them.
    r"^make\b": "make --old-file=.venv/installed BIN=quick",
    r"gpu,sm_37:2,driver-470,nvcc-11\.4,nvrtc-11\.4,ptxas,executor,cuda-bindings": "nvrtc-11.4,ptxas,executor",
    r"--compiler nvcc-11\.4": "--compiler nvrtc-11.4",
    r"--device (?:all|cuda) --require sm_37": "--device cpu --quick --only fc_ssm_gated_norm",
    r"\bssmtool ci\b": "ssmtool ci --quick",
    # The checkout of this test has one commit.
    r"--base HEAD\^1": "--base HEAD",
}
# commands that are not run here, and why
SKIPS = {
    ".ci/run": "it runs the lint and this test suite itself",
    ".venv/bin/python -m pip install --quiet --disable-pip-version-check 'cuda-bindings==11.8.*'": (
        "it would change the environment that the tests run in; the package is for a card"
    ),
}


@dataclass(frozen=True)
class Step:
    """A step with a command. `environ` is that of the workflow."""

    workflow: str
    name: str
    script: str
    environ: dict[str, str]


def _document(path: Path) -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load(path.read_text())
    return document


def _steps(path: Path) -> list[Step]:
    document = _document(path)
    return [
        Step(path.stem, step.get("name", step["run"]), step["run"], document.get("env", {}))
        for job in document["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]


def _here(line: str) -> str:
    """The line as it runs in this test."""
    for pattern, instead in SUBSTITUTES.items():
        line = re.sub(pattern, instead, line)
    return line


def _tool(name: str) -> str:
    path = BIN / name
    if not path.exists():
        pytest.skip(f"{name} is not installed for this platform: the workflows were not checked by it")
    return str(path)


def test_actionlint_finds_nothing() -> None:
    ran = subprocess.run([_tool("actionlint")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


def test_zizmor_finds_no_hole() -> None:
    words = [_tool("zizmor"), "--offline", "--quiet", "--persona", "pedantic", str(FOLDER)]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_name_their_release(path: Path) -> None:
    uses = re.findall(r"uses: *(.*)", path.read_text())
    assert uses
    for text in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", text), text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_knows_no_secret(path: Path) -> None:
    document = _document(path)
    assert document["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in document["jobs"].values())
    assert "secrets" not in path.read_text()
    assert "concurrency" in document
    assert all("timeout-minutes" in job for job in document["jobs"].values())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_pull_request_reaches_a_self_hosted_runner_by_itself(path: Path) -> None:
    document = _document(path)
    own = [job for job in document["jobs"].values() if "self-hosted" in job["runs-on"]]
    if own:
        # YAML 1.1 reads the key `on` as true.
        assert not {"pull_request", "pull_request_target", "issue_comment", "workflow_run"} & set(document[True])
        assert all(job.get("environment") for job in own)


def test_the_card_is_asked_for_by_the_labels_that_the_page_registers() -> None:
    labels = _document(FOLDER / "k80.yml")["jobs"]["k80"]["runs-on"]
    page = (ROOT / "docs" / "k80-runner.md").read_text()
    assert labels == ["self-hosted", "linux", "x64", "k80"]
    assert "--labels k80" in page
    require = re.search(r"--require (\S+)", (FOLDER / "k80.yml").read_text())
    assert require is not None
    assert require[1] in page


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The product as a runner checks it out, under git, with the environment of this test as its .venv."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("kernels", "generated", "golden"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "Makefile", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "quick").mkdir()
    quick = folder / "quick" / "ssmtool"
    quick.write_text('#!/bin/sh\n[ "$1" = verify ] && set -- "$@" --quick\nexec .venv/bin/ssmtool "$@"\n')
    quick.chmod(0o755)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    for words in (["init", "--quiet"], ["add", "kernels", "generated"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.skipif(shutil.which("make") is None, reason="no make: the workflows' commands were not run")
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_runs(path: Path, checkout: Path, tmp_path: Path) -> None:
    added = tmp_path / "path"
    added.touch()
    summary = tmp_path / "summary"
    for step in _steps(path):
        lines = [line for line in step.script.splitlines() if line.strip() not in SKIPS]
        environ = {**os.environ, **step.environ, "GITHUB_PATH": str(added), "GITHUB_STEP_SUMMARY": str(summary)}
        environ["PATH"] = os.pathsep.join([*added.read_text().split(), environ["PATH"]])
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", "\n".join(map(_here, lines))],
            cwd=checkout,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, f"{step.name}\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("pattern", SUBSTITUTES)
def test_every_substitute_is_needed(pattern: str) -> None:
    assert any(
        re.search(pattern, line) for path in WORKFLOWS for step in _steps(path) for line in step.script.splitlines()
    )


@pytest.mark.parametrize(("command", "reason"), SKIPS.items(), ids=["ci", "pip"])
def test_commands_that_are_not_run_here(command: str, reason: str) -> None:
    everything = "\n".join(step.script for path in WORKFLOWS for step in _steps(path))
    assert command in everything
    pytest.skip(f"not run: {command.split()[0]}: {reason}")
