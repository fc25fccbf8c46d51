"""The one module that speaks to dask.distributed: typed outside, and quiet.

distributed logs to the terminal, warns, and retries for half a minute; here all of that becomes one sentence.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import shutil
import signal
import socket
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from queue import Empty, SimpleQueue
from typing import Any

from ssmtool.cluster.where import Where
from ssmtool.errors import SsmtoolError

CONNECT_S = 4.0
_ASK_S = 5.0
_CLOSE_S = 5.0
# Cases travel inside tasks, since data apart from them is lost with the worker that holds it: no warning for that.
_CONFIG = {"distributed.admin.large-graph-warning-threshold": "1TiB"}
# Of a cluster of one's own. A task is suspected when two workers have ended under it (dask's default is four), and
# nobody looks at the statistics, which take up to a twentieth of each processor.
_LOCAL = {
    "distributed.scheduler.allowed-failures": 1,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
# distributed serves metrics by HTTP in any case: where nobody else can reach them, and on a port that is free.
_HTTP = "127.0.0.1:0"
_START = "dask scheduler --no-dashboard"
# They have levels of their own in distributed's configuration, so silencing the first alone is not enough.
_LOGGERS = (
    "distributed", "distributed.client", "distributed.nanny", "distributed.worker", "distributed.scheduler",
    "distributed.core", "distributed.gc", "distributed.comm", "distributed.batched", "tornado",
    "tornado.application", "asyncio",
)  # fmt: skip
_SILENT = logging.CRITICAL + 1


class LinkError(SsmtoolError):
    """The scheduler does not answer, or not as one."""


@dataclass(frozen=True)
class WorkerFacts:
    """A worker as its scheduler knows it."""

    address: str
    name: str
    host: str
    threads: int
    resources: dict[str, float] = field(default_factory=dict)

    def slots(self, resource: str) -> int:
        """Tasks with this resource that it runs at once."""
        return min(int(self.resources.get(resource, 0)), self.threads)

    def __str__(self) -> str:
        return f"{self.name} on {self.host}" if self.name != self.address else self.address


@dataclass(frozen=True)
class Ended:
    """A task that has ended: with a value, or with an error; `deadly` when workers ended while they ran it."""

    number: int
    value: Any = None
    error: str | None = None
    deadly: bool = False
    cancelled: bool = False


class Link:
    """A connection to a scheduler. `close` it: a local cluster ends with it."""

    def __init__(self, client: Any, where: Where, cleanup: contextlib.ExitStack) -> None:
        self._client = client
        self._cleanup = cleanup
        self._futures: dict[int, Any] = {}
        self._number = 0
        self.where = where

    def workers(self) -> dict[str, WorkerFacts]:
        """Those there are now, by address. Raises LinkError when the scheduler does not answer."""
        found = self._identity()["workers"]
        return {
            address: WorkerFacts(address, str(each["name"]), str(each["host"]), int(each["nthreads"]),
                                 dict(each["resources"]))
            for address, each in found.items()
            if each.get("status", "running") in ("running", "paused")
        }  # fmt: skip

    def ask(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on a worker, beside its tasks; waits. Raises what the function raised, or OSError."""
        answers = self._client.run(function, *arguments, workers=[worker], on_error="return")
        answer = answers[worker]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask_scheduler(self, function: Callable[..., Any]) -> Any:
        """The same in the scheduler."""
        return self._client.run_on_scheduler(function)

    def submit(
        self, function: Callable[..., Any], *arguments: Any, workers: Sequence[str], resource: str,
        tell: Callable[[Ended], None],
    ) -> int:  # fmt: skip
        """A task for one of these workers; its number. `tell` is called in another thread when it has ended.

        Raises LinkError when the scheduler does not take it.
        """
        self._number += 1
        number = self._number
        try:
            future = self._client.submit(
                function, *arguments, workers=list(workers), resources={resource: 1}, pure=False, retries=0
            )
        except Exception as error:  # of a closed client, most of all
            raise LinkError(f"the scheduler at {self.where} takes no task: {_words(error)}") from None
        self._futures[number] = future
        future.add_done_callback(lambda done: tell(_ended(number, done)))
        return number

    def drop(self, numbers: Sequence[int]) -> None:
        """Cancel tasks, or forget those that have ended. One that runs goes on to its end, and nobody hears of it."""
        futures = [future for number in numbers if (future := self._futures.pop(number, None)) is not None]
        running = [each for each in futures if not each.done()]
        if running:
            with contextlib.suppress(Exception):  # a scheduler that is gone has cancelled them already
                self._client.cancel(running, force=True)
        for each in futures:
            each.release()

    def close(self) -> None:
        """Leave the scheduler. A second call does nothing."""
        self._futures.clear()
        self._cleanup.close()

    @property
    def closed(self) -> bool:
        """Whether the connection was lost for good: distributed does not take it up again."""
        return str(self._client.status) in ("closing", "closed")

    def _identity(self) -> Any:
        # Of newer releases, which else list five workers.
        known = inspect.signature(_distributed().Scheduler.identity).parameters
        limits = {"n_workers": -1} if "n_workers" in known else {}
        try:
            return self._client.sync(self._client.scheduler.identity, callback_timeout=_ASK_S, **limits)
        except Exception as error:  # AttributeError once the client has closed
            why = "it has gone" if self.closed else _words(error)
            raise LinkError(f"the scheduler at {self.where} does not answer: {why}") from None


