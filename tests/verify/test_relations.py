"""Relations: they cover every kernel, repeat for a seed, differ between seeds, and see what is not written."""

from __future__ import annotations

import numpy as np
import pytest
from verify.conftest import verified

from ssmtool.golden.case import poisoned
from ssmtool.golden.reference import KERNELS
from ssmtool.verify import Options, Text, all_relations
from ssmtool.verify.contract import ENTRIES, FAST_ENTRIES, Dims, call
from ssmtool.verify.loaded import Loaded
from ssmtool.verify.relations.bench import Bench
from ssmtool.verify.relations.draw import Draw


def bench() -> Bench:
    return Bench(Loaded.__new__(Loaded))


def test_every_kernel_stands_in_a_relation_and_every_rule_is_there() -> None:
    assert {entry for each in all_relations() for entry in each.entries} == set(ENTRIES) == {*KERNELS, *FAST_ENTRIES}
    assert {each.rule for each in all_relations()} == {f"R{number}" for number in range(1, 13)}
    assert len({each.name for each in all_relations()}) == len(all_relations())


def test_a_seed_draws_the_same_again_and_another_draws_other() -> None:
    one, again, other = (Draw(seed, "R1/recurrence", 1) for seed in (3, 3, 4))
    d = one.dims()
    assert d == again.dims()
    assert (one.state(d) == again.state(d)).all()
    assert (one.state(d) != other.state(d)).any()


@pytest.mark.parametrize("n", range(1, 13))
def test_chunks_make_up_the_whole_and_hold_short_ones(n: int) -> None:
    cuts = Draw(0, "cuts", n).cuts(n)
    assert sum(cuts) == n
    assert min(cuts) >= 1
    assert n < 3 or {1, 2} <= set(cuts) or n == 2


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_permutation_moves_something(count: int) -> None:
    for number in range(20):
        assert (Draw(0, "order", number).order("heads", count) != np.arange(count)).any()


def test_two_arrays_that_nobody_wrote_are_not_equal() -> None:
    found = bench()
    found.equal("y", poisoned((2, 3)), poisoned((2, 3)), "h j")
    assert "never written against never written" in found.unequal[0].message


def test_a_zero_of_the_other_sign_is_not_equal() -> None:
    found = bench()
    found.equal("y", np.array([0.0], np.float32), np.array([-0.0], np.float32), "h")
    assert found.unequal


def test_close_is_judged_head_by_head() -> None:
    want = np.array([[1e6, 1e6], [1.0, 1.0]], np.float32)
    found = bench()
    found.close("y", want + np.array([[0], [0.01]], np.float32), want, "h j", nmse=1e-11, max_rms=1e-4)
    assert "y[h=1, j=0]" in found.unequal[0].message


def test_a_store_where_nothing_may_be_stored_is_seen() -> None:
    array = poisoned((2, 2))
    array[1, 0] = 0
    found = bench()
    found.unwritten("y", array, "h j")
    assert "y[h=1, j=0]" in found.unequal[0].message


def test_arguments_follow_the_contract() -> None:
    names = ["s", "q", "k", "v", "g", "beta", "y"]
    launch = call("fc_ssm_recurrence_seq_warp", Dims(heads=4, n=3), dict.fromkeys(names))
    assert (launch.grid, launch.block, launch.shared_bytes) == ((32, 4, 1), (128, 1, 1), 24)
    assert launch.args[7:10] == (128, 4, 3)
    assert launch.args[10] == np.float32(128**-0.5)
    assert launch.args[11] is None


@pytest.mark.parametrize("seed", [1, 2])
def test_the_product_holds_them_for_other_seeds(text: Text, seed: int) -> None:
    names = frozenset(("R2/warp", "R6/convolution", "R7/warp", "R8/untouched-convolution", "R9/warp"))
    outcome = verified(text, (), *names, options=Options(names=names, rounds=2, seed=seed))
    assert len(outcome.results) == 10
    assert not outcome.failed
