"""`ssmtool run`: arguments by hand, reports, saved files, hostile input."""

from __future__ import annotations

import html
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from execute import handmade

from conftest import Ran, Run, snapshot
from ssmtool.cli.run_values import parse_values
from ssmtool.errors import SsmtoolError
from ssmtool.ptx import parse

SIZES = ("--grid", "4", "--block", "32")
NUMBERS = ("--arg", "param_2=2.5", "--arg", "param_3=100")
FILLS = ("--arg", "zeros:100", "--arg", "arange:100", *NUMBERS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSMTOOL_CACHE_DIR", str(tmp_path / "cache"))
    handmade.install(monkeypatch)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "k.ptx").write_text(handmade.PTX)
    return work


def scale(run: Run, folder: Path, *words: str) -> Ran:
    return run(folder, "run", "k.ptx", "scale", *SIZES, *words)


def test_runs_shows_and_saves(run: Run, folder: Path) -> None:
    ran = scale(
        run, folder, *FILLS, "--show", "param_0:3", "--save", "out.npz", "--save", "param_0=y.npy", "--counters"
    )
    assert (ran.code, ran.err) == (0, "wrote out.npz\nwrote y.npy\n")
    assert "param_0[:3] = 0.0 2.5 5.0" in ran.out
    assert "unit-model dependent (ex2.approx: H200-exact)" in ran.out
    assert "4 warp instructions, 1.0 a block" in ran.out
    assert "ok: scale, grid 4, block 32 x 1 x 1:" in ran.out
    want = np.arange(100, dtype=np.float32) * np.float32(2.5)
    with np.load(folder / "out.npz") as saved:
        assert set(saved) == {"param_0", "param_1"}
        assert np.array_equal(saved["param_0"], want)
    assert np.array_equal(np.load(folder / "y.npy"), want)


def test_json_has_the_same(run: Run, folder: Path) -> None:
    ran = scale(run, folder, *FILLS, "--format", "json", "--show", "param_0:3")
    assert (ran.code, ran.err, ran.json["verdict"]) == (0, "", "ok")
    extra = ran.json["extra"]
    assert (extra["entry"], extra["grid"], extra["block"]) == ("scale", [4], [32, 1, 1])
    assert extra["values"] == {"param_0": [0.0, 2.5, 5.0]}
    assert [(each["name"], each["written"]) for each in extra["buffers"]] == [("param_0", True), ("param_1", False)]


def test_values_that_json_lacks_are_words(run: Run, folder: Path) -> None:
    ran = scale(run, folder, "--arg", "zeros:4", "--arg", "full:4:nan", "--arg", "1", "--arg", "4", "--format", "json",
                "--show", "param_0:2")  # fmt: skip
    assert ran.json["extra"]["values"] == {"param_0": ["nan", "nan"]}


@pytest.mark.parametrize("form", ["console", "json", "sarif", "junit", "markdown", "github"])
def test_a_fault_is_a_finding_at_its_line_and_exit_code_1(run: Run, folder: Path, form: str) -> None:
    ran = scale(run, folder, "--arg", "zeros:9x10", "--arg", "arange:100", *NUMBERS, "--axes", "param_0=h,j",
                "--format", form, "--threads", "1")  # fmt: skip
    assert ran.code == 1
    out = html.unescape(" ".join(ran.out.split()))
    for word in ("out-of-bounds", "15", "param_0[90]", "just past the end of param_0"):
        assert word in out
    if form == "console":
        assert "error: k.ptx:15: scale (scale.cu:7), block (2, 0, 0), thread (26, 0, 0), 6 times: writes" in out
        assert "at run time:" in out


def test_what_a_bad_kernel_left_is_saved_too(run: Run, folder: Path) -> None:
    ran = scale(run, folder, "--arg", "zeros:90", "--arg", "ones:100", *NUMBERS, "--save", "out.npz")
    assert ran.code == 1
    with np.load(folder / "out.npz") as saved:
        assert (saved["param_0"] == 2.5).all()


