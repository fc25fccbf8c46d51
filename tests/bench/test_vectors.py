"""`ssmtool bench` of kernels that are not the product's: by the launches of their golden vectors."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from conftest import ROOT, Run
from ssmtool.audit.inputs import read_input
from ssmtool.bench.vectors import right, vector_group
from ssmtool.golden import GoldenCase, case_bytes, read_case

EXAMPLE = ROOT / "examples/vector_kernels"
AXPY = EXAMPLE / "golden/vec_axpy/small.npz"
CPU = ("--device", "cpu", "--format", "json")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A project with none of the product's kernels."""
    return shutil.copytree(EXAMPLE, tmp_path / "project")


def test_a_foreign_project_has_its_vectors_counted_and_never_ok_for_nothing(run: Run, foreign: Path) -> None:
    ran = run(foreign, "bench", *CPU)
    assert ran.code == 0, ran.out + ran.err
    slots = ran.json["extra"]["bench"][0]["slots"]
    assert [each["case"] for each in slots] == ["vec_axpy", "vec_rms_norm", "vec_softmax"]
    assert all(each["right"] is True and each["slots"] > 0 for each in slots)


def test_without_any_vector_it_says_what_to_make(run: Run, foreign: Path) -> None:
    shutil.rmtree(foreign / "golden")
    ran = run(foreign, "bench", "--device", "cpu")
    assert ran.code == 2
    assert "nothing to time" in ran.err
    assert "ssmtool golden new vec_" in ran.err
    ran = run(foreign, "bench", "vec_axpy", "--device", "cpu")
    assert ran.code == 2
    assert 'no golden vector launches "vec_axpy"' in ran.err


def test_no_position_and_no_user_is_no_benchmark(run: Run) -> None:
    ran = run(ROOT, "bench", "--device", "cpu", "--positions", "", "--users", "")
    assert ran.code == 2
    assert "nothing to time" in ran.err


def test_the_list_in_an_error_holds_only_what_is_there(run: Run, foreign: Path) -> None:
    ran = run(foreign, "bench", "nope", "--device", "cpu")
    assert ran.code == 2
    assert "fc_ssm" not in ran.err
    assert "vec_rms_norm" in ran.err


def test_a_kernel_of_the_product_outside_of_its_groups_is_counted_by_its_vectors(run: Run) -> None:
    ran = run(ROOT, "bench", "sigmoid/n257", *CPU)
    assert ran.code == 0, ran.err
    (found,) = ran.json["extra"]["bench"][0]["slots"]
    assert (found["launches"], found["bytes"]) == (1, 2 * 257 * 4)


def test_runs_of_a_vector_with_offsets_into_its_buffers_are_compared(run: Run) -> None:
    """Chunks go on in the middle of q, k, v and y: a launch from the buffers' beginning would be wrong."""
    ran = run(ROOT, "bench", str(ROOT / "golden/recurrence/chunks.npz"), *CPU)
    assert ran.code == 0, ran.out + ran.err
    slots = ran.json["extra"]["bench"][0]["slots"]
    assert len(slots) > 1
    assert [each["same_bits"] for each in slots].count(None) == 1
    assert all(each["right"] for each in slots)


def _changed(path: Path, case: GoldenCase) -> None:
    path.write_bytes(case_bytes(case))


def test_a_wrong_kernel_is_no_fast_one(run: Run, foreign: Path) -> None:
    path = foreign / "golden/vec_axpy/small.npz"
    case = read_case(path)
    _changed(path, GoldenCase(case.meta, case.before, {name: array + 1 for name, array in case.after.items()}))
    ran = run(foreign, "bench", "vec_axpy", "--device", "cpu")
    assert ran.code == 1
    assert "bench/wrong-numbers" in ran.out
    assert "WRONG" in ran.out


