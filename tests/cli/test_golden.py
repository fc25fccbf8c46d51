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
    .reg .b64 %rd<3>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [scale_param_0];
    ld.param.u64 %rd2, [scale_param_1];
    ld.global.f32 %f1, [%rd2];
    st.global.f32 [%rd1], %f1;
    ret;
}
"""


def edit_title(script: Path) -> None:
    """The least that makes it write."""
    text = script.read_text()
    assert text.count('"EDIT: what this case is there for"') == 1
    script.write_text(text.replace('"EDIT: what this case is there for"', '"zeros"'))


def foreign(folder: Path, ptx: str = PTX) -> None:
    """Another's project: its header has none of the product's kernels."""
    shutil.rmtree(folder / "golden")
    (folder / "ssmtool.toml").write_text('header = "k.ptx"\n[[module]]\nsource = "k.cu"\n')
    (folder / "k.ptx").write_text(ptx)


def test_new_makes_a_script_that_makes_a_whole_vector(run: Run, folder: Path) -> None:
    (folder / "k.ptx").write_text(PTX)
    assert run(folder, "golden", "new", "scale", "--from", "k.ptx").code == 0
    edit_title(folder / "make_scale.py")
    runpy.run_path("make_scale.py", run_name="__main__")
    ran = run(folder, "golden", "check", "scale/small")
    assert ran.code == 0
    assert "skipped: scale/small: no reference is known for scale" in ran.out
    out = run(folder, "golden", "show", "scale/small").out
    assert "scale grid 4x1x1 block 256x1x1 shared 0 (param_0, param_1, param_2=1.0, param_3=1000)" in out
    again = run(folder, "golden", "new", "scale", "--from", "k.ptx")
    assert again.code == 2 and "is there already" in again.err
    assert run(folder, "golden", "new", "scale", "--from", "k.ptx", "--force").code == 0


def test_new_takes_the_parameters_of_the_project_s_header(run: Run, folder: Path) -> None:
    foreign(folder)
    assert run(folder, "golden", "new", "scale").code == 0
    assert '"param_2", "type": "float32"' in (folder / "make_scale.py").read_text()
    close = run(folder, "golden", "new", "scal")
    assert close.code == 2 and "no entry is named scal; did you mean scale?" in close.err


def test_new_in_a_project_that_is_not_built_makes_nothing_up(run: Run, folder: Path) -> None:
    ran = run(folder, "golden", "new", "scale")
    assert ran.code == 2 and "no generated header" in ran.err and "ssmtool build" in ran.err
    assert not list(folder.glob("make_*.py"))


def test_new_without_project_and_file_says_that_it_made_parameters_up(run: Run, folder: Path) -> None:
    (folder / "ssmtool.toml").unlink()
    ran = run(folder, "golden", "new", "scale")
    assert ran.code == 0 and "parameters y, x and n are made up" in ran.err


def test_new_knows_c_types_from_the_project_s_source(run: Run, folder: Path) -> None:
    # PTX has 64 bits for both; the header of a build has the names.
    foreign(folder, PTX.replace("scale_param_3", "scale_param_3,\n  .param .u64 scale_param_4"))
    names = [f"param_{index}" for index in range(5)]
    types = ["float *", "const float *", "float", "unsigned int", "size_t"]
    parameters = ", ".join(f"{kind} {name}" for kind, name in zip(types, names, strict=True))
    (folder / "k.cu").write_text(f'extern "C" __global__ void scale({parameters}) {{}}\n')
    assert run(folder, "golden", "new", "scale").code == 0
    text = (folder / "make_scale.py").read_text()
    assert '{"name": "param_3", "type": "uint32", "value": n},  # EDIT\n' in text
    assert '{"name": "param_4", "type": "uint64", "value": n},  # EDIT\n' in text


def test_make_in_another_s_project_writes_no_147_vectors(run: Run, folder: Path) -> None:
    foreign(folder)
    for words in ((), ("--only", "sigmoid")):
        ran = run(folder, "golden", "make", *words)
        assert ran.code == 2 and "ssmtool golden new scale" in ran.err
    assert not (folder / "golden").exists()
    assert run(folder, "golden", "make", "--only", "sigmoid/n1", "--folder", "there").code == 0


def test_make_before_a_build_goes_by_the_sources(run: Run, folder: Path) -> None:
    (folder / "k.cu").write_text('extern "C" __global__ void mine(float *x) {}\n')
    ran = run(folder, "golden", "make", "--only", "sigmoid/n1")
    assert ran.code == 2 and "ssmtool golden new mine" in ran.err
    (folder / "k.cu").write_text('extern "C" __global__ void fc_sigmoid(float *x, int n) {}\n')
    assert run(folder, "golden", "make", "--only", "sigmoid/n1").code == 0


def test_a_vector_of_a_script_that_nobody_edited_is_refused(run: Run, folder: Path) -> None:
    (folder / "k.ptx").write_text(PTX)
    run(folder, "golden", "new", "scale", "--from", "k.ptx")
    script = folder / "make_scale.py"
    # As earlier releases' scripts had it, which did not stop.
    script.write_text(script.read_text().replace('if title.startswith("EDIT"):', "if False:"))
    runpy.run_path("make_scale.py", run_name="__main__")
    ran = run(folder, "golden", "check", "scale/small")
    assert ran.code == 1 and "golden/unedited" in ran.out
    verified = run(folder, "verify", "--device", "cpu", "--ptx", "k.ptx", "golden/scale/small.npz")
    assert verified.code == 2 and "nobody has edited the script" in verified.out


def test_show_of_a_vector_of_one_s_own_has_no_dangling_words(run: Run, folder: Path) -> None:
    (folder / "k.ptx").write_text(PTX)
    run(folder, "golden", "new", "scale", "--from", "k.ptx")
    edit_title(folder / "make_scale.py")
    runpy.run_path("make_scale.py", run_name="__main__")
    out = run(folder, "golden", "show", "scale/small").out
    assert "  contract 1\n" in out and "  written by make_scale.py\n" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [(("../x",), "is no kernel's name"), (("other", "--from", "k.ptx"), "no entry is named other"),
     (("scale", "--from", "none.ptx"), "no such file")],
)  # fmt: skip
def test_new_refuses(run: Run, folder: Path, words: tuple[str, ...], message: str) -> None:
    (folder / "k.ptx").write_text(PTX)
    ran = run(folder, "golden", "new", *words)
    assert ran.code == 2 and message in ran.err
    assert not list(folder.glob("make_*.py"))