def test_ptx_in_c_is_found_and_faults_are_at_the_c_file_s_line(run: Run, folder: Path) -> None:
    lines = "\n".join(json.dumps(line + "\n") for line in handmade.PTX.splitlines())
    (folder / "k.h").write_text(f"/* a\n header */\nstatic const char *ptx =\n{lines};\n")
    ran = run(folder, "run", "k.h", "scale", *SIZES, "--arg", "null", "--arg", "ones:100", *NUMBERS)
    assert ran.code == 1
    assert "error: k.h:18: scale" in ran.out  # three lines before the PTX
    assert "a null pointer" in ran.out


def test_our_header_gives_parameters_their_c_names(run: Run, product: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(product)
    ran = run(product, "run", "generated/fc_cuda_ptx.h", "fc_sigmoid_inplace", *SIZES, "--arg", "nope=1")
    assert ran.code == 2
    assert "no entry is named fc_sigmoid_inplace" in ran.err


def test_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.audit.inputs.sys", type("Sys", (), {"stdin": type("In", (), {
        "buffer": io.BytesIO(handmade.PTX.encode())})}))  # fmt: skip
    assert run(folder, "run", "-", "scale", *SIZES, *FILLS).code == 0


def test_repetitions_begin_at_the_same_values(run: Run, folder: Path) -> None:
    ran = scale(
        run, folder, "--arg", "ones:100", "--arg", "same:param_0", *NUMBERS, "--repeat", "5", "--show", "param_0:2"
    )
    assert "param_0[:2] = 2.5 2.5" in ran.out
    assert "median of 5" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "scale takes 4 arguments, 0 were given; missing: param_0, param_1, param_2, param_3"),
        (("--arg", "zeros:4"), "missing: param_1, param_2, param_3"),
        ((*FILLS, "--arg", "1"), "every one of the 4 parameters has a value already"),
        ((*FILLS, "--arg", "param_3=1"), "param_3 is given twice"),
        ((*FILLS[:6], "--arg", "n=1"), "no parameter 'n'"),
        (("--arg", "param_2=x"), "'x' is no number"),
        (("--arg", "param_3=x"), "'x' is no value"),
        (("--arg", "param_3=1.5"), "is an integer (.u32), 1.5 is none"),
        (("--arg", "zeros:axb"), "'axb' is no shape"),
        (("--arg", "zeros:4:float33"), "'float33' is no type"),
        (("--arg", "zeros:99999999999999"), "more than this machine's memory"),
        (("--arg", "full:4"), "needs its value"),
        (("--arg", "full:4:x"), "could not convert"),
        (("--arg", "full:4:300:u8"), "out of bounds"),
        (("--arg", "random:4:int32"), "floats"),
        (("--arg", "same:q"), "no buffer 'q' was given before"),
        (("--arg", "bytes:0g"), "not bytes in hexadecimal"),
        (("--arg", "@missing.npy"), "missing.npy: cannot be read: No such file"),
        (("--arg", "@."), "is no file"),
        ((*FILLS, "--show", "param_9"), "no buffer param_9; there are: param_0, param_1"),
        ((*FILLS, "--show", "param_0:x"), "expected NAME:N"),
        ((*FILLS, "--axes", "param_0"), "expected NAME=A,B"),
        ((*FILLS, "--axes", "param_0=a,b"), "does not fit an array of shape (100,)"),
        ((*FILLS, "--save", "out.txt"), "expected FILE.npz"),
        ((*FILLS, "--save", "param_0=out.npz"), "expected FILE.npz for all buffers, or NAME=FILE.npy"),
        ((*FILLS, "--save", "param_7=out.npy"), "no buffer param_7"),
        ((*FILLS, "--shared", "65536"), "sm_37 allows 49152"),
    ],
)
def test_what_cannot_be_run_is_one_error_and_nothing_is_written(
    run: Run, folder: Path, words: tuple[str, ...], message: str
) -> None:
    before = snapshot(folder)
    ran = scale(run, folder, *words, "--save", "all.npz")
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert ran.err.count("error: ") == 1
    assert snapshot(folder) == before