def open_link(where: Where) -> Link:
    """Connect, or start a local cluster. Raises LinkError within seconds, SsmtoolError without the extra."""
    dask = require_distributed()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_silence())
        stack.enter_context(dask.config.set(_CONFIG | (_LOCAL if where.local else {})))
        with warnings.catch_warnings():
            # Versions are compared here, and what does not fit is refused.
            warnings.simplefilter("ignore", _distributed().versions.VersionMismatchWarning)
            client = _local(where, stack) if where.local else _remote(where, stack)
        return Link(client, where, stack.pop_all())


def require_distributed() -> Any:
    """The module `dask`. Raises SsmtoolError where dask.distributed is not installed: it comes with an extra."""
    try:
        _distributed()
    except ModuleNotFoundError:
        raise SsmtoolError(
            "--scheduler needs dask.distributed, which is not installed", hint="pip install 'ssmtool[cluster]'"
        ) from None
    return importlib.import_module("dask")


def own_address() -> str:
    """On a worker: its address."""
    return str(_distributed().get_worker().address)


def _distributed() -> Any:
    """The package, whose types are only half there."""
    return importlib.import_module("distributed")


def _remote(where: Where, stack: contextlib.ExitStack) -> Any:
    try:
        # In advance, since distributed tries for long, and says little about what is wrong.
        socket.create_connection((where.host, where.port), CONNECT_S).close()
    except OSError as error:
        raise LinkError(f"no scheduler answers at {where}: {error.strerror or error}",
                        hint=f"start one: {_START} --port {where.port}") from None  # fmt: skip
    try:
        client = _in_time(lambda: _distributed().Client(where.address, timeout=CONNECT_S, set_as_default=False))
    except Exception as error:  # an OSError, a TypeError for want of certificates, whatever a stranger's bytes cause
        why = _words(error) if isinstance(error, OSError | TypeError) else "it speaks another protocol"
        raise LinkError(
            f"what answers at {where} is no scheduler that this distributed understands: {why}",
            hint="the scheduler has to be of the same release of distributed; tls:// needs certificates on both sides",
        ) from None
    stack.callback(_quietly, client.close, timeout=_CLOSE_S)
    return client


def _in_time(make: Callable[[], Any]) -> Any:
    """What `make` makes, in a thread: its own limit does not hold where something answers that is no scheduler."""
    made: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

    def work() -> None:
        try:
            made.put((make(), None))
        except Exception as error:
            made.put((None, error))

    threading.Thread(target=work, daemon=True, name="ssmtool-cluster").start()
    try:
        client, error = made.get(timeout=CONNECT_S + 1)
    except Empty:
        raise TimeoutError("no answer") from None
    if error is not None:
        raise error
    return client


def _local(where: Where, stack: contextlib.ExitStack) -> Any:
    from ssmtool.toolchain.workers import signals_as_exits

    # Where SIGTERM just ends this process, its folder stays.
    stack.enter_context(signals_as_exits())
    folder = tempfile.mkdtemp(prefix="ssmtool-cluster-")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    try:
        with _no_interrupts():
            cluster = _distributed().LocalCluster(
                n_workers=where.workers, threads_per_worker=1, processes=True, resources={"CPU": 1}, memory_limit=0,
                host="127.0.0.1", protocol="tcp://", silence_logs=_SILENT, local_directory=folder,
                dashboard_address=_HTTP, worker_dashboard_address=_HTTP, scheduler_kwargs={"dashboard": False},
            )  # fmt: skip
            stack.callback(_quietly, cluster.close, timeout=_CLOSE_S)
        client = _distributed().Client(cluster, timeout=CONNECT_S, set_as_default=False)
    except (OSError, RuntimeError, TimeoutError) as error:
        raise LinkError(f"the local cluster does not start: {_words(error)}") from None
    stack.callback(_quietly, client.close, timeout=_CLOSE_S)
    return client


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C goes to every process of the terminal. What is started meanwhile, by threads of now too, never gets it.

    One that comes in this time is raised at the end, when there is something that can be closed.
    """
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    mine = callable(handler) and threading.current_thread() is threading.main_thread()
    if mine:
        signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    # Already here: who starts this helper of multiprocessing leaves the signal unblocked.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if mine:
            signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The loggers of distributed say nothing meanwhile: what matters of it is in the report."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(_SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _ended(number: int, future: Any) -> Ended:
    """What became of a task. Raises nothing: it is called in distributed's own thread."""
    distributed = _distributed()
    try:
        return Ended(number, value=future.result())
    except distributed.KilledWorker as error:
        return Ended(number, error=f"{error.allowed_failures + 1} workers ended while they ran it", deadly=True)
    except distributed.CancelledError:
        return Ended(number, cancelled=True)
    except Exception as error:
        return Ended(number, error=_words(error))


def _quietly(function: Callable[..., Any], **arguments: Any) -> None:
    """Ending must not fail: there is nothing that anybody could do about it."""
    with contextlib.suppress(Exception):
        function(**arguments)


def _words(error: BaseException) -> str:
    """The innermost cause, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:300] or type(error).__name__
