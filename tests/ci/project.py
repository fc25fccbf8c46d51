"""A small project of one kernel, with vectors, in a git repository; and how tests change it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from conftest import ROOT

SOURCE = """extern "C" __global__ void fc_sigmoid(float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = 1.0f / (1.0f + expf(-x[i]));
}
"""
LOADER = """static const char *const names[] = {
    "fc_sigmoid",
};
int load(const char *ptx)
{
    return cu_load(ptx, names, 1);
}
"""
SETTINGS = """header = "ptx.h"
golden = "golden"
baseline = "baseline.json"

[[module]]
source = "k.cu"
constant = "PTX"

[module.loader]
path = "loader.c"
array = "names"
function = "cu_load"

[[budget]]
kernel = "*"
local_bytes = 0
"""
VECTORS = ("n1", "n257")


def write(folder: Path) -> Path:
    """The project without its header."""
    folder.mkdir()
    (folder / "k.cu").write_text(SOURCE)
    (folder / "loader.c").write_text(LOADER)
    (folder / "ssmtool.toml").write_text(SETTINGS)
    (folder / "golden").mkdir()
    for name in VECTORS:
        shutil.copy(ROOT / "golden" / "sigmoid" / f"{name}.npz", folder / "golden")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path) -> str:
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD")
