"""The tables a kernel is given, the memory of its workers, and how much of it there is."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from execute.handmade import facts
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ssmtool.execute.launch import MOST_ARENA_BYTES, Kernel, _sizes, _worker_count, run_kernel
from ssmtool.execute.layout import (
    ALLOCATION_WORDS,
    LAUNCH_WORDS,
    SITE_WORDS,
    WORKER_WORDS,
    LaunchSlot,
    Mode,
    SiteSlot,
    WorkerSlot,
)
from ssmtool.execute.memory import Buffer, Memory

FACTS = replace(facts("scale", (16, 3, 1), Mode(checks=True)), local_bytes=40, shadow_granule=8)


def words(address: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    import ctypes

    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))


class Spy:
    """Stands for machine code: looks at the tables as a kernel does, and writes where a kernel writes."""

    def __init__(self) -> None:
        self.launches: list[list[int]] = []
        self.workers: list[list[int]] = []
        self.dirty: list[bool] = []

    def __call__(self, launch: int, worker: int) -> None:
        table, mine = words(launch, LAUNCH_WORDS), words(worker, WORKER_WORDS)
        self.launches.append(table.tolist())
        self.workers.append(mine.tolist())
        for slot, size in SIZES.items():
            part = words(int(mine[slot]), size // 8)
            self.dirty.append(bool(part.any()))
            part[:] = -1
        count = len(FACTS.sites)
        rows = words(int(mine[WorkerSlot.SITES]), SITE_WORDS * count).reshape(count, SITE_WORDS)
        rows[:, SiteSlot.TOUCHED] = [0, 1 << len(self.workers), -(1 << 63)]  # the last is bit 63
        words(int(mine[WorkerSlot.COUNTERS]), 2)[:] = [10, len(self.workers)]


# What the facts ask for, in bytes that a kernel may write; whole words.
SIZES = {
    WorkerSlot.SHARED: 2000,
    WorkerSlot.LOCAL: 40 * 64,
    WorkerSlot.FRAMES: 64,
    WorkerSlot.WRITERS: 4 * 250,
    WorkerSlot.READERS: 4 * 250,
    WorkerSlot.COUNTERS: 16,
    WorkerSlot.SITES: 8 * SITE_WORDS * 3,
    WorkerSlot.SCRATCH: 64,
}


def run(spy: Spy, grid: tuple[int, int, int] = (5, 3, 2), threads: int = 3, **more: Any) -> Any:
    array = np.zeros(8, np.float32)
    memory = Memory([Buffer("y", array, array.ctypes.data, (8,))])
    kernel = Kernel(FACTS, spy, cached=False)  # type: ignore[arg-type]
    return run_kernel(
        kernel, grid, np.zeros(24, np.uint8), memory, [77, 88], shared_bytes=2000, threads=threads, **more
    )


def test_the_launch_table_says_what_the_layout_says() -> None:
    spy = Spy()
    run(spy, budget=123)
    for table in spy.launches:
        assert table[LaunchSlot.TOTAL] == 30
        assert table[LaunchSlot.NCTAID_X : LaunchSlot.NCTAID_Z + 1] == [5, 3, 2]
        assert (table[LaunchSlot.NEXT], table[LaunchSlot.STOP], table[LaunchSlot.BUDGET]) == (0, 0, 123)
        assert (table[LaunchSlot.SHARED_BYTES], table[LaunchSlot.ALLOCATION_COUNT]) == (2000, 1)
        assert table[LaunchSlot.CHUNK] == 1
        assert 0 not in [table[slot] for slot in (LaunchSlot.PARAMS, LaunchSlot.ALLOCATIONS, LaunchSlot.REPORT)]


def test_symbols_and_rows_can_be_read_through_the_table() -> None:
    seen: list[list[int]] = []

    def look(launch: int, worker: int) -> None:
        table = words(launch, LAUNCH_WORDS)
        seen.append(words(int(table[LaunchSlot.SYMBOLS]), 2).tolist())
        seen.append(words(int(table[LaunchSlot.ALLOCATIONS]), ALLOCATION_WORDS).tolist()[1:])
        assert worker

    array = np.zeros(8, np.float32)
    memory = Memory([Buffer("y", array, array.ctypes.data, (8,))])
    bare = replace(FACTS, mode=Mode())
    kernel = Kernel(bare, look, cached=False)  # type: ignore[arg-type]
    run_kernel(kernel, (1, 1, 1), np.zeros(1, np.uint8), memory, [77, 88], shared_bytes=0, threads=1)
    assert seen == [[77, 88], [32, 0, 0]]


def test_each_worker_has_zeroed_aligned_memory_of_its_own() -> None:
    spy = Spy()
    for _ in range(3):  # memory that was used before is zero again
        run(spy)
    assert not any(spy.dirty)
    for worker in spy.workers:
        assert worker[WorkerSlot.EPOCH] == 1
        assert all(worker[slot] % 128 == 0 for slot in SIZES)
    for first in range(0, len(spy.workers), 3):
        parts = sorted(
            (w[slot], w[slot] + size) for w in spy.workers[first : first + 3] for slot, size in SIZES.items()
        )
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(parts))


def test_what_workers_met_and_counted_is_put_together() -> None:
    ran = run(Spy())
    assert ran.threads == 3
    assert ran.touched == {1: 0b1110, 2: 1 << 63}
    assert ran.counters.tolist() == [30, 6]


def test_a_small_launch_runs_in_the_caller_s_thread_once_its_time_is_known() -> None:
    import threading

    threads: list[int] = []
    kernel = Kernel(FACTS, lambda *_: threads.append(threading.get_ident()), cached=False)  # type: ignore[arg-type,return-value]
    memory = Memory([])

    def launch(blocks: int) -> None:
        run_kernel(kernel, (blocks, 1, 1), np.zeros(1, np.uint8), memory, [], shared_bytes=0, threads=2)

    launch(2)
    assert threading.get_ident() not in threads
    kernel.seconds_per_block = 1e-6
    launch(2)
    assert threads[-1] == threading.get_ident()
    kernel.seconds_per_block = 1e-3
    launch(2)
    assert threads[-1] != threading.get_ident()


@given(
    st.integers(0, 1 << 16), st.integers(0, 1 << 20), st.integers(1, 1024), st.integers(0, 49152), st.integers(1, 300),
    st.integers(1, 1 << 31),
)  # fmt: skip
def test_the_workers_memory_stays_in_bounds(
    local: int, frame: int, block: int, shared: int, threads: int, blocks: int
) -> None:
    some = replace(FACTS, local_bytes=local, frame_bytes=frame, block=(block, 1, 1))
    count = _worker_count(some, blocks, threads, shared)
    each = sum(_sizes(some, shared).values())
    assert 1 <= count <= min(threads, blocks)
    assert count * each <= MOST_ARENA_BYTES or count == 1


@pytest.mark.parametrize(("blocks", "chunk"), [(1, 1), (40, 1), (1000, 20), (10**7, 64)])
def test_large_grids_are_handed_out_in_chunks(blocks: int, chunk: int) -> None:
    spy = Spy()
    run(spy, (blocks, 1, 1))
    assert {table[LaunchSlot.CHUNK] for table in spy.launches} == {chunk}


def test_words_of_the_tables_are_numbers_in_text_too() -> None:
    # Before Python 3.11 an IntEnum's text is its name, and LLVM's text is made from it.
    assert f"{LaunchSlot.PARAMS} {WorkerSlot.EPOCH!s} {SiteSlot.TOUCHED}" == "5 7 3"