@pytest.mark.parametrize("sizes", [("0", "32"), ("1", "2000"), ("1,2,3,4", "1"), ("x", "1"), ("1", "-1"), ("1", "")])
def test_sizes_that_are_none(run: Run, folder: Path, sizes: tuple[str, str]) -> None:
    ran = run(folder, "run", "k.ptx", "scale", "--grid", sizes[0], "--block", sizes[1], *FILLS)
    assert ran.code == 2
    assert ran.err.startswith("error: ")


def test_an_unknown_entry_names_the_one_meant(run: Run, folder: Path) -> None:
    ran = run(folder, "run", "k.ptx", "skale", *SIZES, *FILLS)
    assert (ran.code, ran.err) == (2, "error: k.ptx: no entry is named skale; did you mean scale?\n")


def test_a_file_that_was_read_is_replaced_only_by_force(run: Run, folder: Path) -> None:
    np.savez(folder / "in.npz", y=np.zeros(100, np.float32))
    (folder / "link.npz").symlink_to("in.npz")
    words = ("--arg", "@in.npz:y", "--arg", "ones:100", *NUMBERS)
    before = snapshot(folder)
    for name in ("in.npz", "link.npz"):
        ran = scale(run, folder, *words, "--save", name)
        assert (ran.code, snapshot(folder)) == (2, before)
        assert "was read by this command" in ran.err
    assert scale(run, folder, *words, "--save", "in.npz", "--force").code == 0
    with np.load(folder / "in.npz") as saved:
        assert saved["param_0"][0] == 2.5


def hostile(folder: Path, name: str) -> str:
    path = folder / "bad.npz"
    if name == "pickle":
        np.save(folder / "bad.npy", np.array([{}], object), allow_pickle=True)
        return "bad.npy"
    if name == "rubbish":
        (folder / "bad.npy").write_bytes(b"rubbish")
        return "bad.npy"
    if name == "empty":
        (folder / "bad.npy").write_bytes(b"")
        return "bad.npy"
    good = io.BytesIO()
    np.save(good, np.zeros(1000))
    if name == "cut off":
        (folder / "bad.npy").write_bytes(good.getvalue()[:-8])
        return "bad.npy"
    if name == "boasting":
        (folder / "bad.npy").write_bytes(good.getvalue().replace(b"(1000,)", b"(10**9,)"[:7], 1))
        (folder / "bad.npy").write_bytes(good.getvalue().replace(b"(1000,), }  ", b"(1000000,), }", 1))
        return "bad.npy"
    with zipfile.ZipFile(path, "w") as archive:
        if name == "text in zip":
            archive.writestr("y.npy", "text")
        elif name == "bomb":
            archive.writestr("y.npy", good.getvalue().replace(b"(1000,), }     ", b"(500000000,), }", 1))
    if name == "bomb":
        data = bytearray(path.read_bytes())
        at = data.rindex(b"PK\1\2") + 24  # the size that the directory claims
        data[at : at + 4] = b"\xf0\xff\xff\xff"
        path.write_bytes(data)
    return "bad.npz"


@pytest.mark.parametrize("name", ["pickle", "rubbish", "empty", "cut off", "boasting", "text in zip", "bomb", "none"])
def test_hostile_files_are_one_clear_error(run: Run, folder: Path, name: str) -> None:
    file = hostile(folder, name)
    ran = scale(run, folder, "--arg", f"@{file}", "--arg", "ones:100", *NUMBERS)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {file}: ")
    assert len(ran.err) < 400


PARAMS = parse(handmade.PTX).entries[0].params
NAMES = handmade.NAMES["scale"]


