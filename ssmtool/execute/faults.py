"""What a kernel reports while it runs, and how that is told to people."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssmtool.execute.layout import WATCHED, Fault, KernelFacts
from ssmtool.execute.memory import Memory

MOST_FAULTS = 100
"""Different faults (by kind and place in the PTX) after which a launch is stopped."""

MOST_REPORTS = 20_000
"""Reports of faults, repeated ones too, after which a launch is stopped: each costs a call of Python."""

NOTES = frozenset((Fault.WARP_RACE,))
"""What is right on Kepler, and no fault."""

FATAL = frozenset((Fault.BUDGET, Fault.BARRIER_DEADLOCK, Fault.TRAP))
"""After one of these no other block is worth running: it would most likely end the same way, and late."""

Triple = tuple[int, int, int]
_CALLBACK = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)


@dataclass(frozen=True)
class KernelFault:
    """One thing a kernel did wrong, or (WARP_RACE) that only some GPUs permit, at one place of the PTX.

    `line` is the PTX's, 1-based, `text` the instruction, `source` the place in C (`file:line`) or ''. `block` and
    `thread` are those of the first report, of `count`; `flat_block` is the block's number. `where` is the place in
    memory in words, or ''. `other` is the second thread of a race, None if there are several or the fault is no race;
    `other_wrote` says what it did, `other_line` and `other_text` its instruction where that was found (0 and '').
    """

    kind: Fault
    message: str
    kernel: str
    line: int
    text: str
    source: str
    block: Triple
    thread: Triple
    address: int
    where: str
    other: Triple | None
    count: int
    flat_block: int = 0
    other_wrote: bool = False
    other_line: int = 0
    other_text: str = ""

    @property
    def rule(self) -> str:
        """The kind as a word: `out-of-bounds`."""
        return self.kind.name.lower().replace("_", "-")

    def __str__(self) -> str:
        source = f" ({self.source})" if self.source else ""
        times = f", {self.count} times" if self.count > 1 else ""
        return (
            f"{self.kernel}, PTX line {self.line}{source}, block {self.block}, thread {self.thread}{times}: "
            f"{self.message}"
        )


class Recorder:
    """Takes a kernel's reports, in any thread, and says when it is enough.

    `stop` ends the launch. With `first_stops` the first fault does; else the 100th different one, or a flood.
    """

    def __init__(self, stop: Callable[[], None], *, first_stops: bool) -> None:
        self._stop = stop
        self._first_stops = first_stops
        self._lock = threading.Lock()
        self._seen: dict[tuple[int, int], list[int]] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._reports = 0
        self._faults = 0
        self.stopped = False
        self.raised: BaseException | None = None
        # Kept: the function is gone with its object.
        self._callback = _CALLBACK(self._report)

    @property
    def address(self) -> int:
        """Where the callback's code lies, as long as this object lives."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _report(self, kind: int, site: int, block: int, thread: int, address: int, extra: int) -> None:
        try:
            with self._lock:
                self._take(kind, site, [block, thread, address, extra])
        except BaseException as error:
            # Nothing can be raised through compiled code. A Ctrl-C can come here, when the caller runs the kernel.
            self.raised = error
            self._stop()

    def _take(self, kind: int, site: int, what: list[int]) -> None:
        key = (kind, site)
        known = self._seen.get(key)
        note = kind in NOTES
        if known is not None:
            self._counts[key] += 1
            # The first by block and thread is shown, whichever worker was faster.
            if what[:2] < known[:2]:
                self._seen[key] = what
        elif note or self._faults < MOST_FAULTS:
            self._seen[key] = what
            self._counts[key] = 1
            self._faults += not note
        if note:
            return
        self._reports += 1
        if self._first_stops or kind in FATAL or self._faults >= MOST_FAULTS or self._reports >= MOST_REPORTS:
            self.stopped = True
            self._stop()

    def decode(
        self, facts: KernelFacts, grid: Triple, memory: Memory, shared: Sequence[int], shared_bytes: int, budget: int
    ) -> tuple[list[KernelFault], list[KernelFault]]:
        """(faults, notes) in the order of the PTX. `shared` are the addresses of the workers' shared memories."""
        words = _Words(facts, memory, shared, shared_bytes, budget)
        faults: list[KernelFault] = []
        notes: list[KernelFault] = []
        for (code, site), what in sorted(self._seen.items(), key=lambda item: (item[0][1], item[0][0])):
            # A note is told once by each worker, so its count says nothing.
            count = 1 if code in NOTES else self._counts[code, site]
            fault = words.fault(code, site, what, grid, count)
            (notes if fault.kind in NOTES else faults).append(fault)
        return faults, notes