def test_a_launch_that_leaves_its_buffers_is_a_finding_and_the_others_are_counted(run: Run, foreign: Path) -> None:
    path = foreign / "golden/vec_axpy/small.npz"
    case = read_case(path)
    args = case.meta.runs[0].launches[0].args
    far = tuple(msgspec.structs.replace(each, value=1 << 20) if each.type == "int32" else each for each in args)
    launch = msgspec.structs.replace(case.meta.runs[0].launches[0], args=far, grid=(8192, 1, 1))
    bad = msgspec.structs.replace(case.meta, runs=(msgspec.structs.replace(case.meta.runs[0], launches=(launch,)),))
    _changed(path, GoldenCase(bad, case.before, case.after))
    ran = run(foreign, "bench", *CPU)
    assert ran.code == 1, ran.out
    assert [each["rule"] for each in ran.json["findings"]] == ["bench/fault"]
    assert len(ran.json["extra"]["bench"][0]["slots"]) == 2


def test_a_vector_of_another_ptx_or_a_damaged_one_is_named_and_is_exit_code_2(run: Run, foreign: Path) -> None:
    ran = run(foreign, "bench", str(ROOT / "golden/sigmoid/n1.npz"), "--device", "cpu")
    assert ran.code == 2
    assert "fc_sigmoid is not in this PTX" in ran.out
    (foreign / "cut.npz").write_bytes(AXPY.read_bytes()[:100])
    ran = run(foreign, "bench", str(foreign / "cut.npz"), "--device", "cpu")
    assert ran.code == 2
    assert "no such file" not in ran.out
    assert "cut.npz" in ran.out


def test_runs_whose_kernels_the_ptx_lacks_are_counted_as_not_timed(run: Run, tmp_path: Path) -> None:
    text = read_input(str(ROOT / "generated/fc_cuda_ptx.h"))[1].module.text
    (tmp_path / "fast.ptx").write_text(text)
    ran = run(tmp_path, "bench", str(ROOT / "golden/slots/k3-s128.npz"), "--ptx", str(tmp_path / "fast.ptx"), *CPU)
    assert ran.code == 2
    assert ran.json["extra"]["bench"][0]["slots"], ran.out
    assert "of vector slots/k3-s128" in ran.json["skips"][0]["check"], ran.out + ran.err


def test_a_kernel_that_has_the_name_of_a_folder_is_the_kernel(
    run: Run, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (foreign / "vec_axpy").mkdir()
    monkeypatch.chdir(foreign)
    assert run(foreign, "bench", "vec_axpy", *CPU).code == 0


def test_a_file_and_its_folder_are_one_vector(run: Run, foreign: Path) -> None:
    ran = run(foreign, "bench", str(foreign / "golden/vec_axpy/small.npz"), str(foreign / "golden/vec_axpy"), *CPU)
    assert ran.code == 0
    assert len(ran.json["extra"]["bench"][0]["slots"]) == 1


def test_a_ptx_file_and_a_vector_need_no_project(run: Run, tmp_path: Path) -> None:
    ran = run(tmp_path, "bench", str(AXPY), "--ptx", str(EXAMPLE / "generated/vector_ptx.h"), *CPU)
    assert ran.code == 0, ran.out + ran.err
    assert len(ran.json["extra"]["bench"][0]["slots"]) == 1


def test_bytes_are_each_buffer_in_and_out_without_scratch_and_rooms_that_stay() -> None:
    case = read_case(AXPY)
    group = vector_group(case, {"vec_axpy": [each.name for each in case.meta.runs[0].launches[0].args]})
    ways = {
        name: (buffer.before != "poison") + (buffer.after == "expected") for name, buffer in case.meta.buffers.items()
    }
    assert sorted(ways.values()) == [1, 2]
    assert group.cases[0].bytes == sum(case.meta.buffers[name].nbytes * count for name, count in ways.items())
    assert right(group, {**group.make(), **case.after}) is True
    assert right(group, {**group.make(), **{name: np.zeros_like(each) for name, each in case.after.items()}}) is False
