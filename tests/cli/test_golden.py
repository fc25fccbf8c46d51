"""`ssmtool golden` from the command line."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import pytest

from conftest import ROOT, Run, snapshot


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the vectors of one family."""
    shutil.copytree(ROOT / "golden/sigmoid", tmp_path / "golden/sigmoid")
    (tmp_path / "ssmtool.toml").write_text('[[module]]\nsource = "k.cu"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_make_writes_what_changed(run: Run, folder: Path) -> None:
    (folder / "golden/sigmoid/n1.npz").write_bytes(b"")
    ran = run(folder, "golden", "make", "--only", "sigmoid")
    assert (ran.code, ran.out) == (0, "wrote golden/sigmoid/n1.npz\nok: 9 cases, 0.0 MB, 1 written\n")
    assert snapshot(folder / "golden/sigmoid") == snapshot(ROOT / "golden/sigmoid")
    again = run(folder, "golden", "make", "--only", "sigmoid/n1", "--format", "json").json
    assert (again["verdict"], again["changed"], [each["name"] for each in again["cases"]]) == ("ok", 0, ["sigmoid/n1"])


def test_make_of_nothing_is_an_error(run: Run, folder: Path) -> None:
    ran = run(folder, "golden", "make", "--only", "sigmiod")
    assert ran.code == 2 and "no case is named sigmiod" in ran.err


def test_check_of_a_folder_that_is_whole(run: Run, folder: Path) -> None:
    ran = run(folder, "golden", "check", "--mistakes")
    assert (ran.code, ran.out, ran.err) == (0, "ok: 9 vectors\n", "")


@pytest.mark.parametrize("form", ["console", "json", "sarif", "junit", "markdown", "github"])
def test_a_damaged_vector_is_told_in_every_format(run: Run, folder: Path, form: str) -> None:
    path = folder / "golden/sigmoid/n255.npz"
    path.write_bytes(path.read_bytes()[:700])
    ran = run(folder, "golden", "check", "--format", form)
    assert ran.code == 1
    assert "golden/damaged" in ran.out and "golden/sigmoid/n255.npz" in ran.out
    assert str(folder) not in ran.out


def test_check_by_name_and_by_file(run: Run, folder: Path) -> None:
    assert run(folder, "golden", "check", "sigmoid/n1", "golden/sigmoid/n0.npz").out == "ok: 2 vectors\n"
    missing = run(folder, "golden", "check", "sigmoid/n7")
    assert missing.code == 2 and "no vector is named sigmoid/n7" in missing.err


def test_an_empty_folder_is_not_checked(run: Run, folder: Path) -> None:
    shutil.rmtree(folder / "golden")
    ran = run(folder, "golden", "check")
    assert ran.code == 2 and "holds no golden vectors" in ran.err


def test_check_with_an_oracle(run: Run, folder: Path) -> None:
    ran = run(folder, "golden", "check", "--oracle", "python")
    assert ran.code == 0
    assert "ok: 9 vectors, 9 by other people's code" in ran.out
    said = run(folder, "golden", "check", "--oracle", "python", "--format", "json").json["extra"]["agreements"]
    assert len(said) == 9 and all(each["nmse"] <= 1e-12 for each in said)


def test_an_oracle_that_is_not_installed_says_so(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ssmtool.golden.oracles import load

    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    load.cache_clear()
    ran = run(folder, "golden", "check", "--oracle", "fla")
    load.cache_clear()
    assert ran.code == 2
    assert "torch cannot be imported" in ran.err and "pip install 'ssmtool[oracles]'" in ran.err


def test_show_is_readable(run: Run, folder: Path) -> None:
    shutil.copytree(ROOT / "golden/recurrence", folder / "golden/recurrence")
    out = run(folder, "golden", "show", "recurrence/resume-seq").out
    for words in (
        "speculative decoding", "head_order interleaved", "float32 [h 2, j 16, i 16]", "NMSE <= 1e-11", "each h apart",
        "s=snaps+512", "snaps=null", "must fail: snapshot-before", "2 launches:",
    ):  # fmt: skip
        assert words in out
    data = run(folder, "golden", "show", "recurrence/nan-s8", "--format", "json").json["cases"][0]
    assert data["buffers"]["s"]["nan"] == 16
    assert data["arrays"]["after.s"]["shape"] == [4, 8, 8]
    listed = run(folder, "golden", "show").out
    assert "recurrence/drift-2048" in listed and "sigmoid/n1" in listed


def test_show_mistakes(run: Run, folder: Path) -> None:
    assert "the heads grouped" in run(folder, "golden", "show", "--mistakes").out
    assert (
        run(folder, "golden", "show", "--mistakes", "--format", "json").json["mistakes"][0]["name"] == "grouped-heads"
    )


PTX = """.version 7.4
.target sm_37
.address_size 64
.visible .entry scale(.param .u64 scale_param_0, .param .u64 scale_param_1, .param .f32 scale_param_2,
  .param .u32 scale_param_3)
{
    ret;
}
"""


def test_new_makes_a_script_that_makes_a_whole_vector(run: Run, folder: Path) -> None:
    (folder / "k.ptx").write_text(PTX)
    assert run(folder, "golden", "new", "scale", "--from", "k.ptx").code == 0
    runpy.run_path("make_scale.py", run_name="__main__")
    ran = run(folder, "golden", "check", "scale/small")
    assert ran.code == 0
    assert "skipped: scale/small: no reference is known for scale" in ran.out
    out = run(folder, "golden", "show", "scale/small").out
    assert "scale grid 4x1x1 block 256x1x1 shared 0 (param_0, param_1, param_2=1.0, param_3=1000)" in out
    again = run(folder, "golden", "new", "scale")
    assert again.code == 2 and "is there already" in again.err
    assert run(folder, "golden", "new", "scale", "--force").code == 0
    runpy.run_path("make_scale.py", run_name="__main__")


@pytest.mark.parametrize(
    ("words", "message"),
    [(("../x",), "is no kernel's name"), (("other", "--from", "k.ptx"), "has no kernel other"),
     (("scale", "--from", "none.ptx"), "no such file")],
)  # fmt: skip
def test_new_refuses(run: Run, folder: Path, words: tuple[str, ...], message: str) -> None:
    (folder / "k.ptx").write_text(PTX)
    ran = run(folder, "golden", "new", *words)
    assert ran.code == 2 and message in ran.err
    assert not list(folder.glob("make_*.py"))
