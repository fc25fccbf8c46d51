"""Hands pieces of work to workers and gives back what became of each, as it comes.

Every piece is answered: by its value, or by the sentence that says why it was not done. Who hands out no more than the
workers run, and one task each in front of them, can stop at any time and leaves nothing behind.

A worker that ends takes its tasks along; the scheduler gives them to others. A task whose workers keep ending is
suspected: in the end each of its pieces runs while nothing else does, and only one that goes on ending workers is given
up.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssmtool.cluster import worker as remote
from ssmtool.cluster.crew import Crew, Patience
from ssmtool.cluster.link import Ended, LinkError

_TICK_S = 0.2
# One that runs, and one that waits for it.
_AHEAD = 2
# Times that a task is given to workers that then are not there, beside those that the scheduler sees to.
_MOST_TRIES = 5


@dataclass(frozen=True)
class Piece:
    """`load` is what the job's `perform` is given; `number` is for who asks."""

    number: int
    load: Any


@dataclass(frozen=True)
class Answer:
    """What became of a piece. `error` says why it was not done; `worker` is who did it, in words."""

    piece: Piece
    lane: int
    value: Any = None
    error: str | None = None
    worker: str = ""
    seconds: float = 0.0


@dataclass
class Lane:
    """Tasks, of several pieces each, for workers with one resource; with `among` for these alone."""

    resource: str
    tasks: Iterator[Sequence[Piece]]
    among: frozenset[str] | None = None


@dataclass
class _Task:
    lane: int
    pieces: tuple[Piece, ...]
    tries: int = 0
    ended: int = 0
    alone: bool = False
    workers: frozenset[str] = frozenset()


@dataclass
class _State:
    """What a lane has left. `since` is when the last worker for it was gone."""

    again: deque[_Task] = field(default_factory=deque)
    suspects: deque[_Task] = field(default_factory=deque)
    running: int = 0
    exhausted: bool = False
    since: float | None = None


