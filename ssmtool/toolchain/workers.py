"""A pool of threads that run compilers, and end with their compilers when the user stops ssmtool."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import NoReturn

_STOPPING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_thread = threading.local()


class Children:
    """The child processes of one pool. Each leads a process group, which a signal to ssmtool does not reach."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def add(self, child: subprocess.Popen[str]) -> None:
        """Take the child in; one that starts after `stop()` is killed at once."""
        with self._lock:
            self._running.add(child)
            if self._stopped:
                kill_group(child)

    def remove(self, child: subprocess.Popen[str]) -> None:
        """The child has ended by itself."""
        with self._lock:
            self._running.discard(child)

    def stop(self) -> None:
        """Kill every child with all that it started."""
        with self._lock:
            self._stopped = True
            for child in self._running:
                kill_group(child)


def children_of_thread() -> Children:
    """Where the running thread keeps its children: with its pool's, or alone."""
    found: Children | None = getattr(_thread, "children", None)
    return found if found is not None else Children()


def kill_group(child: subprocess.Popen[str]) -> None:
    """Kill the child and everything it started; its owner waits for it."""
    if child.returncode is not None:
        return  # waited for: its number may be another process's by now
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def worker_pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool whose children are killed when the block ends with an exception, Ctrl-C and SIGTERM included.

    The pool waits for its threads, and they wait for their compilers: without the killing, Ctrl-C would take effect
    only when the compiler is done.
    """
    children = Children()
    with ThreadPoolExecutor(threads, initializer=_adopt, initargs=(children,)) as pool, signals_as_exits():
        try:
            yield pool
        except BaseException:
            children.stop()
            raise


@contextlib.contextmanager
def signals_as_exits() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit in the block, so that temporary files and children are cleared away."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python hands signals to the main thread alone
        return
    old = {number: signal.signal(number, _exit) for number in _STOPPING if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    """Leave with the code that a shell gives a process killed by this signal."""
    raise SystemExit(128 + number)


def _adopt(children: Children) -> None:
    _thread.children = children
