"""`ssmtool init`: settings for a tree that has none, good enough to build with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import ROOT, Run, snapshot
from ssmtool.project import find_project


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The product's source, loader and header, without settings."""
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("kernels", "generated"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def test_the_products_own_settings_are_found_again(tree: Path, run: Run) -> None:
    assert run(tree, "init").code == 0
    written, ours = find_project(tree).settings, find_project(ROOT).settings
    assert (written.module, written.header, written.target) == (ours.module, ours.header, ours.target)
    assert run(tree, "build", "--check").code == 0


def test_a_pyproject_keeps_what_it_held(tree: Path, run: Run) -> None:
    (tree / "pyproject.toml").write_text('[project]\nname = "host"')
    assert run(tree, "init").code == 0
    text = (tree / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "host"\n\n# Settings of ssmtool.')
    assert "[[tool.ssmtool.module]]" in text
    assert not (tree / "ssmtool.toml").exists()


def test_settings_that_are_there_are_not_touched(tree: Path, run: Run) -> None:
    run(tree, "init")
    before = snapshot(tree)
    ran = run(tree, "init")
    assert ran.code == 2
    assert "has settings already" in ran.err
    assert snapshot(tree) == before


def test_print_writes_nothing(tree: Path, run: Run) -> None:
    before = snapshot(tree)
    ran = run(tree, "init", "--print")
    assert ran.code == 0
    assert 'source = "kernels/ssm_gated_delta.cu"' in ran.out
    assert snapshot(tree) == before


def test_a_tree_without_kernels_says_so(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.cu").write_text("int not_a_kernel;\n")
    ran = run(tmp_path, "init")
    assert ran.code == 2
    assert "no .cu file with a __global__ function" in ran.err


def test_a_kernel_without_a_loader_gets_a_commented_table(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.cu").write_text('extern "C" __global__ void scale(float *x) { x[0] = 1; }\n')
    assert run(tmp_path, "init").code == 0
    assert "# [module.loader]" in (tmp_path / "ssmtool.toml").read_text()
    assert find_project(tmp_path).settings.module[0].loader is None


def test_a_source_that_cannot_be_read_is_passed_over_and_named(tree: Path, run: Run) -> None:
    (tree / "kernels/bad.cu").write_text("__global__", encoding="utf-16")
    ran = run(tree, "init")
    assert ran.code == 0
    assert "kernels/bad.cu was left out" in ran.err


@pytest.mark.parametrize("text", ["tool = 3\n", "tool = {x = 1}\n"])
def test_a_pyproject_that_takes_no_table_is_left_as_it_is(tree: Path, run: Run, text: str) -> None:
    (tree / "pyproject.toml").write_text(text)
    before = snapshot(tree)
    ran = run(tree, "init")
    assert ran.code == 2
    assert "left as it is" in ran.err
    assert snapshot(tree) == before
