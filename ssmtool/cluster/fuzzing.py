"""Fuzzing on a cluster: batches of rounds, which depend on nothing but themselves, by whoever is free.

A failure is shrunk on the worker that found it. The results are put together as on one machine, whatever their order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from ssmtool.cluster.job import Job, Opened
from ssmtool.cluster.resources import Wanted, start_command
from ssmtool.cluster.session import Cluster
from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.batch import Batch, BatchResult, Subject, close, device_problem, run_batch
from ssmtool.fuzz.run import Collector, Fuzzed, Listener, Plan, batches, cut_short

# Of a batch, before one is known.
_BATCH_S = 0.4

_open = 0
_lock = threading.Lock()


class Fuzzing(Job):
    """The job: the subject once, then batches without it."""

    def __init__(self, subject: Subject, wanted: Sequence[Wanted]) -> None:
        self._subject = subject
        self._words = {each.resource: each.word for each in wanted}
        self._hypothesis = version("hypothesis")
        self._counted = False

    def open(self, resource: str) -> Opened:
        """Look at the device: it is opened by the first batch. Raises SsmtoolError for another hypothesis too."""
        from ssmtool.device import open_devices

        # The same seed gives the same rounds with the same release only.
        if (here := version("hypothesis")) != self._hypothesis:
            raise SsmtoolError(f"its hypothesis is {here}, that of who asks {self._hypothesis}")
        with open_devices(self._words[resource]) as devices:
            if len(devices) != 1:
                raise SsmtoolError(
                    f"it sees {len(devices)} cards: start one worker for each", hint=start_command(resource)
                )
            model = str(devices[0]).partition(" ")[2].strip("()")
        if not self._counted:
            self._counted = True
            _count(1)
        return Opened(model)

    def perform(self, resource: str, piece: Any) -> BatchResult:
        """A batch, which came without its subject."""
        return run_batch(Batch(self._subject, *piece))

    def problem(self, resource: str) -> str | None:
        """Of a card after a fatal error."""
        return device_problem(self._subject, self._words[resource])

    def close(self) -> None:
        """Devices are shared by all fuzzing of a process: the last one lets go of them."""
        if self._counted:
            self._counted = False
            _count(-1)


def _count(change: int) -> None:
    global _open
    with _lock:
        _open += change
        if not _open:
            close()


def fuzz_on_cluster(cluster: Cluster, plan: Plan, wanted: Sequence[Wanted], listener: Listener | None = None) -> Fuzzed:
    """As `ssmtool.fuzz.fuzz`, on the workers that have what is wanted; several run everything each.

    A batch that no worker could do is a problem of its target. Raises NoWorkerError and LinkError.
    """
    found = Fuzzed(plan)
    started = time.monotonic()
    collected = Collector(found)
    loads = [(each.resource, _loads(plan, each, found, started)) for each in wanted]
    answers = cluster.sweeps(Fuzzing(plan.subject, wanted), loads, seconds=_BATCH_S)
    try:
        for answer in answers:
            result = answer.value
            if answer.error is not None:
                target, index, *_ = answer.piece.load
                device = wanted[answer.lane].word
                result = BatchResult(target, index, device, problem=answer.error, fix="run it again")
            collected.add(result)
            _, _, _, rounds, _, _, seconds = answer.piece.load
            if cut_short(result, rounds, seconds):
                found.ended = "time"
            found.seconds = time.monotonic() - started
            if listener is not None:
                listener(result, found)
            if len(found.found) >= plan.most:
                found.ended = "failures"
                break
    except KeyboardInterrupt:
        found.ended = "interrupted"
    finally:
        answers.close()
    found.seconds = time.monotonic() - started
    return found


def _loads(plan: Plan, wanted: Wanted, found: Fuzzed, started: float) -> Iterator[tuple[Any, ...]]:
    """Batches as they are needed, until the time is up: target, index, seed, rounds, device, limits, seconds."""
    for batch in batches(replace(plan, devices=(wanted.word,)), found.closed):
        timed = plan.seconds is not None and not (plan.first_whole and batch.index == 0)
        left = plan.seconds - (time.monotonic() - started) if timed and plan.seconds is not None else None
        if left is not None and left <= 0:
            found.ended = "time"
            return
        yield batch.target, batch.index, batch.seed, batch.rounds, batch.device, batch.limits, left
