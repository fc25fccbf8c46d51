"""One thread for each card: a context is current in one thread, and a hanging card must not take the others along."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as _FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs calls one after the other in a thread of its own.

    The thread is a daemon: one that is stuck inside the driver cannot keep the process from ending.
    """

    def __init__(self, name: str) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def call(self, task: Callable[[], T], timeout_s: float | None = None) -> T:
        """The task's result, or what it raised. Raises TimeoutError when it takes longer; it then still runs."""
        future: Future[T] = Future()
        self._tasks.put((future, task))
        try:
            return future.result(timeout_s)
        except _FutureTimeout:
            if future.done():
                raise  # the task's own
            raise TimeoutError from None

    def end(self, timeout_s: float) -> None:
        """Let the thread end after what it was given."""
        self._tasks.put(None)
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while (given := self._tasks.get()) is not None:
            future, task = given
            try:
                future.set_result(task())
            except BaseException as error:  # it belongs to the caller, whatever it is
                future.set_exception(error)
            # Nothing of a task is kept until the next: it may hold gigabytes of arrays.
            del future, task, given
