"""The pool: every task once, none outlives the call, whatever is raised and when."""

from __future__ import annotations

import os
import threading
import time

import pytest

from ssmtool.execute.pool import MOST_THREADS, Pool, default_threads, shared_pool


def nothing() -> None:
    return


@pytest.mark.parametrize("count", [1, 2, 40, MOST_THREADS + 50])
def test_every_task_runs_once(count: int) -> None:
    done: list[int] = []
    Pool().run([lambda k=k: done.append(k) for k in range(count)], nothing)  # type: ignore[misc]
    assert sorted(done) == list(range(count))


def test_tasks_run_side_by_side() -> None:
    meeting = threading.Barrier(4, timeout=10)
    Pool().run([lambda: meeting.wait() and None] * 4, nothing)
    assert not meeting.broken


def test_a_task_s_own_exception_comes_out_after_the_others_ended() -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError("mine")

    def slow() -> None:
        time.sleep(0.05)
        done.append(1)

    pool = Pool()
    with pytest.raises(ValueError, match="mine"):
        pool.run([fail, slow, slow], nothing)
    assert done == [1, 1]
    pool.run([slow], nothing)  # the thread that met it still works
    assert done == [1, 1, 1]


class InterruptedError2(BaseException):
    """Stands for KeyboardInterrupt."""


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupt_ends_the_tasks_and_no_task_is_left(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    running = []
    pool = Pool()
    lock_wait = Pool.run.__globals__["_Batch"].wait
    calls = []

    def wait(self: object) -> None:
        calls.append(1)
        if len(calls) <= times:
            raise InterruptedError2
        lock_wait(self)

    def task() -> None:
        running.append(1)
        stop.wait(10)
        time.sleep(0.02)
        running.pop()

    monkeypatch.setattr(Pool.run.__globals__["_Batch"], "wait", wait)
    start = time.perf_counter()
    with pytest.raises(InterruptedError2):
        pool.run([task] * 3, stop.set)
    assert time.perf_counter() - start < 5
    assert running == []


def test_an_interrupt_before_the_tasks_were_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    pool = Pool()
    hand_out = pool._hand_out
    calls: list[int] = []

    def broken(batch: object, times: int) -> None:
        calls.append(times)
        if len(calls) == 1:
            hand_out(batch, 1)  # type: ignore[arg-type]
            raise InterruptedError2
        hand_out(batch, times)  # type: ignore[arg-type]

    monkeypatch.setattr(pool, "_hand_out", broken)
    with pytest.raises(InterruptedError2):
        pool.run([lambda: done.append(1)] * 3, nothing)
    assert done == [1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    shared_pool().run([nothing] * 2, nothing)
    child = os.fork()
    if child == 0:
        threading.Timer(5, lambda: os._exit(9)).start()
        shared_pool().run([nothing] * 2, nothing)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_threads_are_those_the_process_may_use() -> None:
    assert default_threads() == min(len(os.sched_getaffinity(0)), MOST_THREADS)
