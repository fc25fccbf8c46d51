"""Every piece is answered, whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import time

import pytest
from cluster.conftest import Join, local_workers, pid_of
from cluster.pieces import broken, deadly, doubled, slow

from ssmtool.cluster import Calls, Cluster, NoWorkerError, Patience


def test_pieces_in_any_number_are_answered_as_they_come(cluster: Cluster) -> None:
    answers = list(cluster.sweep(Calls(doubled), [(at,) for at in range(300)], seconds=0.001))
    assert sorted(each.value[0] for each in answers) == [2 * at for at in range(300)]
    assert {each.error for each in answers} == {None}
    assert list(cluster.sweep(Calls(doubled), [])) == []


def test_a_function_that_falls_over_is_the_answer_of_its_piece_alone(cluster: Cluster) -> None:
    answers = {each.piece.number: each for each in cluster.sweep(Calls(broken), [(at,) for at in range(4)])}
    assert [answers[at].value for at in (0, 2, 3)] == [-1, 1, 0]
    assert "ZeroDivisionError" in (answers[1].error or "")


def test_a_worker_that_is_killed_half_way_loses_nothing(cluster: Cluster, notes: list[str]) -> None:
    victim = local_workers(cluster)[0]
    pid = pid_of(cluster, victim)
    answers = []
    for answer in cluster.sweep(Calls(slow), [(at,) for at in range(40)], seconds=0.1):
        answers.append(answer)
        if len(answers) == 12:
            os.kill(pid, signal.SIGKILL)
    assert sorted(each.value[0] for each in answers) == [2 * at for at in range(40)]
    assert len({each.value[1] for each in answers}) >= 2
    assert any("has gone" in words for words in notes)


def test_a_piece_that_ends_its_workers_is_given_up_and_its_neighbours_are_not(cluster: Cluster) -> None:
    local_workers(cluster)
    answers = {
        each.piece.number: each for each in cluster.sweep(Calls(deadly), [(at,) for at in range(6)], seconds=0.01)
    }
    assert {at: each.value for at, each in answers.items() if each.error is None} == {0: 0, 1: 1, 2: 2, 4: 4, 5: 5}
    assert "even with nothing else to do" in (answers[3].error or "")


def test_workers_with_another_resource_get_nothing(cluster: Cluster, notes: list[str], join: Join) -> None:
    with join("bystander", "FAKE=1") as bystander:
        its = pid_of(cluster, bystander)
        answers = list(cluster.sweep(Calls(slow), [(at,) for at in range(12)], seconds=0.1))
        assert its not in {each.value[1] for each in answers}
        assert {each.value[1] for each in cluster.sweep(Calls(doubled), [(1,)], "FAKE")} == {its}
        with pytest.raises(NoWorkerError, match=r"has the resource GPU; there is .*1 with FAKE=1"):
            hurried(cluster, "GPU")
    assert not notes


def hurried(cluster: Cluster, resource: str) -> None:
    """One piece, by who does not wait for workers to come."""
    patience, cluster._patience = cluster._patience, Patience(start=0.2, again=1)
    try:
        list(cluster.sweep(Calls(doubled), [(1,)], resource))
    finally:
        cluster._patience = patience


def test_a_worker_of_another_version_is_refused_also_when_it_joins_later(
    cluster: Cluster, notes: list[str], join: Join
) -> None:
    other = "import ssmtool.cluster.identity as it\nit.sources_hash = lambda: 'f' * 64\n"
    answers = []
    with join("old", "LATE=1", preload=other):
        with pytest.raises(
            NoWorkerError, match=r"1 that cannot be used.*worker old on 127.0.0.1 is refused: its ssmtool"
        ):
            hurried(cluster, "LATE")
        answers = list(cluster.sweep(Calls(doubled), [(1,)]))
    assert answers[0].value[0] == 2
    assert "its files have the hash ffffffffffff" in notes[0]


def test_when_the_last_worker_has_gone_the_rest_is_answered_in_bounded_time(cluster: Cluster, join: Join) -> None:
    patience, cluster._patience = cluster._patience, Patience(start=60, again=1)
    try:
        with join("alone", "ALONE=1") as alone:
            pid = pid_of(cluster, alone)
            answers = []
            for answer in cluster.sweep(Calls(slow), [(at,) for at in range(30)], "ALONE", seconds=0.4):
                answers.append(answer)
                if len(answers) == 2:
                    os.kill(pid, signal.SIGKILL)
                    killed = time.monotonic()
    finally:
        cluster._patience = patience
    assert time.monotonic() - killed < 20
    assert sorted(each.piece.number for each in answers) == list(range(30))
    left = [each.error for each in answers if each.error]
    assert len(left) >= 25
    assert "no worker of the local cluster of 2 has the resource ALONE" in left[-1]


def test_who_leaves_early_leaves_nothing_behind(cluster: Cluster) -> None:
    for answer in cluster.sweep(Calls(slow), ((at,) for at in range(10_000)), seconds=0.1):
        if answer.piece.number >= 4:
            break
    assert not cluster._link._futures
    assert [each.value[0] for each in cluster.sweep(Calls(doubled), [(5,)])] == [10]
