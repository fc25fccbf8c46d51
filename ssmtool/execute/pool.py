"""Threads that run compiled kernels. They are kept: starting one costs more than a small kernel.

A kernel releases the interpreter's lock for as long as it runs, so Python threads run kernels side by side.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

MOST_THREADS = 256
_limit = MOST_THREADS


def default_threads() -> int:
    """Threads that a launch takes when none are asked for: the CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _limit)
    return min(os.cpu_count() or 1, _limit)


def limit_threads(most: int) -> None:
    """From now on launches of this process take at most so many by default: several processes share the CPUs."""
    global _limit
    _limit = max(1, min(most, MOST_THREADS))


class _Batch:
    """Tasks that somebody waits for."""

    def __init__(self, tasks: Sequence[Callable[[], None]]) -> None:
        self._waiting = deque(tasks)
        self._left = len(tasks)
        self._lock = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()
        self.failure: BaseException | None = None

    def work(self) -> None:
        """Run one task, if one is left that nobody has begun."""
        try:
            task = self._waiting.popleft()
        except IndexError:
            return
        failure = None
        try:
            task()
        except BaseException as error:
            failure = error
        del task  # a waiting thread must not keep the memory of its last launch
        with self._lock:
            self._left -= 1
            self.failure = self.failure or failure
            last = self._left == 0
        if last:
            self._done.release()

    def wait(self) -> None:
        """Until the last task has ended. A signal's handler runs meanwhile, and what it raises comes out of here."""
        with self._done:
            pass


class Pool:
    """Worker threads that end with the process."""

    def __init__(self) -> None:
        # A batch is in it once for each of its tasks; once too often does no harm.
        self._queue: SimpleQueue[_Batch] = SimpleQueue()
        self._threads = 0
        self._lock = threading.Lock()

    def run(self, tasks: Sequence[Callable[[], None]], interrupt: Callable[[], None]) -> None:
        """Run all tasks, side by side as far as there are threads; return when the last has ended.

        When something is raised while waiting (KeyboardInterrupt, most of all), `interrupt` is called, which should
        make the tasks end soon, and the exception goes on after they have: no task outlives the call. A task's own
        exception is raised here.
        """
        self._grow(min(len(tasks), MOST_THREADS))
        batch = _Batch(tasks)
        try:
            self._hand_out(batch, len(tasks))
            batch.wait()
        except BaseException:
            while True:
                try:
                    interrupt()
                    # Which of them were handed out before the interrupt is not known: all again.
                    self._hand_out(batch, len(tasks))
                    batch.wait()
                    break
                except BaseException:  # a second Ctrl-C: the tasks still use the memory
                    continue
            raise
        if batch.failure is not None:
            raise batch.failure

    def _hand_out(self, batch: _Batch, times: int) -> None:
        for _ in range(times):
            self._queue.put(batch)

    def _grow(self, threads: int) -> None:
        with self._lock:
            while self._threads < threads:
                try:
                    threading.Thread(target=self._work, name="ssmtool-execute", daemon=True).start()
                except RuntimeError:  # no more threads for this process: those there are do the work
                    if self._threads:
                        return
                    raise
                self._threads += 1

    def _work(self) -> None:
        while True:
            self._queue.get().work()


_pool = Pool()


def shared_pool() -> Pool:
    """The process's pool."""
    return _pool


def _after_fork() -> None:
    """A child has none of its parent's threads."""
    global _pool
    _pool = Pool()


with contextlib.suppress(AttributeError):
    os.register_at_fork(after_in_child=_after_fork)