class Sweep:
    """One pass over the tasks of some lanes: `for answer in sweep`. Ends its tasks when it is left early."""

    def __init__(self, crew: Crew, lanes: Sequence[Lane], patience: Patience | None = None) -> None:
        self._crew = crew
        self._lanes = list(lanes)
        self._states = [_State() for _ in lanes]
        self._patience = patience or Patience()
        self._running: dict[int, _Task] = {}
        self._stopped = False

    def stop(self) -> None:
        """Hand out no more; what runs is still answered."""
        self._stopped = True

    def __iter__(self) -> Iterator[Answer]:
        try:
            while True:
                self._crew.look()
                yield from self._take_back()
                for number in range(len(self._lanes)):
                    self._hand_out(number)
                    yield from self._give_up(number)
                if self._done():
                    self._crew.last_look()
                    return
                if (ended := self._crew.next_event(_TICK_S)) is not None:
                    yield from self._answers(ended)
        finally:
            self._crew.link.drop(list(self._running))
            self._running.clear()

    def _done(self) -> bool:
        if self._running:
            return False
        return self._stopped or all(
            state.exhausted and not state.again and not state.suspects for state in self._states
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------- handing out

    def _hand_out(self, number: int) -> None:
        lane, state = self._lanes[number], self._states[number]
        if self._stopped or self._crew.silent:
            return
        workers = self._crew.ready(lane.resource, lane.among)
        room = _AHEAD * sum(each.slots(lane.resource) for each in workers)
        while state.running < room and not self._crew.silent and (task := self._next(number)) is not None:
            self._submit(task, [each.address for each in workers])
        if state.suspects and state.exhausted and not state.again and not self._running:
            # As of now: one that has just ended is no proof against the next.
            self._crew.look(now=True)
            if workers := self._crew.ready(lane.resource, lane.among):
                self._submit(state.suspects.popleft(), [workers[0].address])

    def _next(self, number: int) -> _Task | None:
        state = self._states[number]
        if state.again:
            return state.again.popleft()
        if not state.exhausted and (pieces := next(self._lanes[number].tasks, None)) is not None:
            return _Task(number, tuple(pieces))
        state.exhausted = True
        return None

    def _submit(self, task: _Task, workers: list[str]) -> None:
        resource = self._lanes[task.lane].resource
        loads = pickle.dumps([piece.load for piece in task.pieces])
        task.workers = frozenset(workers)
        try:
            number = self._crew.link.submit(
                remote.perform, self._crew.key, resource, loads, workers=workers, resource=resource,
                tell=self._crew.events.put,
            )  # fmt: skip
        except LinkError:
            if not self._crew.link.closed:
                raise
            # The scheduler has gone since it was last asked: back, to be given up with the rest.
            state = self._states[task.lane]
            (state.suspects if task.alone else state.again).appendleft(task)
            self._crew.look(now=True)
            return
        self._running[number] = task
        self._states[task.lane].running += 1

    # ------------------------------------------------------------------------------------------------------ answers

    def _answers(self, ended: Ended) -> Iterator[Answer]:
        task = self._running.pop(ended.number, None)
        if task is None:
            return  # one that was taken back
        self._states[task.lane].running -= 1
        self._crew.link.drop([ended.number])
        if ended.cancelled:
            yield from self._once_more(task, "the scheduler dropped it")
        elif ended.deadly:
            if task.alone:
                yield from self._refuse(task, f"{ended.error}, even with nothing else to do")
            else:
                suspects = (_Task(task.lane, (piece,), alone=True) for piece in task.pieces)
                self._states[task.lane].suspects += suspects
        elif ended.error is not None:
            yield from self._refuse(task, f"it could not be run: {ended.error}")
        else:
            yield from self._values(task, pickle.loads(ended.value))

    def _values(self, task: _Task, reply: remote.Reply) -> Iterator[Answer]:
        name = self._crew.name(reply.worker)
        for piece, value in zip(task.pieces, reply.values, strict=False):
            error = None if value.crashed is None else f"ssmtool fell over on worker {name}: {value.crashed}"
            yield Answer(piece, task.lane, value.value, error, name, value.seconds)
        if reply.missing:
            self._crew.again(reply.worker)
        if reply.problem is not None:
            self._crew.exclude(reply.worker, reply.problem)
        if rest := task.pieces[len(reply.values) :]:
            left = _Task(task.lane, rest, task.tries, task.ended, alone=task.alone)
            yield from self._once_more(left, reply.problem or f"worker {name} was started anew")

    def _once_more(self, task: _Task, why: str) -> Iterator[Answer]:
        """Back to the front of what is left, unless that has happened too often."""
        task.tries += 1
        if task.tries > _MOST_TRIES:
            yield from self._refuse(task, f"given to workers {task.tries} times in vain, the last time: {why}")
        elif task.alone:
            self._states[task.lane].suspects.appendleft(task)
        else:
            self._states[task.lane].again.appendleft(task)

    def _refuse(self, task: _Task, why: str) -> Iterator[Answer]:
        for piece in task.pieces:
            yield Answer(piece, task.lane, error=why)

    def _take_back(self) -> Iterator[Answer]:
        """Tasks of which no worker is left that might do them: the scheduler would keep them for ever."""
        for number, task in list(self._running.items()):
            lane = self._lanes[task.lane]
            if task.workers & {each.address for each in self._crew.ready(lane.resource, lane.among)}:
                continue
            del self._running[number]
            self._states[task.lane].running -= 1
            self._crew.link.drop([number])
            task.ended += 1
            if task.alone and task.ended > 1:
                yield from self._refuse(task, "workers end when they run it, even with nothing else to do")
            else:
                yield from self._once_more(task, "its workers have gone")

    def _give_up(self, number: int) -> Iterator[Answer]:
        """Nobody has been there for too long, or nobody ever can be: what is left of the lane is not done."""
        lane, state = self._lanes[number], self._states[number]
        if self._crew.silent < self._patience.again:
            if self._crew.ready(lane.resource, lane.among) or self._stopped:
                state.since = None
                return
            state.since = state.since or time.monotonic()
            waited = time.monotonic() - state.since
            patience = self._patience.ready if self._crew.coming(lane.resource) else self._patience.again
            if waited < patience and not self._crew.at_fault(lane.resource) and lane.among is None:
                return
        else:
            waited = self._crew.silent
        why = self._crew.missing(lane.resource)
        why += f", for {waited:.0f} s" if waited < float("inf") else ""
        for running, task in [each for each in self._running.items() if each[1].lane == number]:
            del self._running[running]
            state.running -= 1
            self._crew.link.drop([running])
            yield from self._refuse(task, why)
        while (left := self._next(number)) is not None:
            yield from self._refuse(left, why)
        while state.suspects:
            yield from self._refuse(state.suspects.popleft(), why)
