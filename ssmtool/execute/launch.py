"""One launch of a compiled kernel: its tables, its workers, and what they report."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute.compiler import MachineCode
from ssmtool.execute.errors import LaunchError
from ssmtool.execute.faults import KernelFault, Recorder, Triple, Watcher
from ssmtool.execute.layout import (
    LAUNCH_WORDS,
    SITE_WORDS,
    WORKER_WORDS,
    KernelFacts,
    LaunchSlot,
    SiteSlot,
    WorkerSlot,
)
from ssmtool.execute.memory import Memory
from ssmtool.execute.pool import default_threads, shared_pool
from ssmtool.execute.variables import aligned_zeros

DEFAULT_BUDGET = 1 << 25
"""Times a warp may go round loops: a second or ten of them, by what is in the loop."""

MOST_ARENA_BYTES = 48 << 20
"""Memory that all workers of a launch may have together; where it is short there are fewer workers."""

_ALIGN = 128
# Below this a launch is done before another thread has begun.
_HERE_SECONDS = 100e-6
_MOST_CHUNK = 64
_CHUNKS_PER_WORKER = 16


@dataclass
class Kernel:
    """A compiled kernel in memory. `seconds_per_block` is what the last launch took, None before the first."""

    facts: KernelFacts
    code: MachineCode
    cached: bool
    seconds_per_block: float | None = None


@dataclass
class Ran:
    """What running left behind. `touched` is, for each memory access, a bit for every allocation it met."""

    faults: list[KernelFault]
    notes: list[KernelFault]
    stopped: bool
    touched: dict[int, int]
    counters: NDArray[np.int64]
    seconds: float
    threads: int


class _Worker:
    """Memory of one worker thread, and the table that points into it."""

    def __init__(self, facts: KernelFacts, shared_bytes: int) -> None:
        sizes = _sizes(facts, shared_bytes)
        total = sum(sizes.values())
        try:
            self._arena = aligned_zeros(total, _ALIGN)
        except MemoryError:
            raise LaunchError(f"there is no memory for the {total} bytes that a block of {facts.entry} needs") from None
        self.table = np.zeros(WORKER_WORDS, np.int64)
        self._starts: dict[WorkerSlot, int] = {}
        at = 0
        for slot, size in sizes.items():
            self._starts[slot] = at
            self.table[slot] = self._arena.ctypes.data + at
            at += size
        self.table[WorkerSlot.EPOCH] = 1
        self.shared = int(self.table[WorkerSlot.SHARED])

    def words(self, slot: WorkerSlot, count: int) -> NDArray[np.int64]:
        """The first `count` words of a part of the memory."""
        start = self._starts[slot]
        return self._arena[start : start + 8 * count].view(np.int64)


def _sizes(facts: KernelFacts, shared_bytes: int) -> dict[WorkerSlot, int]:
    """Bytes of each part of a worker's memory, in order; all are multiples of the alignment, with a little to spare."""
    x, y, z = facts.block
    threads = -(-x * y * z // 32) * 32
    cells = -(-shared_bytes // max(facts.shadow_granule, 1)) if facts.mode.checks else 0
    exact = {
        WorkerSlot.SHARED: shared_bytes,
        WorkerSlot.LOCAL: facts.local_bytes * threads,
        WorkerSlot.FRAMES: facts.frame_bytes,
        WorkerSlot.WRITERS: 4 * cells,
        WorkerSlot.READERS: 4 * cells,
        WorkerSlot.COUNTERS: 8 * facts.counters,
        WorkerSlot.SITES: 8 * SITE_WORDS * len(facts.sites),
        WorkerSlot.SCRATCH: facts.scratch_bytes,
    }
    return {slot: -(-size // _ALIGN) * _ALIGN + _ALIGN for slot, size in exact.items()}


def run_kernel(
    kernel: Kernel,
    grid: Triple,
    parameters: NDArray[np.uint8],
    memory: Memory,
    symbols: list[int],
    *,
    shared_bytes: int,
    threads: int | None = None,
    budget: int | None = None,
) -> Ran:
    """Run every block of the grid; return when the last has ended.

    `shared_bytes` is one block's static and dynamic shared memory. KeyboardInterrupt is raised when every worker has
    come to the end of its block, or to its next look at the budget; the buffers are then half done.
    """
    facts = kernel.facts
    blocks = grid[0] * grid[1] * grid[2]
    budget = DEFAULT_BUDGET if budget is None else budget
    workers = _worker_count(facts, blocks, threads, shared_bytes)
    launch = _Tables(facts, grid, parameters, memory, symbols, shared_bytes, budget, workers)
    tasks = [functools.partial(_run, kernel, launch.table, worker.table) for worker in launch.workers]
    start = time.perf_counter()
    if kernel.seconds_per_block is not None and kernel.seconds_per_block * blocks < _HERE_SECONDS:
        tasks[0]()
        workers = 1
    else:
        shared_pool().run(tasks, launch.interrupt)
    seconds = time.perf_counter() - start
    recorder = launch.recorder
    if recorder.raised is not None:
        raise recorder.raised
    kernel.seconds_per_block = seconds * workers / blocks
    shared = [worker.shared for worker in launch.workers]
    faults, notes = recorder.decode(facts, grid, memory, shared, shared_bytes, budget)
    stopped = bool(launch.table[LaunchSlot.STOP])
    return Ran(faults, notes, stopped, launch.touched(), launch.counters(), seconds, workers)


def watch_block(
    kernel: Kernel,
    grid: Triple,
    parameters: NDArray[np.uint8],
    memory: Memory,
    symbols: list[int],
    *,
    shared_bytes: int,
    budget: int | None,
    block: int,
    offset: int,
) -> list[tuple[int, int]]:
    """Run one block of a kernel compiled to be watched; (site, flat thread) of every access to a byte of shared memory.

    `block` is the block's flat number, `offset` the byte. What the kernel stores stays in the buffers.
    """
    launch = _Tables(kernel.facts, grid, parameters, memory, symbols, shared_bytes, budget or DEFAULT_BUDGET, 1)
    watcher = Watcher(launch.stop)
    launch.table[LaunchSlot.REPORT] = watcher.address
    launch.table[LaunchSlot.NEXT], launch.table[LaunchSlot.TOTAL] = block, block + 1
    launch.table[LaunchSlot.WATCHED_BLOCK], launch.table[LaunchSlot.WATCHED_OFFSET] = block, offset
    _run(kernel, launch.table, launch.workers[0].table)
    return watcher.events


def _run(kernel: Kernel, launch: NDArray[np.int64], worker: NDArray[np.int64]) -> None:
    """A worker's whole task; what it holds keeps the code and the memory alive."""
    kernel.code(launch.ctypes.data, worker.ctypes.data)


def _worker_count(facts: KernelFacts, blocks: int, threads: int | None, shared_bytes: int) -> int:
    """No more than were asked for, than blocks, or than there is memory for."""
    wanted = default_threads() if threads is None else threads
    each = sum(_sizes(facts, shared_bytes).values())
    return max(1, min(wanted, blocks, MOST_ARENA_BYTES // each))


@dataclass
class _Tables:
    """The launch's table and its workers, with everything that addresses in them point to."""

    facts: KernelFacts
    grid: Triple
    parameters: NDArray[np.uint8]
    memory: Memory
    symbols: list[int]
    shared_bytes: int
    budget: int
    count: int
    workers: list[_Worker] = field(init=False)
    table: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.workers = [_Worker(self.facts, self.shared_bytes) for _ in range(self.count)]
        self.recorder = Recorder(self.stop, first_stops=not self.facts.mode.checks)
        self._addresses = np.array([*self.symbols, 0], np.int64)
        # A table of its own cache lines: the block counter in it is written by all workers.
        self.table = aligned_zeros(8 * LAUNCH_WORDS, _ALIGN).view(np.int64)
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        chunk = max(1, min(blocks // (self.count * _CHUNKS_PER_WORKER), _MOST_CHUNK))
        for slot, value in {
            LaunchSlot.TOTAL: blocks,
            LaunchSlot.NCTAID_X: self.grid[0],
            LaunchSlot.NCTAID_Y: self.grid[1],
            LaunchSlot.NCTAID_Z: self.grid[2],
            LaunchSlot.PARAMS: self.parameters.ctypes.data,
            LaunchSlot.ALLOCATIONS: self.memory.rows.ctypes.data,
            LaunchSlot.ALLOCATION_COUNT: len(self.memory.rows),
            LaunchSlot.SYMBOLS: self._addresses.ctypes.data,
            LaunchSlot.SHARED_BYTES: self.shared_bytes,
            LaunchSlot.BUDGET: self.budget,
            LaunchSlot.REPORT: self.recorder.address,
            LaunchSlot.CHUNK: chunk,
        }.items():
            self.table[slot] = value

    def stop(self) -> None:
        """No worker begins another block."""
        self.table[LaunchSlot.STOP] = 1

    def interrupt(self) -> None:
        """No worker begins another block, nor another round of a loop: it may be an endless one."""
        self.stop()
        self.table[LaunchSlot.BUDGET] = 0

    def touched(self) -> dict[int, int]:
        """For each memory access, a bit for every allocation that any worker met there."""
        count = len(self.facts.sites)
        total = np.zeros(count, np.uint64)
        for worker in self.workers:
            rows = worker.words(WorkerSlot.SITES, SITE_WORDS * count).reshape(count, SITE_WORDS)
            total |= rows[:, SiteSlot.TOUCHED].view(np.uint64)
        return {index: int(mask) for index, mask in enumerate(total) if mask}

    def counters(self) -> NDArray[np.int64]:
        """The counters of all workers together."""
        total = np.zeros(self.facts.counters, np.int64)
        for worker in self.workers:
            total += worker.words(WorkerSlot.COUNTERS, self.facts.counters)
        return total
