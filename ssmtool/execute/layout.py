"""What compiled kernels and the Python that runs them share: two tables of 64-bit words, fault codes, kernel facts.

A compiled kernel is `void run(i64* launch, i64* worker)`. `launch` is one table for all worker threads of a launch,
`worker` one for each thread; both are indexed by the enums below. Plain words, so that no struct padding can differ
between the two sides.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class _Number(IntEnum):
    """A number that is written as one: until Python 3.11 an IntEnum's text is its name, in LLVM's text too."""

    __str__ = int.__repr__


class LaunchSlot(_Number):
    """Words of the launch table."""

    NEXT = 0
    """The next thread block to run; workers fetch and add."""
    TOTAL = 1
    """Thread blocks in the grid."""
    NCTAID_X = 2
    NCTAID_Y = 3
    NCTAID_Z = 4
    PARAMS = 5
    """Address of the entry's parameter bytes, laid out as KernelFacts.params says."""
    ALLOCATIONS = 6
    """Address of rows of AllocationSlot words, sorted by base, not overlapping."""
    ALLOCATION_COUNT = 7
    SYMBOLS = 8
    """Address of the addresses of KernelFacts.symbols, in that order."""
    SHARED_BYTES = 9
    """Static and dynamic shared memory of one block."""
    STOP = 10
    """Not zero: stop before the next block (set by the report callback or by a failing kernel)."""
    BUDGET = 11
    """Loop iterations that one warp (or wide gang) may make before the launch is called endless."""
    REPORT = 12
    """Address of the C callback `void(i64 kind, i64 site, i64 block, i64 thread, i64 address, i64 extra)`."""
    CHUNK = 13
    """Blocks a worker takes at a time."""
    WATCHED_BLOCK = 14
    """Watch mode: the block, and the offset in shared memory, whose accesses are told."""
    WATCHED_OFFSET = 15


LAUNCH_WORDS = 16


class WorkerSlot(_Number):
    """Words of a worker's table."""

    SHARED = 0
    """Address of SHARED_BYTES bytes, 128-byte aligned."""
    LOCAL = 1
    """Address of KernelFacts.local_bytes bytes for each thread of the block."""
    FRAMES = 2
    """Address of KernelFacts.frame_bytes zeroed bytes, where warps keep their registers across barriers."""
    WRITERS = 3
    """Checked mode: a 32-bit cell for each KernelFacts.shadow_granule bytes of shared memory, zeroed."""
    READERS = 4
    COUNTERS = 5
    """Counting mode: KernelFacts.counters zeroed words."""
    SITES = 6
    """Rows of SiteSlot words, zeroed, one for each of KernelFacts.sites: the allocation a memory access last met."""
    EPOCH = 7
    """The tick of barriers on this worker, of blocks' and warps' own; starts at 1, see `lower.checks.cells`."""
    SCRATCH = 8
    """Address of KernelFacts.scratch_bytes zeroed bytes, 64-byte aligned. Checked mode: a word for each site, not zero
    when a race within a warp was told there."""
    FIRST_EPOCH = 9
    """Checked mode: EPOCH at the block's beginning ..."""
    BARRIER_EPOCH = 10
    """... and at its last barrier."""


WORKER_WORDS = 16


class AllocationSlot(_Number):
    """Words of one allocation's row."""

    BASE = 0
    BYTES = 1
    SHADOW = 2
    """Address of one byte per 4 bytes of an allocation that starts unwritten (0: never written, 1: written), or 0."""
    FLAGS = 3


ALLOCATION_WORDS = 4
READ_ONLY = 1
"""Bit of AllocationSlot.FLAGS: a store into it is a fault."""


class SiteSlot(_Number):
    """Words of one memory access's row."""

    BASE = 0
    BYTES = 1
    SHADOW = 2
    TOUCHED = 3
    """Bit i is set when the access met allocation i; bit 63 stands for every i >= 63."""


SITE_WORDS = 4