class Watcher:
    """Takes what watch mode tells, in its order: (site, flat thread)."""

    MOST = 200_000

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.events: list[tuple[int, int]] = []
        self._callback = _CALLBACK(self._report)

    @property
    def address(self) -> int:
        """Where the callback's code lies, as long as this object lives."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _report(self, kind: int, site: int, block: int, thread: int, address: int, extra: int) -> None:
        if kind == WATCHED and len(self.events) < self.MOST:
            self.events.append((site, thread))
        else:  # a fault that was reported before, or enough seen
            self._stop()


class _Words:
    """Turns reported numbers into a KernelFault."""

    def __init__(
        self, facts: KernelFacts, memory: Memory, shared: Sequence[int], shared_bytes: int, budget: int
    ) -> None:
        self.facts = facts
        self.memory = memory
        self.shared = shared
        self.shared_bytes = shared_bytes
        self.budget = budget

    def fault(self, code: int, index: int, what: Sequence[int], grid: Triple, count: int) -> KernelFault:
        block, thread, address, extra = what
        site = self.facts.sites[index] if 0 <= index < len(self.facts.sites) else None
        kind = Fault(code)
        text = site.text if site else ""
        verb = "writes" if site and site.store else "reads"
        where = self._where(kind, text, address, extra)
        other, wrote = _other(extra) if kind in (Fault.RACE, Fault.WARP_RACE) else (None, False)
        message = self._message(kind, verb, where, extra, other, wrote, address)
        return KernelFault(
            kind,
            f"{message}: {text}" if text else message,
            self.facts.entry,
            site.line if site else 0,
            text,
            site.source if site else "",
            unflatten(block, grid),
            unflatten(thread, self.facts.block),
            address,
            where,
            unflatten(other, self.facts.block) if other is not None else None,
            count,
            block,
            wrote,
        )

    def _where(self, kind: Fault, text: str, address: int, extra: int) -> str:
        if kind in (Fault.UNWRITTEN_SHARED, Fault.RACE, Fault.WARP_RACE):
            return self._shared_place(address)
        if kind not in (Fault.OUT_OF_BOUNDS, Fault.MISALIGNED, Fault.READ_ONLY, Fault.UNWRITTEN_GLOBAL):
            return ""
        for base in self.shared:
            if base <= address < base + max(self.shared_bytes, 1):
                return self._shared_place(address - base)
        if ".shared" in text:
            near = min(self.shared, key=lambda base: abs(address - base), default=0)
            return self._shared_place(address if 0 <= address < 1 << 32 else address - near)
        if ".local" in text:
            return f"local memory ({self.facts.local_bytes} bytes a thread)"
        return self.memory.describe(address, extra)

    def _shared_place(self, offset: int) -> str:
        size = self.shared_bytes
        for each in self.facts.shared_variables:
            if each.offset <= offset < each.offset + each.bytes:
                index, byte = divmod(offset - each.offset, each.element)
                return f"shared {each.name}[{index}]{f' byte {byte}' if byte else ''}"
        if offset >= size:
            return f"byte {offset} of shared memory, past its end ({size} bytes)"
        if offset < 0:
            return f"{-offset} bytes before shared memory"
        return f"byte {offset} of shared memory"

    def _message(
        self, kind: Fault, verb: str, where: str, extra: int, other: int | None, wrote: bool, address: int
    ) -> str:
        if kind is Fault.OUT_OF_BOUNDS:
            return f"{verb} {_bytes(extra)} out of bounds, at {where}"
        if kind is Fault.MISALIGNED:
            return f"{verb} {_bytes(extra)} at an address that is no multiple of {extra}, {where}"
        if kind is Fault.READ_ONLY:
            return f"writes {_bytes(extra)} into read-only memory, {where}"
        if kind in (Fault.UNWRITTEN_GLOBAL, Fault.UNWRITTEN_SHARED):
            return f"reads {_bytes(extra)} that nothing has written, {where}"
        if kind is Fault.UNWRITTEN_REGISTER:
            names = self.facts.registers
            return f"register {names[address] if 0 <= address < len(names) else '?'} is read before it is written"
        if kind in (Fault.RACE, Fault.WARP_RACE):
            whom = "several other threads" if other is None else f"thread {unflatten(other, self.facts.block)}"
            did = "wrote" if wrote else "read"
            race = f"{verb} {where}, which {whom} {did} with no barrier between"
            if kind is Fault.WARP_RACE:
                race += " (the same warp: right on Kepler, undefined where threads of a warp do not run in step)"
            return race
        if kind is Fault.BARRIER_DIVERGENCE:
            return f"only some threads of the warp reach this barrier ({_lanes(extra)})"
        if kind is Fault.BARRIER_DEADLOCK:
            return f"the block is deadlocked: {extra} warps wait at barriers that the others never reach"
        if kind is Fault.BARRIER_EXITED:
            return f"a barrier is reached after other threads of the block have exited ({_lanes(extra)} reach it)"
        if kind is Fault.SHUFFLE_INACTIVE:
            return f"shfl reads lane {extra}, which is not active: its value is undefined"
        if kind is Fault.DIVISION_BY_ZERO:
            return "integer division by zero"
        if kind is Fault.BUDGET:
            return f"endless loop? a warp went round more than {self.budget} times"
        return "the kernel executed trap"


def unflatten(index: int, extents: Triple) -> Triple:
    """(x, y, z) of a flat block or thread number."""
    x, y, _ = extents
    return index % x, index // x % y, index // (x * y)


def _other(extra: int) -> tuple[int | None, bool]:
    """The other thread of a race (None for several), and whether it wrote."""
    wrote = extra >= (1 << 32) - 1
    thread = extra - (1 << 32) if wrote else extra
    return (None if thread < 0 else thread), wrote


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"


def _lanes(mask: int) -> str:
    """`lanes 0-15, 17` of a bit mask."""
    lanes = [lane for lane in range(64) if mask >> lane & 1]
    parts: list[list[int]] = []
    for lane in lanes:
        if parts and parts[-1][1] == lane - 1:
            parts[-1][1] = lane
        else:
            parts.append([lane, lane])
    words = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    return f"lane{'' if len(lanes) == 1 else 's'} {words or 'none'}"
