"""The vectors in golden/ are what the generator makes, and cover what they must."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden.checked_in import NAMES, case

from conftest import ROOT, snapshot
from ssmtool.errors import SsmtoolError
from ssmtool.golden.cases import all_makers, matching
from ssmtool.golden.format import case_bytes
from ssmtool.golden.make import MAX_FOLDER_BYTES, make, path_of
from ssmtool.header import read_header

GOLDEN = ROOT / "golden"
ENTRIES = [name for held in read_header(ROOT / "generated" / "fc_cuda_ptx.h").modules for name in held.entry_names]


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_byte_for_byte_what_is_made(name: str) -> None:
    assert path_of(GOLDEN, name).read_bytes() == case_bytes(all_makers()[name]()), "ssmtool golden make"


def test_there_are_no_other_files_and_they_are_not_too_large() -> None:
    files = snapshot(GOLDEN)
    assert set(files) == {f"{name}.npz" for name in NAMES}
    assert sum(map(len, files.values())) < MAX_FOLDER_BYTES


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    first = list(make(tmp_path, ("sigmoid/*",)))
    assert [each.changed for each in first] == [True] * 9
    times = {each.path: each.path.stat().st_mtime_ns for each in first}
    first[3].path.write_bytes(b"damaged")
    second = list(make(tmp_path, ("sigmoid",)))
    assert [each.name for each in second if each.changed] == [first[3].name]
    assert all(path.stat().st_mtime_ns == times[path] for path in times if path != first[3].path)


def test_a_pattern_that_fits_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SsmtoolError, match="no case is named sigmiod"):
        list(make(tmp_path, ("sigmiod",)))
    assert matching(NAMES, ("sigmoid/n*",)) == [name for name in NAMES if name.startswith("sigmoid/n")]


def _lengths(entry: str) -> set[int]:
    found = set()
    for name in NAMES:
        for run in case(name).meta.runs:
            for launch in run.launches:
                if launch.entry == entry:
                    found |= {int(arg.value or 0) for arg in launch.args if arg.name == "n"}
    return found


@pytest.mark.parametrize(
    "entry",
    [
        "fc_ssm_recurrence_seq",
        "fc_ssm_recurrence_seq_unroll128",
        "fc_ssm_recurrence_seq_warp",
        "fc_ssm_recurrence_seq_warp_multi",
        "fc_ssm_conv1d_silu_seq",
    ],
)
def test_sequence_kernels_have_every_length(entry: str) -> None:
    assert _lengths(entry) >= {0, 1, 2, 3, 4, 17, 128}
    assert entry == "fc_ssm_conv1d_silu_seq" or 2048 in _lengths(entry)


@pytest.mark.parametrize(
    ("entry", "axis", "users"),
    [
        ("fc_ssm_recurrence_slots", 2, {1, 3, 32}),
        ("fc_ssm_recurrence_slots_2pass", 2, {1, 3, 32}),
        ("fc_ssm_conv1d_silu_slots", 1, {1, 3, 32}),
        # 32 states of 128 x 128 would be 4 MB of file.
        ("fc_ssm_recurrence_slots_warp", 2, {1, 2, 3}),
        ("fc_ssm_decode_step", 1, {1, 2, 3}),
    ],
)
def test_slot_kernels_have_few_and_many_users_and_one_past_2_to_the_31(entry: str, axis: int, users: set[int]) -> None:
    found = {
        launch.grid[axis]
        for name in NAMES
        for run in case(name).meta.runs
        for launch in run.launches
        if launch.entry == entry
    }
    assert found >= users and max(found) > 4096


def test_every_shape_of_kernel_16_is_there() -> None:
    found = {
        (launch.grid[0], launch.block[0])
        for name in NAMES
        for run in case(name).meta.runs
        for launch in run.launches
        if launch.entry == "fc_ssm_recurrence_slots_warp" and launch.grid[1:] == (2, 3)
    }
    rows = {128 * 32 // (blocks * threads) for blocks, threads in found}
    assert rows == {2, 4, 8} and {threads for _, threads in found} == {32, 128}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_kernel_is_there_at_the_models_dimensions_and_at_odd_ones(entry: str) -> None:
    names = [name for name in NAMES if entry in case(name).kernels]
    assert any("/reference" in name for name in names)
    assert sum("/reference" not in name for name in names) >= 2
