"""The search: the same seed, the same launches; limits; failures that shrink to the simplest and stay what they are."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from fuzz.conftest import fuzzed

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz import Batch, Collector, Fuzzed, Limits, Plan, Subject, batches, run_batch
from ssmtool.fuzz.batch import BatchResult
from ssmtool.fuzz.choices import TAPE_BYTES, Choices
from ssmtool.fuzz.engine import Search
from ssmtool.fuzz.failure import Failure, Kind
from ssmtool.verify import Text


class Counting:
    """A target that launches nothing: `fails` says what is wrong with three numbers."""

    name, kernels = "numbers", ("numbers",)

    def __init__(self, fails: Callable[[int, int, int], Kind | None]) -> None:
        self.fails = fails
        self.drawn: list[tuple[int, int, int]] = []

    def draw(self, choices: Choices) -> tuple[int, int, int]:
        return tuple(choices.integer(name, 0, 1000) for name in "abc")  # type: ignore[return-value]

    def run(self, drawn: tuple[int, int, int], _loaded: object) -> Failure | None:
        self.drawn.append(drawn)
        kind = self.fails(*drawn)
        return None if kind is None else Failure("numbers", kind, ("numbers",), str(drawn), "wrong")

    def simplified(self, failure: Failure, _loaded: object, *, tries: int, until: float) -> Failure:
        return failure


def search(
    target: Counting, *, rounds: int = 60, seed: int = 7, limits: Limits | None = None, stop: Any = None
) -> Search:
    made = Search(target, None, limits or Limits(), stop or (lambda: False))  # type: ignore[arg-type]
    made.run(seed, rounds)
    made.simplify()
    return made


def test_the_same_seed_draws_the_same_rounds_and_another_seed_others() -> None:
    drawn = []
    for seed in (5, 5, 6):
        target = Counting(lambda *_: None)
        search(target, seed=seed)
        drawn.append(target.drawn)
    assert drawn[0] == drawn[1]
    assert drawn[0][1:] != drawn[2][1:]
    assert len(set(drawn[0])) > 50


def test_a_failure_is_shrunk_to_the_least_numbers() -> None:
    done = search(Counting(lambda a, _b, c: Kind("value", "x") if a > 300 and c >= 17 else None))
    assert done.failure is not None
    assert done.failure.choices == {"a": 301, "b": 0, "c": 17}


def test_shrinking_does_not_slip_to_another_kind() -> None:
    """Small numbers fail in another way, and that is not what was found first."""
    kinds: list[str] = []

    def fails(a: int, _b: int, _c: int) -> Kind | None:
        kind = Kind("value", "x") if a > 300 else Kind("bits", "y") if 0 < a < 20 else None
        if kind is not None and not kinds:
            kinds.append(kind.what)
        return kind

    done = search(Counting(fails))
    assert done.failure is not None
    assert done.failure.kind.what == kinds[0]
    assert done.failure.choices["a"] == (301 if kinds[0] == "value" else 1)


def test_shrinking_ends_after_its_tries_and_keeps_what_it_has() -> None:
    target = Counting(lambda a, _b, _c: Kind("value", "x") if a > 300 else None)
    done = search(target, limits=Limits(tries=5))
    assert done.failure is not None
    assert done.at is not None
    assert len(target.drawn) <= done.at + 5


def test_time_that_is_up_ends_the_search_and_runs_nothing_more() -> None:
    target = Counting(lambda *_: None)
    search(target, rounds=500, stop=lambda: len(target.drawn) >= 9)
    assert len(target.drawn) == 9


def test_what_cannot_be_judged_is_a_problem_and_no_failure() -> None:
    def fails(a: int, _b: int, _c: int) -> Kind | None:
        if a > 100:
            raise SsmtoolError("no such kernel")
        return None

    done = search(Counting(fails))
    assert done.failure is None
    assert str(done.problem) == "no such kernel"


def test_an_interruption_keeps_the_smallest_failure_so_far() -> None:
    calls: list[int] = []

    def fails(a: int, _b: int, _c: int) -> Kind | None:
        calls.append(a)
        if len([each for each in calls if each > 300]) > 3:
            raise KeyboardInterrupt
        return Kind("value", "x") if a > 300 else None

    made = Search(Counting(fails), None, Limits(), lambda: False)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        made.run(7, 60)
    assert made.failure is not None


def test_a_failure_that_does_not_fail_again_has_failed_all_the_same() -> None:
    calls: list[int] = []

    def fails(a: int, _b: int, _c: int) -> Kind | None:
        calls.append(a)
        return Kind("race", "line 1") if len(calls) == 12 else None

    done = search(Counting(fails))
    assert done.failure is not None
    assert done.at == 12


def test_choices_beyond_the_bytes_are_the_simplest_and_all_are_within_their_bounds() -> None:
    choices = Choices(b"\xff" * 4)
    assert choices.integer("low", 3, 3) == 3
    assert [choices.integer("wide", 0, 70000), choices.integer("beyond", 5, 9)] == [0xFFFFFF00 % 70001, 5]
    assert choices.pick("first", ["a", "b"]) == "a"
    assert not choices.rarely("rare", 16)
    with pytest.raises(ValueError, match="no integer from 2 to 1"):
        choices.integer("none", 2, 1)
    assert len(Choices(bytes(TAPE_BYTES)).made) == 0


def test_nothing_is_left_in_the_current_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    search(Counting(lambda *_: None))
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------- batches and their results


def test_a_batch_and_its_result_can_be_sent_and_do_not_depend_on_the_process(text: Text) -> None:
    subject = Subject(((text.module.text, {}),), sizes=(2,))
    batch = Batch(subject, "fc_sigmoid", 3, 42, 15)
    here = run_batch(pickle.loads(pickle.dumps(batch)))
    assert pickle.loads(pickle.dumps(here)).rounds == here.rounds == 15
    code = (
        "import pickle, sys; from ssmtool.fuzz import run_batch; "
        "r = run_batch(pickle.load(sys.stdin.buffer)); print(r.rounds, r.failure, r.problem)"
    )
    there = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(batch), capture_output=True, check=True, timeout=120
    )
    assert there.stdout.split() == b"15 None None".split()


def test_batches_go_through_all_targets_before_the_second_of_one_and_end_with_the_rounds() -> None:
    plan = Plan(Subject(()), ("a", "b"), 1, rounds=45)
    order = [(each.target, each.index, each.rounds) for each in batches(plan)]
    assert order == [("a", 0, 10), ("b", 0, 10), ("a", 1, 20), ("b", 1, 20), ("a", 2, 15), ("b", 2, 15)]
    several = Plan(Subject(()), ("a", "b"), 1, ("cuda:0", "cuda:1"), rounds=10)
    assert [each.device for each in batches(several)] == ["cuda:0", "cuda:1"]
    every = Plan(Subject(()), ("a",), 1, ("cpu", "cuda:0"), rounds=10, share=False)
    assert [each.device for each in batches(every)] == ["cpu", "cuda:0"]
    assert len({each.stream for each in batches(plan)}) == 6


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)])
def test_the_order_in_which_results_come_does_not_matter(order: tuple[int, ...]) -> None:
    def failure(what: str) -> Failure:
        return Failure("a", Kind(what, "x"), ("a",), "", "")

    results = [
        BatchResult("a", 0, "cpu", rounds=10),
        BatchResult("a", 1, "cpu", rounds=4, at=4, failure=failure("value")),
        BatchResult("a", 2, "cpu", rounds=2, at=2, failure=failure("unwritten")),
        BatchResult("b", 0, "cpu", rounds=10),
    ]
    found = Fuzzed(Plan(Subject(()), ("a", "b"), 1))
    collector = Collector(found)
    for number in order:
        collector.add(results[number])
    assert found.rounds == {"a": 14, "b": 10}
    assert [(each.failure.kind.what, each.round) for each in found.found] == [("value", 14)]
    assert found.closed("a", "cpu")
    assert not found.closed("b", "cpu")


def test_what_another_target_has_shown_is_told_once() -> None:
    found = Fuzzed(Plan(Subject(()), ("k", "R2/warp", "other"), 1))
    collector = Collector(found)
    collector.add(
        BatchResult("R2/warp", 0, "cpu", 1, at=1, failure=Failure("R2/warp", Kind("bits", "y"), ("k",), "", ""))
    )
    collector.add(BatchResult("k", 0, "cpu", 1, at=1, failure=Failure("k", Kind("value", "s"), ("k",), "", "")))
    collector.add(BatchResult("other", 0, "cpu", 1, at=1, failure=Failure("other", Kind("bits", "s"), ("k",), "", "")))
    assert [(each.failure.target, each.also) for each in found.found] == [("k", ["R2/warp", "other"])]


def test_the_time_limit_is_kept(text: Text) -> None:
    started = time.monotonic()
    found = fuzzed(text, "fc_sigmoid", rounds=10**6, seconds=1.5)
    # One round may still compile its kernel.
    assert time.monotonic() - started < 10
    assert found.ended == "time"
    assert found.total >= 1


def test_a_batch_without_time_for_its_rounds_is_no_whole_run(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    # The last batch of all: no later one meets the end of the time.
    monkeypatch.setattr("ssmtool.fuzz.run.warm", lambda *_: None)
    late = BatchResult("fc_sigmoid", 0, "cpu", rounds=0, seconds=60.0)
    monkeypatch.setattr("ssmtool.fuzz.run.run_batch", lambda _batch: late)
    found = fuzzed(text, "fc_sigmoid", rounds=5, seconds=60.0)
    assert found.total == 0
    assert found.ended == "time"


def test_enough_failures_end_the_run(edited: Callable[..., str]) -> None:
    wrong = edited("fc_sigmoid", "neg.f32", "mov.f32")
    found = fuzzed(wrong, "fc_sigmoid", "fc_ssm_decay_gate", rounds=20, most=1)
    assert found.ended == "failures"
    assert "fc_ssm_decay_gate" not in found.rounds
