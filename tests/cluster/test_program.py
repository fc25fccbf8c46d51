"""A program beside the package: run where its files are the same, refused where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.cluster import Cluster, NoWorkerError, Patience
from ssmtool.cluster.program import Program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "tools"
    found.mkdir()
    (found / "addition_of_a_test.py").write_text("def add(a, b):\n    return a + b\n")
    return found


def test_a_function_of_a_file_that_workers_see(cluster: Cluster, folder: Path) -> None:
    program = Program(folder, "addition_of_a_test", "add")
    assert sorted(each.value for each in cluster.sweep(program, [(1, 2), (3, 4)])) == [3, 7]


def test_other_files_and_none_are_refused(cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_patience", Patience(start=0.5, again=1))
    program = Program(folder, "addition_of_a_test", "add")
    (folder / "addition_of_a_test.py").write_text("def add(a, b):\n    return a - b\n")
    with pytest.raises(NoWorkerError, match="holds other files than where the work comes from"):
        list(cluster.sweep(program, [(1, 2)]))
    (folder / "addition_of_a_test.py").unlink()
    folder.rmdir()
    with pytest.raises(NoWorkerError, match="workers need it under this path"):
        list(cluster.sweep(program, [(1, 2)]))
