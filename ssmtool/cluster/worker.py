"""What runs on a worker. Each of these is called by name, so both sides must have the same ssmtool.

The scheduler passes bytes on: what jobs and pieces are is known to workers and client alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ssmtool.cluster.identity import Identity, identity
from ssmtool.cluster.job import Job, Opened
from ssmtool.errors import SsmtoolError

# glibc's mallopt. The nanny of dask sets MALLOC_TRIM_THRESHOLD_ so low that every array of a few hundred KB comes from
# the kernel anew, page by page: five times the system time of a verification, measured.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM, _MMAP = 64 << 20, 32 << 20
# Jobs kept: those of clients that ended without saying so are forgotten in time.
_MOST_JOBS = 4


@dataclass
class Value:
    """What became of one piece: its value, or the sentence that says how it fell over."""

    value: Any = None
    crashed: str | None = None
    seconds: float = 0.0


@dataclass
class Reply:
    """What a worker sends back for a task. `values` are those of its first pieces; the others were not begun.

    `missing`: this process has no such job, as it was started anew. `problem`: it is out of use from now on.
    """

    worker: str
    values: list[Value] = field(default_factory=list)
    missing: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class Refusal:
    """Why a worker could not open a job. With `product` the PTX is at fault."""

    message: str
    fix: str | None = None
    product: bool = False


class _Held:
    """A job, opened for some resources. It is closed when it is over and the last piece that uses it has ended."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.opened: dict[str, Opened | Refusal] = {}
        self.users = 0
        self.over = False

    def leave(self) -> None:
        """Close what nobody uses any more. Under the lock."""
        if self.over and not self.users:
            self.job.close()


_jobs: OrderedDict[str, _Held] = OrderedDict()
_lock = threading.Lock()


def introduce() -> Identity:
    """Who this process is."""
    return identity()


async def install(key: str, job: bytes, resources: Sequence[str], threads: int) -> dict[str, Opened | Refusal]:
    """Have a job ready for each resource. `threads` is how many a launch of the executor may take here.

    In a thread: a driver may take seconds, and the worker has to answer its scheduler meanwhile.
    """
    return await asyncio.get_running_loop().run_in_executor(None, _install, key, job, resources, threads)


def _install(key: str, job: bytes, resources: Sequence[str], threads: int) -> dict[str, Opened | Refusal]:
    from ssmtool.execute.pool import limit_threads

    limit_threads(threads)
    _keep_memory()
    with _lock:
        held = _jobs.get(key)
        if held is None:
            held = _jobs[key] = _Held(pickle.loads(job))
            while len(_jobs) > _MOST_JOBS:
                _end(_jobs.popitem(last=False)[1])
        for resource in resources:
            if resource not in held.opened:
                held.opened[resource] = _open(held.job, resource)
        return dict(held.opened)


def _keep_memory() -> None:
    """Freed arrays are used again, as in a process that no nanny started."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):  # no glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _MMAP)
        mallopt(_M_TRIM_THRESHOLD, _TRIM)


def _open(job: Job, resource: str) -> Opened | Refusal:
    try:
        return job.open(resource)
    except SsmtoolError as error:
        return Refusal(str(error), error.hint, error.exit_code == 1)
    except Exception as error:  # whatever it is, this worker must not end for it
        return Refusal(f"{type(error).__name__}: {error}")


def perform(key: str, resource: str, pieces: bytes) -> bytes:
    """Do pieces, one after the other; a pickled Reply."""
    reply = Reply(_here())
    with _lock:
        held = _jobs.get(key)
        if held is not None and isinstance(held.opened.get(resource), Opened):
            _jobs.move_to_end(key)
            held.users += 1
        else:
            held = None
    if held is None:
        reply.missing = True
        return pickle.dumps(reply)
    try:
        for piece in pickle.loads(pieces):
            # Before and after: another task may have lost the card, and what it then cannot do others can.
            reply.problem = held.job.problem(resource)
            if reply.problem is not None:
                break
            reply.values.append(_value(held.job, resource, piece))
        reply.problem = held.job.problem(resource)
    finally:
        with _lock:
            held.users -= 1
            held.leave()
    return pickle.dumps(reply)


def _value(job: Job, resource: str, piece: Any) -> Value:
    started = time.perf_counter()
    value = Value()
    try:
        value.value = job.perform(resource, piece)
    except Exception as error:
        value.crashed = f"{type(error).__name__}: {error}"
    value.seconds = time.perf_counter() - started
    return value


def forget(key: str) -> None:
    """The run is over."""
    with _lock:
        if (held := _jobs.pop(key, None)) is not None:
            _end(held)


def _end(held: _Held) -> None:
    held.over = True
    held.leave()


def _here() -> str:
    from ssmtool.cluster.link import own_address

    return own_address()
