"""Settings: found from any folder below, wrong ones named with their line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT
from ssmtool.errors import SsmtoolError
from ssmtool.project import ModuleSettings, find_project, read_project
from ssmtool.settings_form import table

MODULE = '[[tool.ssmtool.module]]\nsource = "kernels/k.cu"\n'


def write(folder: Path, text: str, name: str = "pyproject.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_settings_are_found_from_a_folder_below(tmp_path: Path) -> None:
    write(tmp_path, MODULE)
    below = tmp_path / "a" / "b"
    write(below, "[tool.other]\n")
    project = find_project(below)
    assert project.root == tmp_path
    assert project.settings.module[0].source == "kernels/k.cu"


def test_ssmtool_toml_holds_the_same_table_without_its_prefix(tmp_path: Path) -> None:
    write(tmp_path, 'header = "x.h"\n[[module]]\nsource = "k.cu"\n', "ssmtool.toml")
    project = find_project(tmp_path)
    assert project.header_path == tmp_path / "x.h"
    assert project.settings.module == (ModuleSettings(source="k.cu"),)


def test_no_settings_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(SsmtoolError) as caught:
        find_project(tmp_path)
    assert caught.value.hint == "ssmtool init"


def test_a_pyproject_without_the_table_is_not_ours(tmp_path: Path) -> None:
    assert read_project(write(tmp_path, "[tool.black]\nline-length = 3\n")) is None
    assert read_project(write(tmp_path, "tool = 3\n")) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[tool.ssmtool]\nheder = "x"\n', 2, "heder"),
        ("[tool.ssmtool]\n\nheader = 3\n", 3, r"Expected `str`, got `int`"),
        (MODULE + 'const = "X"\n', 3, "const"),
        ('[tool.ssmtool]\ncompiler = "gcc"\n', 2, '"gcc" is not one of'),
        ('[tool.ssmtool]\ntarget = "kepler"\n', 2, "not an architecture"),
        ('[tool.ssmtool]\ncuda_release = "11.4.152"\n', 2, "not of the form"),
        ("[tool.ssmtool]\ncompile_timeout = 0\n", 2, "positive"),
        (MODULE + 'constant = "9 lives"\n', 3, "not a C identifier"),
        (MODULE + 'constant = "X"\n' + MODULE + 'constant = "X"\n', 3, "would hold both"),
        ("[tool.ssmtool]\nheader = \n", 2, "not valid TOML"),
        ('[tool.ssmtool]\nheader = ""\n', 2, "is empty"),
        ('[tool.ssmtool]\nheader = "."\n', 2, "is a folder"),
        ('[tool.ssmtool]\nheader = "out/"\n', 2, "is a folder"),
        ('[tool.ssmtool]\nheader = "a\\nb.h"\n', 2, "control character"),
        ('[[tool.ssmtool.module]]\nsource = ""\n', 2, "is empty"),
        ('[tool.ssmtool]\ninclude_dirs = [""]\n', 2, "is the project's folder"),
        ('[tool.ssmtool]\nflags = ["-DX=a\\u0000"]\n', 2, "NUL"),
        ('[tool.ssmtool]\nflags = ["-G", ""]\n', 2, "a flag is empty"),
        (f'[tool.ssmtool]\ntarget = "sm_{"7" * 5000}"\n', 2, "not an architecture"),
        (f'[tool.ssmtool]\nmax_ptx_isa = "{"7" * 5000}.1"\n', 2, "not of the form"),
        ('[tool.ssmtool]\nbaseline = "generated/fc_cuda_ptx.h"\n', 2, "is the setting `header` too"),
        ('[tool.ssmtool]\nheader = "kernels/../kernels/k.cu"\n' + MODULE, 4, "is the setting `header` too"),
        (MODULE + '[tool.ssmtool.module.loader]\npath = "l.c"\narray = ""\n', 5, "names nothing"),
        ('[tool.other]\nsource = "x"\nheader = ""\n[tool.ssmtool]\nheader = ""\n', 5, "is empty"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(SsmtoolError, match=words) as caught:
        read_project(write(tmp_path, text))
    assert caught.value.line == line
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["x = " + "[" * 3000 + "]" * 3000, "compile_timeout = " + "9" * 6000])
def test_toml_that_python_cannot_read_is_named_with_its_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(SsmtoolError, match="beyond all measure") as caught:
        read_project(write(tmp_path, text, "ssmtool.toml"))
    assert caught.value.path == str(tmp_path / "ssmtool.toml")
    assert caught.value.exit_code == 2


def test_settings_that_are_utf16_are_not_called_source(tmp_path: Path) -> None:
    (tmp_path / "ssmtool.toml").write_bytes(MODULE.encode("utf-16"))
    with pytest.raises(SsmtoolError, match="has to be UTF-8") as caught:
        find_project(tmp_path)
    assert "compiler" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_the_default_constant_is_a_c_identifier_of_the_stem() -> None:
    assert ModuleSettings(source="kernels/gdn-block.v2.cu").constant_name == "FC_PTX_GDN_BLOCK_V2"


def test_paths_are_shown_relative_to_the_project(tmp_path: Path) -> None:
    write(tmp_path, MODULE)
    project = find_project(tmp_path)
    assert project.show(tmp_path / "kernels" / "k.cu") == "kernels/k.cu"
    assert project.show(Path("/elsewhere/x.cu")) == "/elsewhere/x.cu"


@pytest.mark.parametrize(
    "text", ["[[tool.ssmtool.launch]]\nkernel = 'k'\n", "tool.ssmtool.header = 'x.h'\n", "[tool]\n"]
)
def test_the_form_of_the_other_file_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "header = 'tool.h'\n" + text, "ssmtool.toml")
    with pytest.raises(SsmtoolError) as caught:
        read_project(path)
    assert (caught.value.line, caught.value.message) == (2, "unknown setting `tool`")
    assert caught.value.hint == "in ssmtool.toml leave out `tool.ssmtool.`: that form is pyproject.toml's"


@pytest.mark.parametrize(
    ("name", "text", "one", "whole"),
    [
        ("ssmtool.toml", "", "[[launch]]", "ssmtool.toml"),
        ("pyproject.toml", "[tool.ssmtool]\n", "[[tool.ssmtool.launch]]", "[tool.ssmtool]"),
    ],
)
def test_messages_speak_in_the_form_of_the_file_that_was_read(
    tmp_path: Path, name: str, text: str, one: str, whole: str
) -> None:
    assert read_project(write(tmp_path, text, name)) is not None
    assert (table("launch"), table()) == (one, whole)


def test_no_message_is_written_in_one_form_alone() -> None:
    texts = {path: path.read_text() for path in (ROOT / "ssmtool").rglob("*.py")}
    words = re.compile(r"(?:in|of|no|or) \[+tool\.ssmtool")
    found = {path.relative_to(ROOT).as_posix() for path, text in texts.items() if words.search(text)}
    assert found <= {"ssmtool/project.py"}, "ssmtool.settings_form.table names it as the file in use does"
