"""Every mistake of the list fails the case that is there for it; the truth passes."""

from __future__ import annotations

import numpy as np
import pytest
from golden.checked_in import NAMES, case

from ssmtool.golden.compare import compare
from ssmtool.golden.mistakes import BY_NAME, MISTAKES, mistakes_for, rejected, run_mistaken
from ssmtool.golden.reference import KERNELS

PAIRS = [(name, mistake) for name in NAMES for mistake in case(name).meta.exposes]


@pytest.mark.parametrize(("name", "mistake"), PAIRS)
def test_the_mistake_fails_the_case(name: str, mistake: str) -> None:
    assert BY_NAME[mistake] in mistakes_for(case(name))
    assert rejected(case(name), BY_NAME[mistake])


def test_every_mistake_has_a_case() -> None:
    assert {mistake for _, mistake in PAIRS} == set(BY_NAME)


def test_every_mistake_can_be_made_by_some_kernel() -> None:
    for mistake in MISTAKES:
        assert any(mistake.fits(entry) for entry in KERNELS), mistake.name


def test_mistakes_differ_from_each_other() -> None:
    # Else a diagnosis would name the wrong one. At most the last two ulps may be shared by formulas that are equal.
    vector = case("qknorm/mistake-eps")
    results = [
        run_mistaken(vector, each)["qg"].tobytes() for each in mistakes_for(vector) if each.name.startswith("l2")
    ]
    assert len(set(results)) == len(results)


def test_grouped_heads_agree_in_the_first_and_last_head_only() -> None:
    vector = case("qknorm/mistake-grouped-heads")
    (wrong,) = [each for each in compare(vector, run_mistaken(vector, BY_NAME["grouped-heads"])) if each.name == "qg"]
    assert [group.label for group in wrong.bad_groups] == ["h=1", "h=2"]


def test_an_unfused_update_shows_only_where_it_cancels() -> None:
    exposing = [name for name in NAMES if "unfused-update" in case(name).meta.exposes]
    assert exposing == ["recurrence/mistake-unfused-update"]
    assert not rejected(case("recurrence/mistake-order"), BY_NAME["unfused-update"])


def test_rms_norm_blows_up_by_23_tokens() -> None:
    vector = case("recurrence/s128-t128")
    after = run_mistaken(vector, BY_NAME["rms-instead-of-l2"])["y"]
    assert np.abs(after[1]).max() < 1e3
    assert np.abs(after[23]).min() > 1e9


def test_nan_in_a_decode_step_stays_where_the_formulas_leave_it() -> None:
    after = case("decode-step/odd-values").after
    s, gated, history = after["s"][0], after["gated"][0, 0], after["conv_state"][0]
    assert {(h, j) for h, j, _ in np.argwhere(~np.isfinite(s)).tolist()} == {(0, 3), (1, 5)}
    assert [int((~np.isfinite(head)).sum()) for head in gated] == [128, 128, 0, 1]
    assert np.argwhere(~np.isfinite(history)).tolist() == [[512 + 3, 2], [512 + 128 + 5, 2]]
    users = case("decode-step/odd-users").after
    assert np.isnan(users["gated"][0, 0]).all() and np.isfinite(users["gated"][:, 1]).all()


def test_nan_stays_in_its_row_and_head() -> None:
    vector = case("recurrence/nan-s8")
    s, y = vector.after["s"], vector.after["y"]
    assert {(h, j) for h, j, _ in np.argwhere(np.isnan(s)).tolist()} == {(0, 2), (1, 3)}
    assert {(t, h) for t, h, _ in np.argwhere(np.isnan(y)).tolist()} == {(0, 0), (1, 0), (1, 1), (1, 2)}
    assert np.isnan(y[1, 2]).all() and not np.isnan(y[1, 3]).any()
