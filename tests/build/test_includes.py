"""The files a source depends on, found without a compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.build.includes import hash_includes, hash_source
from ssmtool.project import Project, Settings


def project(folder: Path, *include_dirs: str) -> Project:
    return Project(root=folder, settings=Settings(include_dirs=include_dirs))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_includes_are_followed_through_headers_and_folders(tmp_path: Path) -> None:
    source = write(tmp_path / "kernels/k.cu", '#include "gdn/tree.cuh"\n#  include <common.h>\n#include <stdint.h>\n')
    write(tmp_path / "kernels/gdn/tree.cuh", '#include "lane.cuh"\n')
    write(tmp_path / "kernels/gdn/lane.cuh", "")
    write(tmp_path / "include/common.h", "")
    found = hash_includes(project(tmp_path, "include"), source)
    assert list(found) == ["include/common.h", "kernels/gdn/lane.cuh", "kernels/gdn/tree.cuh"]


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    source = write(tmp_path / "k.cu", '#include "a.h"\n')
    write(tmp_path / "a.h", '#include "b.h"\n')
    write(tmp_path / "b.h", '#include "a.h"\n#include "k.cu"\n')
    assert list(hash_includes(project(tmp_path), source)) == ["a.h", "b.h"]


def test_an_include_under_a_condition_counts(tmp_path: Path) -> None:
    source = write(tmp_path / "k.cu", '#if 0\n#include "a.h"\n#endif\n')
    write(tmp_path / "a.h", "")
    assert list(hash_includes(project(tmp_path), source)) == ["a.h"]


@pytest.mark.parametrize(
    "line",
    [
        '#define HEADER "a.h"\n#include HEADER\n',
        '/* x */ #include "a.h"\n',
        '#include /* x */ "a.h"\n',
        '#include \\\n"a.h"\n',
        '%: include "a.h"\n',
    ],
)
def test_an_include_in_any_dress_is_found(tmp_path: Path, line: str) -> None:
    source = write(tmp_path / "k.cu", line)
    write(tmp_path / "a.h", "")
    assert list(hash_includes(project(tmp_path), source)) == ["a.h"]


@pytest.mark.parametrize("flags", [("-Iinc",), ("-I", "inc"), ("--include-path=inc",), ("-include", "inc/a.h")])
def test_includes_by_flags_count(tmp_path: Path, flags: tuple[str, ...]) -> None:
    source = write(tmp_path / "k.cu", "" if flags[0] == "-include" else '#include "a.h"\n')
    write(tmp_path / "inc/a.h", "")
    with_flags = Project(root=tmp_path, settings=Settings(flags=flags))
    assert list(hash_includes(with_flags, source)) == ["inc/a.h"]


def test_crlf_is_the_same_source_and_the_same_include(tmp_path: Path) -> None:
    assert hash_source(b"a\r\nb\r\n") == hash_source(b"a\nb\n")
    source = write(tmp_path / "k.cu", '#include "a.h"\n')
    write(tmp_path / "a.h", "x\ny\n")
    before = hash_includes(project(tmp_path), source)
    (tmp_path / "a.h").write_bytes(b"x\r\ny\r\n")
    assert hash_includes(project(tmp_path), source) == before


def test_a_file_beside_the_project_has_no_absolute_name(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "beside.h").write_text("x\n")
    (root / "k.cu").write_text('#include "../beside.h"\n')
    assert list(hash_includes(Project(root=root, settings=Settings()), root / "k.cu")) == ["../beside.h"]


def test_a_header_of_a_toolkit_is_named_as_the_include_names_it_wherever_project_and_toolkit_lie(
    tmp_path: Path,
) -> None:
    found = []
    for root, toolkit in ((tmp_path / "a/project", tmp_path / "cuda"), (tmp_path / "project", tmp_path / "opt/x/cuda")):
        source = write(root / "k.cu", "#include <cuda_fp16.h>\n")
        write(toolkit / "include/cuda_fp16.h", '#include "crt/fp16.hpp"\n')
        write(toolkit / "include/crt/fp16.hpp", "")
        found.append(list(hash_includes(project(root, str(toolkit / "include")), source)))
    assert found == [["<crt/fp16.hpp>", "<cuda_fp16.h>"]] * 2


def test_an_absolute_path_into_the_project_is_the_projects_own(tmp_path: Path) -> None:
    source = write(tmp_path / "k.cu", "#include <a.h>\n")
    write(tmp_path / "inc/a.h", "")
    assert list(hash_includes(project(tmp_path, str(tmp_path / "inc")), source)) == ["inc/a.h"]


def test_an_include_with_letters_beyond_ascii_is_found(tmp_path: Path) -> None:
    (tmp_path / "größe.h").write_text("x\n")
    (tmp_path / "k.cu").write_text('#include "größe.h"\n')
    assert list(hash_includes(Project(root=tmp_path, settings=Settings()), tmp_path / "k.cu")) == ["größe.h"]