def value(word: str) -> Any:
    (found,) = parse_values(PARAMS, NAMES, [word]).values()
    return found.value


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("zeros:2x3", np.zeros((2, 3), np.float32)),
        ("zeros:2,3:f64", np.zeros((2, 3))),
        ("zeros:0", np.zeros(0, np.float32)),
        ("ones:4:int32", np.ones(4, np.int32)),
        ("full:2:-1.5", np.full(2, -1.5, np.float32)),
        ("full:2:0xff:u8", np.full(2, 255, np.uint8)),
        ("arange:2x2", np.arange(4, dtype=np.float32).reshape(2, 2)),
        ("uninit:2:u16", np.full(2, 65535, np.uint16)),
        ("random:5", np.random.default_rng(0).standard_normal(5).astype(np.float32)),
        ("random:5:7:f64", np.random.default_rng(7).standard_normal(5)),
    ],
)
def test_fills(word: str, want: Any) -> None:
    got = value(word)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.array_equal(got, want)
    assert got.ctypes.data % 256 == 0 or got.size == 0


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("n=0x10", 16),
        ("n=-1", -1),
        ("a=2", 2.0),
        ("a=-inf", -np.inf),
        ("y=null", None),
        ("y=5", 5),
        ("y=bytes:00ff", b"\0\xff"),
    ],
)
def test_scalars(word: str, want: Any) -> None:
    got = value(word)
    assert got == want
    assert type(got) is type(want) or isinstance(want, float)


def test_files_are_copied_into_order(tmp_path: Path) -> None:
    array = np.arange(12, dtype=">f4").reshape(3, 4)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    got = value(f"y=@{tmp_path / 'a.npy'}")
    assert got.dtype == np.dtype("float32")
    assert got.flags.c_contiguous
    assert np.array_equal(got, array)
    np.savez(tmp_path / "b.npz", only=array)
    assert np.array_equal(value(f"y=@{tmp_path / 'b.npz'}"), array)
    np.savez(tmp_path / "c.npz", one=array, two=array + 1)
    assert np.array_equal(value(f"y=@{tmp_path / 'c.npz'}:two"), array + 1)
    with pytest.raises(SsmtoolError, match="holds several arrays; there are: one, two"):
        value(f"y=@{tmp_path / 'c.npz'}")
    with pytest.raises(SsmtoolError, match="has no array 'three'"):
        value(f"y=@{tmp_path / 'c.npz'}:three")


def test_without_numpy_it_is_one_error(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    ran = scale(run, folder, *FILLS)
    assert ran.code == 2
    assert "running kernels needs llvmlite" in ran.err
    assert "ssmtool[executor]" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--save", "param_0=b.npy", "--save", "param_1=./b.npy"), "b.npy is named twice"),
        (("--save", "folder.npz"), "folder.npz is a folder, not a file"),
        (("--save", "k.ptx/out.npz"), "--save k.ptx/out.npz: "),
    ],
)
def test_a_save_that_would_lose_something_is_told_before_the_launch(
    run: Run, folder: Path, words: tuple[str, ...], said: str
) -> None:
    (folder / "folder.npz").mkdir()
    before = snapshot(folder)
    ran = scale(run, folder, *FILLS, *words)
    assert ran.code == 2
    assert said in ran.err
    assert "exact" not in ran.out
    assert snapshot(folder) == before


CONFLICT = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k() {
    .reg .b32 %r<4>;
    .shared .align 4 .b8 s[4096];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, s;
    shl.b32 %r2, %r0, 2;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %r0;
    shl.b32 %r2, %r0, 7;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %r0;
    ret;
}
"""


def test_the_worst_access_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An average over all accesses hides the one that conflicts.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(CONFLICT)
    ran = run(tmp_path, "run", "k.ptx", "k", "--grid", "1", "--block", "32", "--counters")
    assert "16.50 bank passes for a shared access" in ran.out
    assert "most: 32.00 bank passes (PTX line 14: st.shared.u32 [%r2], %r0;)" in ran.out


def test_a_superscript_digit_is_no_shape_and_a_long_word_is_cut(run: Run, folder: Path) -> None:
    ran = scale(run, folder, "--arg", "zeros:\N{SUPERSCRIPT TWO}")
    assert ran.code == 2
    assert "is no shape" in ran.err
    ran = scale(run, folder, "--arg", "param_3=" + "9" * 5000)
    assert ran.code == 2
    assert len(ran.err) < 1000
