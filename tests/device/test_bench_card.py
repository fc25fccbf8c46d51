"""`ssmtool bench` on a card, over the fake driver, whose kernels run on the executor and take half a millisecond."""

from __future__ import annotations

import pytest
from device.fake import FakeDriver

from conftest import ROOT, Run

SMALL = ("--device", "ctypes:0", "--heads", "2", "--positions", "3", "--users", "1", "--repeat", "2", "--warmup", "1")


@pytest.fixture(autouse=True)
def _small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.bench.card._FILLER", 1 << 16)
    monkeypatch.setattr("ssmtool.bench.card._COPY", 1 << 16)


def test_every_case_is_timed_and_its_bits_compared(run: Run, fake: FakeDriver) -> None:
    ran = run(ROOT, "bench", *SMALL, "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    (report,) = ran.json["extra"]["bench"]
    timings = report["timings"]
    assert {each["group"] for each in timings} == {"prefill, 3 positions", "decode, 1 user", "decode step, 1 user"}
    assert [each["same_bits"] for each in timings].count(None) == 3
    assert not [each["case"] for each in timings if each["same_bits"] is False]
    assert {each["median_us"] for each in timings} == {500.0}
    assert all(each["repeats"] == 2 for each in timings)
    assert report["copy_bytes_per_second"] == pytest.approx(2 * (1 << 16) / 0.5e-3)
    step = next(each for each in timings if each["case"] == "fc_ssm_decode_step")
    assert step["bytes_per_second"] == pytest.approx(step["bytes"] / 0.5e-3)
    assert fake.left() == (0, 0, 0)


def test_a_kernel_with_other_bits_is_a_finding(run: Run, fake: FakeDriver) -> None:
    """Each launch turns one more bit of the state, and the outputs are put back before each run, so runs agree."""
    words = ("fc_ssm_recurrence_slots", "fc_ssm_decode_step", *SMALL)
    fake.flips = [(0, 5)]
    assert run(ROOT, "bench", *words, "single kernels").code == 1


def test_a_fault_on_the_card_is_told_and_ends_it(run: Run, fake: FakeDriver) -> None:
    fake.answers = [700]
    ran = run(ROOT, "bench", "fc_ssm_recurrence_seq", *SMALL)
    assert ran.code in (1, 2)
    assert "fc_ssm" in ran.err or "prefill" in ran.err


def test_the_launches_of_a_vector_are_timed_from_their_offsets(run: Run, fake: FakeDriver) -> None:
    """Chunks begin in the middle of q, k, v and y, so a wrong address makes wrong numbers."""
    ran = run(ROOT, "bench", str(ROOT / "golden/recurrence/chunks.npz"), "sigmoid/n257", *SMALL, "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    timings = ran.json["extra"]["bench"][0]["timings"]
    assert len(timings) > 2
    assert all(each["right"] is True and each["operations_per_second"] is None for each in timings)
    assert fake.left() == (0, 0, 0)


def test_a_wrong_vector_on_the_card_is_a_finding(run: Run, fake: FakeDriver) -> None:
    fake.flips = [(0, 3)]
    ran = run(ROOT, "bench", "sigmoid/n257", *SMALL)
    assert ran.code == 1
    assert "bench/wrong-numbers" in ran.out
