"""`ssmtool bench`: what is timed, what the executor counts, and a card's timing over the fake driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT, Run
from ssmtool.bench import cases
from ssmtool.bench.cases import CHAIN, decode, groups_of, prefill, token
from ssmtool.errors import SsmtoolError
from ssmtool.header import read_header

ENTRIES = [name for held in read_header(ROOT / "generated/fc_cuda_ptx.h").modules for name in held.entry_names]


def test_every_launch_has_the_arguments_of_its_kernel() -> None:
    parameters = {
        entry.name: [each.split()[1] for each in entry.parameters.split(", ")]
        for held in read_header(ROOT / "generated/fc_cuda_ptx.h").modules
        for entry in held.record.entries
    }
    for group in (prefill(3, 4), decode(2, 4), token(2, 4)):
        buffers = group.make()
        assert set(group.kept) <= set(buffers)
        for case in group.cases:
            assert set(case.outputs) <= set(group.kept)
            for call in case.calls:
                assert sorted(call.args) == sorted(parameters[call.entry])
                assert {value for value in call.args.values() if isinstance(value, str)} <= set(buffers)


def test_bytes_are_what_must_be_moved() -> None:
    state = 32 * 128 * 128 * 4
    assert prefill(1024, 32).cases[0].bytes == 2 * state + 1024 * 32 * (4 * 128 + 2) * 4
    assert decode(256, 32).cases[0].bytes == 256 * (2 * state + 32 * (4 * 128 + 2) * 4)
    assert decode(256, 32).operations == 256 * 32 * 128 * 128 * 7


def test_the_buffers_of_a_group_are_the_same_each_time() -> None:
    one, other = token(2, 4).make(), token(2, 4).make()
    assert all(np.array_equal(one[name], other[name]) and one[name].dtype == np.float32 for name in one)


def test_kernel_10_is_left_out_where_its_shared_memory_ends() -> None:
    names = [case.name for case in prefill(6145, 1).cases]
    assert "fc_ssm_recurrence_seq_warp" not in names
    assert "fc_ssm_recurrence_seq_warp_multi, 8 rows a warp" in names


def test_patterns_choose_cases_and_a_pattern_for_nothing_is_an_error() -> None:
    groups = groups_of(["fc_ssm_recurrence_slots_warp"], [8], [1], 2, ENTRIES)
    assert [group.title for group in groups] == ["decode, 1 user"]
    assert len(groups[0].cases) == 6
    assert groups_of([CHAIN], [8], [1], 2, ENTRIES)[0].cases[0].name == CHAIN
    with pytest.raises(SsmtoolError, match="nothing that is timed"):
        groups_of(["nothing"], [8], [1], 2, ENTRIES)


def test_snapshots_are_groups_of_their_own_whose_images_are_compared(run: Run) -> None:
    words = ("fc_ssm_recurrence_seq_warp*", "--positions", "5", "--users", "", "--heads", "1", "--snapshots")
    ran = run(ROOT, "bench", *words, "--device", "cpu", "--format", "json")
    assert ran.code == 0, ran.out
    found = [each for each in ran.json["extra"]["bench"][0]["slots"] if "snapshot" in each["group"]]
    assert [each["same_bits"] for each in found] == [None, True, True]
    assert all("snaps" in case.outputs for case in prefill(5, 1, snapshots=True).cases)
    assert prefill(5, 1, snapshots=True).cases[0].bytes - prefill(5, 1).cases[0].bytes == 5 * 128 * 128 * 4


def test_a_header_without_the_fast_kernels_is_timed_without_them() -> None:
    fifteen = [name for name in ENTRIES if "warp_multi" not in name and "slots_warp" not in name and "step" not in name]
    names = {case.name for group in groups_of([], [8], [1], 2, fifteen) for case in group.cases}
    assert CHAIN in names
    assert "fc_ssm_decode_step" not in names


def test_the_executor_counts_slots_and_compares_bits(run: Run) -> None:
    ran = run(ROOT, "bench", "--device", "cpu", "--positions", "16", "--users", "2", "--heads", "2", "--format", "json")
    assert ran.code == 0, ran.out
    (report,) = ran.json["extra"]["bench"]
    by_case = {each["case"]: each for each in report["slots"]}
    assert by_case["fc_ssm_recurrence_slots"]["per_row"] == pytest.approx(860, abs=1)
    assert by_case["fc_ssm_recurrence_slots_warp, 8 rows a warp, 32 threads"]["per_row"] < 60
    assert by_case["fc_ssm_recurrence_seq_warp_multi, 8 rows a warp"]["same_bits"] is True
    assert by_case["fc_ssm_recurrence_seq_warp_multi, 4 rows a warp"]["same_bits"] is True
    assert by_case["fc_ssm_decode_step"]["same_bits"] is True
    assert by_case["fc_ssm_recurrence_seq"]["same_bits"] is None
    assert report["estimate"] is True


def test_heads_and_users_are_scaled_from_a_few(run: Run) -> None:
    def slots(*arguments: str) -> float:
        ran = run(ROOT, "bench", "fc_ssm_recurrence_slots_warp", "--device", "cpu", "--format", "json", *arguments)
        return float(ran.json["extra"]["bench"][0]["slots"][0]["slots"])

    assert slots("--users", "64", "--heads", "32") == 64 * 16 * slots("--users", "1", "--heads", "2")


def test_other_bits_are_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case with kernel 13's y among its outputs: it is regrouped, and so differs."""
    made = cases.decode

    def careless(users: int, heads: int) -> cases.Group:
        group = made(users, heads)
        group.cases = [
            cases.Case(each.name, each.group, each.calls, ("s", "y"), each.rows, each.bytes) for each in group.cases
        ]
        return group

    monkeypatch.setattr(cases, "decode", careless)
    words = (
        "fc_ssm_recurrence_slots",
        "fc_ssm_recurrence_slots_2pass",
        "--device",
        "cpu",
        "--positions",
        "",
        "--users",
        "1",
    )
    ran = run(ROOT, "bench", *words)
    assert ran.code == 1
    assert "bench/bits-differ" in ran.out
    assert "DIFFERENT" in ran.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--positions", "a"), "--positions a: expected numbers"),
        (("--users", "0"), "--users 0: it may be 1 to 65535"),
        (("--device", "gpu"), "--device gpu: expected"),
    ],
)
def test_bad_words_are_errors(run: Run, words: tuple[str, ...], says: str) -> None:
    ran = run(ROOT, "bench", *words)
    assert ran.code == 2
    assert says in ran.err


def test_no_header_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ssmtool.toml").write_text('[[module]]\nsource = "k.cu"\n')
    assert run(tmp_path, "bench", "--device", "cpu").code == 2
