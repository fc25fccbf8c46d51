"""A scheduler that goes away, and cards that do: what is left is answered, by a link that only pretends."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from ssmtool.cluster.crew import Crew, Patience
from ssmtool.cluster.identity import identity
from ssmtool.cluster.job import Calls, Opened
from ssmtool.cluster.link import Ended, Link, LinkError, WorkerFacts
from ssmtool.cluster.sweep import Answer, Lane, Piece, Sweep
from ssmtool.cluster.where import parse_where
from ssmtool.cluster.worker import Reply, Value, install, introduce

PATIENCE = Patience(start=1, again=0.5, ready=1)


class Pretended(Link):
    """Two workers that answer in this process; `answer` says what becomes of a task on the first of its workers."""

    def __init__(self, answer: Callable[[str, list[Any]], Reply | None]) -> None:
        self.where = parse_where("tcp://scheduler:8786")
        self.there = {name: WorkerFacts(name, name, "host", 1, {"GPU": 1}) for name in ("one", "two")}
        self.answer = answer
        self.gone = False
        self.given = 0

    @property
    def closed(self) -> bool:
        return self.gone

    def workers(self) -> dict[str, WorkerFacts]:
        if self.gone:
            raise LinkError("the scheduler at tcp://scheduler:8786 does not answer: it has gone")
        return self.there

    def ask(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if function is introduce:
            return identity()
        return {"GPU": Opened("a card")} if function is install else None

    def submit(self, function: Any, *arguments: Any, workers: Any, resource: str, tell: Any) -> int:
        if self.gone:
            raise LinkError("closed")
        self.given += 1
        reply = self.answer(workers[self.given % len(workers)], pickle.loads(arguments[2]))
        if reply is not None:
            tell(Ended(self.given, value=pickle.dumps(reply)))
        return self.given

    def drop(self, numbers: Any) -> None:
        return None


def answers(link: Pretended, count: int = 20) -> tuple[list[Answer], Crew]:
    crew = Crew(link, Calls(int), ["GPU"])
    crew.gather(PATIENCE)
    lane = Lane("GPU", iter([[Piece(at, (at,))] for at in range(count)]))
    return list(Sweep(crew, [lane], PATIENCE)), crew


def done(worker: str, loads: list[Any]) -> Reply:
    return Reply(worker, [Value(each[0]) for each in loads])


def test_a_worker_whose_card_is_lost_gets_nothing_more_and_its_pieces_go_elsewhere() -> None:
    def answer(worker: str, loads: list[Any]) -> Reply:
        return Reply(worker, problem="an illegal memory access (700)") if worker == "one" else done(worker, loads)

    found, crew = answers(Pretended(answer))
    assert sorted(each.value for each in found) == list(range(20))
    assert {each.worker for each in found} == {"two on host"} or {each.worker for each in found} == {"two"}
    assert crew.notes == ["worker one gets nothing more: an illegal memory access (700)"]


def test_when_every_card_is_lost_the_rest_is_answered() -> None:
    found, crew = answers(Pretended(lambda worker, _loads: Reply(worker, problem="fell off the bus")))
    assert sorted(each.piece.number for each in found) == list(range(20))
    assert all("there is 2 that cannot be used, for " in (each.error or "") for each in found)
    assert len(crew.notes) == 2


def test_a_worker_that_was_started_anew_is_given_the_job_again() -> None:
    forgetful = {"one", "two"}

    def answer(worker: str, loads: list[Any]) -> Reply:
        if worker in forgetful:
            forgetful.remove(worker)
            return Reply(worker, missing=True)
        return done(worker, loads)

    found, _ = answers(Pretended(answer))
    assert sorted(each.value for each in found) == list(range(20))


@pytest.mark.parametrize("silent", [False, True], ids=["between two tasks", "with tasks in its hands"])
def test_a_scheduler_that_goes_leaves_answers(silent: bool) -> None:
    link: Pretended

    def answer(worker: str, loads: list[Any]) -> Reply | None:
        if link.given == 7:
            link.gone = True
        return None if silent and link.given > 4 else done(worker, loads)

    link = Pretended(answer)
    found, _ = answers(link)
    assert sorted(each.piece.number for each in found) == list(range(20))
    left = [each for each in found if each.error]
    assert len(left) >= 13
    assert all("does not answer: it has gone" in (each.error or "") for each in left)