class Fault(_Number):
    """What a kernel can be reported for. `extra` of the callback is explained with each."""

    OUT_OF_BOUNDS = 1
    """extra: bytes of the access."""
    MISALIGNED = 2
    """extra: bytes of the access."""
    READ_ONLY = 3
    """A store into constant memory or a read-only array. extra: bytes."""
    UNWRITTEN_GLOBAL = 4
    """A load of bytes that nothing has written. extra: bytes."""
    UNWRITTEN_SHARED = 5
    """address: offset in shared memory. extra: bytes."""
    UNWRITTEN_REGISTER = 6
    """address: index into KernelFacts.registers."""
    RACE = 7
    """Two threads of different warps, one of them writing, between the same barriers. address: offset in shared
    memory. extra: the other thread, or -1 when it was several; plus (1 << 32) if the other one wrote."""
    WARP_RACE = 8
    """The same within one warp: right on Kepler, where a warp runs in step; a portability note. extra: as RACE."""
    BARRIER_DIVERGENCE = 9
    """Threads of a warp reach a barrier that others of it do not. extra: bits of the lanes that did."""
    BARRIER_DEADLOCK = 10
    """No warp can go on: they wait at different barriers. extra: the number of warps that wait."""
    BARRIER_EXITED = 11
    """A barrier is reached although some threads of the block have exited. extra: bits of the lanes that did."""
    SHUFFLE_INACTIVE = 12
    """shfl reads a lane that is not active, which gives an undefined value. extra: the source lane."""
    DIVISION_BY_ZERO = 13
    BUDGET = 14
    """The instruction budget is spent: an endless loop."""
    TRAP = 15
    """The kernel executed trap."""


WATCHED = 100
"""A report that is no fault: watch mode tells of an access. address: its own, extra: its bytes."""


class Mode(msgspec.Struct, frozen=True):
    """How a kernel is compiled. `bounds`: every access is checked and a bad one suppressed and reported.

    `checks`: races, unwritten memory and registers, barriers, shuffles and divisions as well. `counters`: executed
    warp instructions. `watch`: accesses to one place are told.
    """

    bounds: bool = True
    checks: bool = False
    counters: bool = False
    watch: bool = False


class Param(msgspec.Struct, frozen=True):
    """One entry parameter: PTX type (None if the text does not say), byte offset and size of the whole."""

    name: str
    type: str | None
    offset: int
    bytes: int


class Site(msgspec.Struct, frozen=True):
    """A place in the PTX that can be reported: 1-based line, the instruction's text, its class for the reader.

    `evidence` is the label (numerics.evidence.Level and unit name) of the data a store writes; empty for loads.
    """

    line: int
    text: str
    source: str = ""
    store: bool = False
    level: int = 0
    units: tuple[str, ...] = ()


class SharedVariable(msgspec.Struct, frozen=True):
    """A variable in shared memory, for telling an offset by name: bytes of the whole and of one element."""

    name: str
    offset: int
    bytes: int
    element: int = 1


class KernelFacts(msgspec.Struct, frozen=True):
    """What the runner must know of a compiled kernel. Sizes are in bytes. Kept beside the object code in the cache."""

    entry: str
    block: tuple[int, int, int]
    lanes: int
    """Threads that run as one vector: 32, or the whole block rounded up to whole warps."""
    params: tuple[Param, ...]
    param_bytes: int
    static_shared: int
    """Static shared memory; dynamic shared memory starts at `dynamic_offset`."""
    dynamic_offset: int
    local_bytes: int
    frame_bytes: int
    scratch_bytes: int
    shadow_granule: int
    symbols: tuple[str, ...]
    """Module variables (`.global`, `.const`) whose addresses the kernel asks for."""
    sites: tuple[Site, ...]
    registers: tuple[str, ...] = ()
    """Registers that may be read before they are written."""
    counters: int = 0
    blocks: tuple[tuple[int, ...], ...] = ()
    """Counting mode: for each counter of a basic block, the indices of its instructions in the entry's own text."""
    branches: tuple[int, ...] = ()
    """Conditional branches, by index: two words each, warps that came and warps that parted."""
    accesses: tuple[tuple[int, str], ...] = ()
    """(index, "shared" or "global"): two words each, warp requests and the bank passes or 32-byte sectors they need."""
    mode: Mode = Mode()
    shared_variables: tuple[SharedVariable, ...] = ()
    """Static shared variables; only for messages."""
