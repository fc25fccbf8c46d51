"""Files: the documented example, the same bytes everywhere, and everything that is no case."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.checked_in import NAMES, case

from conftest import ROOT
from ssmtool.errors import SsmtoolError
from ssmtool.golden import CaseError, GoldenCase, case_bytes, parse_case, read_case
from ssmtool.golden.container import npy_bytes

DOCS = (ROOT / "docs/vectors.md").read_text()
EXAMPLE = re.findall(r"```python\n(import json.*?)```", DOCS, re.DOTALL)[0]


def _example() -> dict[str, Any]:
    """What the documented script saves, instead of a file."""
    saved: dict[str, Any] = {}
    script = EXAMPLE.replace("np.savez(", "saved(")
    exec(script, {"saved": lambda _path, **arrays: saved.update(arrays)})
    return saved


def _file(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _changed(change: Any) -> bytes:
    """The example with its JSON changed in place by `change`."""
    arrays = _example()
    meta = json.loads(arrays["case"].tobytes())
    change(meta)
    arrays["case"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    return _file(arrays)


def test_the_documented_example_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(EXAMPLE, {})
    read = read_case(tmp_path / "small.npz")
    assert read.kernels == ("scale",)
    assert np.array_equal(read.image("x"), read.before["x"])
    assert read.image("y").view(np.uint32).tolist() == [0x7FC5A5A5] * 1000
    assert read.expected("x") is not None and read.policy("x").exact and read.policy("y").max_ulp == 8


def test_compressed_files_are_read_too() -> None:
    stream = io.BytesIO()
    np.savez_compressed(stream, **_example())
    assert parse_case(stream.getvalue()).meta.name == "scale/small"


def test_a_case_from_another_process_makes_the_same_file() -> None:
    made = case("qknorm/mistake-eps")
    assert case_bytes(pickle.loads(pickle.dumps(made))) == case_bytes(made)


@pytest.mark.parametrize("name", NAMES)
def test_a_case_reads_back_as_it_was_written(name: str) -> None:
    data = case_bytes(case(name))
    again = parse_case(data)
    assert again.meta == case(name).meta
    assert case_bytes(again) == data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:  # NumPy agrees about what is in it
            assert set(arrays) >= {"case"}
            for key, array in again.after.items():
                assert arrays[f"after.{key}"].tobytes() == array.tobytes()


def test_bytes_of_a_case_are_pinned() -> None:
    # Another NumPy, Python, zlib or machine must make this file; then all others are the same, too.
    digest = hashlib.sha256(case_bytes(case("qknorm/mistake-eps"))).hexdigest()
    held = hashlib.sha256((ROOT / "golden/qknorm/mistake-eps.npz").read_bytes()).hexdigest()
    assert digest == held


@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (1, 2, 3)])
def test_npy_headers_are_numpys(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0))
    assert npy_bytes(array)[10:] == stream.getvalue()[10:] or np.array_equal(
        np.load(io.BytesIO(npy_bytes(array))), array
    )


def _buffer(**keys: Any) -> Any:
    return lambda meta: meta["buffers"]["y"].update(keys)


def _argument(index: int, **keys: Any) -> Any:
    return lambda meta: meta["runs"][0]["launches"][0]["args"].__setitem__(index, keys)


def _launch(**keys: Any) -> Any:
    return lambda meta: meta["runs"][0]["launches"][0].update(keys)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda meta: meta.pop("runs"), "missing required field `runs`"),
        (lambda meta: meta.update(extra=1), "unknown field `extra`"),
        (lambda meta: meta.update(format="ssmtool-golden-9"), "of format 'ssmtool-golden-9'; this release reads"),
        (lambda meta: meta.update(name="../../etc/passwd"), "is not a file's name"),
        (lambda meta: meta.update(runs=[]), "1 to 64 runs"),
        (lambda meta: meta.update(runs=meta["runs"] * 2), "two runs have the same name"),
        (lambda meta: meta.update(policies={"norm": {"nmse": 1}}), "name of a built-in one"),
        (lambda meta: meta.update(policies={"mine": {}}), "no limit: anything would pass"),
        (lambda meta: meta.update(policies={"mine": {"nmse": -1}}), "is no limit"),
        (_buffer(policy="loose"), "policy 'loose' is none of recurrence"),
        (_buffer(policy=None), "policy None"),
        (_buffer(dtype="object"), "type 'object' is none of"),
        (_buffer(dtype="float64"), "'after.y' is float32, the buffer is float64"),
        (_buffer(dtype="int32"), "integers need an exact policy"),
        (_buffer(shape=[999]), r"'after.y' has shape \[1000\], the buffer \[999\]"),
        (_buffer(shape=[-1]), "shape"),
        (_buffer(shape=[2**50]), "bytes"),
        (_buffer(axes=["i", "j"]), "do not name the 1 dimensions"),
        (_buffer(group=["h"]), "is not among its axes"),
        (_buffer(before="given"), "'before.y' is missing"),
        (_buffer(before="garbage"), "Invalid enum value 'garbage'"),
        (_buffer(after="any", policy=None), "'after.y' is there, but the buffer is 'any' after"),
        (_buffer(nan=1), "has 0 nan, the buffer declares 1"),
        (_buffer(inf=2), "has 0 inf, the buffer declares 2"),
        (_buffer(rows=[5, 3]), "must ascend"),
        (_launch(entry="rm -rf"), "is no kernel's name"),
        (_launch(grid=[0, 1, 1]), "grid"),
        (_launch(grid=[1, 70000, 1]), "grid"),
        (_launch(block=[1025, 1, 1]), "block"),
        (_launch(block=[64, 64, 1]), "more than 1024 threads"),
        (_launch(grid=[1, 1]), "Expected `array` of length 3"),
        (_argument(0, name="y", buffer="z"), "no buffer is named 'z'; there are: y, x"),
        (_argument(0, name="y", buffer="y", offset=1000), "offset 1000 is outside the 1000 elements"),
        (_argument(0, name="y", buffer="y", offset=-1), "offset -1 is outside"),
        (_argument(0, name="y"), "neither a buffer nor one of the types"),
        (_argument(3, name="n", type="int32", value=2**31), "is no int32"),
        (_argument(3, name="n", type="int32", value=1.5), "is no int32"),
        (_argument(2, name="a", type="float32", value=1e39), "is no finite float32"),
        (_argument(2, name="x", type="null"), "two arguments of one name"),
    ],
)
def test_a_case_that_contradicts_itself_is_refused(change: Any, words: str) -> None:
    with pytest.raises(CaseError, match=words):
        parse_case(_changed(change))


def test_an_undeclared_nan_is_refused() -> None:
    arrays = _example()
    arrays["after.y"] = arrays["after.y"].copy()
    arrays["after.y"][7] = np.nan
    with pytest.raises(CaseError, match="has 1 nan, the buffer declares 0"):
        parse_case(_file(arrays))


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("before.x", np.zeros(1000, ">f4"), "little-endian"),
        ("before.x", np.zeros(1000, np.complex64), "is of type <c8"),
        ("before.x", np.asfortranarray(np.zeros((2, 500), np.float32)), "Fortran order"),
        ("before.z", np.zeros(1, np.float32), "belongs to no buffer"),
        ("other", np.zeros(1, np.float32), "holds an array 'other'"),
        ("case", np.zeros(4, np.float32), "bytes of a JSON text"),
        ("case", np.frombuffer(b"\xff\xfe", np.uint8), "case: "),
        ("case", np.frombuffer(b"[" * 100000, np.uint8), "case: "),
    ],
)
def test_an_array_that_does_not_belong_is_refused(name: str, array: Any, words: str) -> None:
    with pytest.raises(CaseError, match=words):
        parse_case(_file({**_example(), name: array}))


def test_pickles_are_never_read() -> None:
    stream = io.BytesIO()
    np.savez(stream, **{**_example(), "before.x": np.array([print], dtype=object)})
    with pytest.raises(CaseError, match="holds Python objects; they are never read"):
        parse_case(stream.getvalue())


def _zip(members: dict[str, bytes], **options: Any) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    zeros = bytes(64 << 20)
    data = _zip({f"{n}.npy": zeros for n in range(9)}, compression=zipfile.ZIP_DEFLATED)
    assert len(data) < 1 << 20
    with pytest.raises(CaseError, match="unpacks to 603979776 bytes"):
        parse_case(data)


def test_a_member_larger_than_announced_is_refused() -> None:
    data = bytearray(_zip({"case.npy": bytes(5000)}, compression=zipfile.ZIP_DEFLATED))
    at = data.index(b"PK\x01\x02") + 24  # uncompressed size in the central directory
    data[at : at + 4] = struct.pack("<I", 10)
    with pytest.raises(CaseError):
        parse_case(bytes(data))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no zip archive"),
        (b"hello", "no zip archive"),
        (b"PK\x03\x04 and nothing", "is damaged"),
        (_zip({"readme.txt": b"x"}), "which is no .npy array"),
        (_zip({"case.npy": b"x"}), "no readable header"),
        (_zip({"case.npy": b"\x93NUMPY\x09\x00"}), "has .npy format 9.0"),
        (_zip({"case.npy": b"x"}, compression=zipfile.ZIP_BZIP2), "packed by method"),
        (_zip({"a.npy": npy_bytes(np.zeros(3, np.float32))}), "no array 'case'"),
        (_zip({f"{n}.npy": b"" for n in range(300)}), "at most 256"),
    ],
)
def test_what_is_no_npz_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(CaseError, match=words):
        parse_case(data)


def test_a_header_that_lies_about_its_size_is_refused() -> None:
    whole = npy_bytes(np.zeros(8, np.float32))
    for shape in (b"(9,)", b"(7,)", b"(-8,)", b"(4294967296, 4294967296)"):
        with pytest.raises(CaseError):
            parse_case(_zip({"case.npy": whole.replace(b"(8,)", shape, 1)}))


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(keep: float, tmp_path: Path) -> None:
    data = case_bytes(case("sigmoid/edges"))
    path = tmp_path / "cut.npz"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(CaseError) as caught:
        read_case(path)
    assert caught.value.path == str(path)


def test_every_flipped_byte_is_refused_or_harmless() -> None:
    whole = case_bytes(case("sigmoid/n1"))
    refused = 0
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 0xFF
        try:
            read = parse_case(bytes(data))
        except CaseError:
            refused += 1
        else:
            assert isinstance(read, GoldenCase)  # a time stamp or a flag; the contents have check sums
            assert read.meta == case("sigmoid/n1").meta
    assert refused > len(whole) / 7 * 0.8


def test_what_cannot_be_read_is_an_error_too(tmp_path: Path) -> None:
    for path in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(SsmtoolError):
            read_case(path)


def test_the_page_has_the_tolerances_and_only_cases_that_exist() -> None:
    from ssmtool.golden.policies import POLICIES

    for name, policy in POLICIES.items():
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \| .* \|$", DOCS.partition("Limits:")[0], re.MULTILINE)
        limits = [float(cell) for cell in row.split("|") if cell.strip() not in ("", "bits")]
        assert limits == [each for each in (policy.nmse, policy.max_rms, policy.max_ulp) if each is not None]
    named = set(
        re.findall(
            r"`((?:recurrence|slots|convolution|convolution-slots|qknorm|gated-norm|sigmoid|decay-gate)/[\w-]+)`", DOCS
        )
    )
    assert named and named <= set(NAMES)
