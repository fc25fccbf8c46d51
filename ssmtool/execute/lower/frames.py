"""Where a warp keeps what it needs while it waits at a barrier.

A gang function that may wait is entered again: it begins with a jump to where it left off. At a barrier it stores
the registers that are live there, and the masks, into its frame and returns; the block's scheduler (`blocks`) decides
when it goes on.
"""

from __future__ import annotations

from enum import IntEnum

from llvmlite import ir

from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.values import i64, pointer, set_word, word
from ssmtool.execute.numerics.lanes import I64, Value


class FrameSlot(IntEnum):
    """Words at the beginning of a frame."""

    RESUME = 0
    """Where to go on: 0 at the start, FINISHED when there is nothing left."""
    BARRIER = 1
    """The number of the barrier waited at."""
    THREADS = 2
    """Threads that barrier waits for; 0 for all of the block."""
    TRUE = 3
    """bar.red: lanes of this warp whose predicate is true ..."""
    FALSE = 4
    """... and false."""
    SUM_TRUE = 5
    """Over all warps at the barrier, filled in when it opens."""
    SUM_FALSE = 6
    OPEN = 7
    """Not zero: the warp may run."""
    SITE = 8
    """The barrier's place, for reports."""


DONE, WAITING, STOPPED = 0, 1, 2
"""What a gang function returns."""
FINISHED = -1
HEADER_BYTES = 128
BLOCK_HEADER_BYTES = 128
"""Before the frames: 16 words, threads that arrived at each barrier without waiting (bar.arrive)."""


class Frame:
    """The layout of one gang's frame, which grows while the function is emitted."""

    def __init__(self) -> None:
        self.bytes = HEADER_BYTES
        self.places: dict[Value, int] = {}
        self.points: list[Value] = []
        self.switch: Value = None

    def enter(self, gang: Gang, start: Value) -> None:
        """The jump at the function's beginning."""
        b = gang.builder
        resume = word(b, gang.arguments.frame, FrameSlot.RESUME)
        self.switch = b.switch(resume, start)

    def finish(self, gang: Gang) -> None:
        """Round the size up, so that every frame is aligned for vectors."""
        self.bytes = -(-self.bytes // 64) * 64

    def _address(self, gang: Gang, slot: Value) -> Value:
        place = self.places.get(slot)
        if place is None:
            kind = slot.type.pointee
            lane = kind.element if isinstance(kind, ir.VectorType) else kind
            count = kind.count if isinstance(kind, ir.VectorType) else 1
            size = {"float": 4, "double": 8}.get(str(lane)) or max(1, lane.width // 8)
            total = max(8, -(-count // 8) if str(lane) == "i1" else size * count)
            align = min(64, 1 << (total - 1).bit_length())
            place = -(-self.bytes // align) * align
            self.places[slot] = place
            self.bytes = place + total
        base = gang.builder.ptrtoint(gang.arguments.frame, I64)
        return gang.builder.add(base, i64(place))

    def wait(self, gang: Gang, slots: list[Value], code: int) -> None:
        """Store `slots`, return `code`, and go on from here when the function is entered again."""
        b = gang.builder
        for slot in slots:
            value = b.load(slot)
            if str(value.type).endswith("i1>"):
                value = b.bitcast(value, ir.IntType(value.type.count))
            elif value.type == ir.IntType(1):
                value = b.zext(value, ir.IntType(8))
            b.store(value, pointer(b, self._address(gang, slot), value.type)).align = 1
        number = len(self.points) + 1
        set_word(b, gang.arguments.frame, FrameSlot.RESUME, i64(number))
        b.ret(i64(code))
        point = gang.function.append_basic_block(f"resume{number}")
        self.points.append(point)
        self.switch.add_case(i64(number), point)
        b.position_at_end(point)
        for slot in slots:
            kind = slot.type.pointee
            stored = kind
            if str(kind).endswith("i1>"):
                stored = ir.IntType(kind.count)
            elif kind == ir.IntType(1):
                stored = ir.IntType(8)
            value = b.load(pointer(b, self._address(gang, slot), stored))
            value.align = 1
            if stored != kind:
                value = b.bitcast(value, kind) if isinstance(kind, ir.VectorType) else b.trunc(value, kind)
            b.store(value, slot)
