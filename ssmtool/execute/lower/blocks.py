"""The worker's loop over thread blocks, and the warps of a block from barrier to barrier."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ssmtool.execute.layout import Fault, LaunchSlot, WorkerSlot
from ssmtool.execute.lower import checks
from ssmtool.execute.lower.frames import BLOCK_HEADER_BYTES, DONE, FINISHED, STOPPED, FrameSlot
from ssmtool.execute.lower.runtime import POINTER, call_report
from ssmtool.execute.lower.values import i64, set_word, word
from ssmtool.execute.numerics.lanes import I1, I8, I64, Builder, Value
from ssmtool.execute.program.geometry import Geometry

POISON = 0xFF
"""What shared memory holds before a block writes it: as f32, a NaN that arithmetic does not make."""
NAMES = 16
"""Named barriers of a block."""


def emit_run(module: Value, gang: Any, geometry: Geometry, frame_bytes: int | None, cells: int | None) -> None:
    """`void run(launch, worker)`: take blocks until there are none or the launch is stopped.

    `cells` is log2 of the bytes that share a shadow cell in checked mode, else None.
    """
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER]), "run")
    launch, worker = function.args
    entry, take, head, body, step, done = (
        function.append_basic_block(name) for name in ("entry", "take", "head", "block", "next", "done")
    )
    b = ir.IRBuilder(entry)
    total, chunk = word(b, launch, LaunchSlot.TOTAL), word(b, launch, LaunchSlot.CHUNK)
    size = [word(b, launch, slot) for slot in (LaunchSlot.NCTAID_X, LaunchSlot.NCTAID_Y)]
    b.branch(take)
    b.position_at_end(take)
    first = b.atomic_rmw("add", b.gep(launch, [i64(LaunchSlot.NEXT)]), chunk, "monotonic")
    end = b.add(first, chunk)
    last = b.select(b.icmp_unsigned("<", end, total), end, total)
    b.cbranch(b.icmp_unsigned("<", first, total), head, done)
    b.position_at_end(head)
    block = b.phi(I64)
    block.add_incoming(first, take)
    stop = b.load_atomic(b.gep(launch, [i64(LaunchSlot.STOP)]), "monotonic", 8)
    with b.if_then(b.icmp_unsigned("!=", stop, i64(0)), likely=False):
        b.ret_void()
    b.cbranch(b.icmp_unsigned("<", block, last), body, take)
    b.position_at_end(body)
    poison = module.globals.get("llvm.memset.p0.i64") or ir.Function(
        module, ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I8, I64, I1]), "llvm.memset.p0.i64"
    )
    shared = b.inttoptr(word(b, worker, WorkerSlot.SHARED), I8.as_pointer())
    b.call(poison, [shared, ir.Constant(I8, POISON), word(b, launch, LaunchSlot.SHARED_BYTES), ir.Constant(I1, 0)])
    if cells is not None:
        checks.begin_block(b, launch, worker, cells)
    x = b.urem(block, size[0])
    rest = b.udiv(block, size[0])
    place = [launch, worker, x, b.urem(rest, size[1]), b.udiv(rest, size[1]), block]
    if frame_bytes is None:
        _gangs(b, gang, geometry, place)
    else:
        rounds = _rounds_function(module, gang, geometry, frame_bytes, cells)
        with b.if_then(b.icmp_unsigned("==", b.call(rounds, place), i64(STOPPED)), likely=False):
            _stop(b, launch)
    b.branch(step)
    b.position_at_end(step)
    block.add_incoming(b.add(block, i64(1)), step)
    b.branch(head)
    b.position_at_end(done)
    b.ret_void()


def _stop(b: Builder, launch: Value) -> None:
    set_word(b, launch, LaunchSlot.STOP, i64(1))
    b.ret_void()


class Loop:
    """`with Loop(b, count) as index:` counts from 0."""

    def __init__(self, b: Builder, count: Value) -> None:
        self.b, self.count = b, count

    def __enter__(self) -> Value:
        b = self.b
        before = b.block
        self.head, body, self.done = (b.append_basic_block(name) for name in ("loop", "body", "end"))
        b.branch(self.head)
        b.position_at_end(self.head)
        self.index = b.phi(I64)
        self.index.add_incoming(i64(0), before)
        b.cbranch(b.icmp_unsigned("<", self.index, self.count), body, self.done)
        b.position_at_end(body)
        return self.index

    def __exit__(self, *exception: object) -> None:
        b = self.b
        if exception[0] is None:
            self.index.add_incoming(b.add(self.index, i64(1)), b.block)
            b.branch(self.head)
            b.position_at_end(self.done)


def _gangs(b: Builder, gang: Any, geometry: Geometry, place: list[Value]) -> None:
    """Run the gangs of a block one after the other: nothing makes them wait."""
    launch = place[0]
    null = ir.Constant(POINTER, None)
    with Loop(b, i64(geometry.gangs)) as number:
        answer = b.call(gang, [*place, number, null])
        with b.if_then(b.icmp_unsigned("==", answer, i64(STOPPED)), likely=False):
            _stop(b, launch)


def _rounds_function(module: Value, gang: Any, geometry: Geometry, frame_bytes: int, cells: int | None) -> Any:
    """`i64 rounds(launch, worker, x, y, z, block)`: run every warp that may, open barriers, until all are done."""
    function = ir.Function(module, ir.FunctionType(I64, [POINTER, POINTER] + [I64] * 4), "rounds")
    function.linkage = "internal"
    launch, worker, _, _, _, block = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    need, here, true, false = (b.alloca(I64, i64(NAMES), name) for name in ("need", "here", "true", "false"))
    alive, opened, waiting = (b.alloca(I64, name=name) for name in ("alive", "opened", "waiting"))
    area = word(b, worker, WorkerSlot.FRAMES)
    arrived = b.inttoptr(area, POINTER)
    count = i64(geometry.gangs)

    def frame(number: Value) -> Value:
        return b.inttoptr(b.add(b.add(area, i64(BLOCK_HEADER_BYTES)), b.mul(number, i64(frame_bytes))), POINTER)

    with Loop(b, i64(NAMES)) as name:
        b.store(i64(0), b.gep(arrived, [name]))
    with Loop(b, count) as number:
        set_word(b, frame(number), FrameSlot.RESUME, i64(0))
        set_word(b, frame(number), FrameSlot.OPEN, i64(1))
    again = b.append_basic_block("round")
    b.branch(again)
    b.position_at_end(again)
    with Loop(b, count) as number:
        own = frame(number)
        with b.if_then(b.icmp_unsigned("!=", word(b, own, FrameSlot.OPEN), i64(0))):
            set_word(b, own, FrameSlot.OPEN, i64(0))
            answer = b.call(gang, [*function.args, number, own])
            with b.if_then(b.icmp_unsigned("==", answer, i64(STOPPED)), likely=False):
                b.ret(i64(STOPPED))
            with b.if_then(b.icmp_unsigned("==", answer, i64(DONE))):
                set_word(b, own, FrameSlot.RESUME, i64(FINISHED & (2**64 - 1)))
    b.store(i64(0), alive)
    with Loop(b, i64(NAMES)) as name:
        for table in (need, here, true, false):
            b.store(i64(0), b.gep(table, [name]))
    with Loop(b, count) as number, b.if_then(_is_alive(b, frame(number))):
        _add(b, alive, i64(1))
    with b.if_then(b.icmp_unsigned("==", b.load(alive), i64(0))):
        b.ret(i64(DONE))
    with Loop(b, count) as number:
        own = frame(number)
        with b.if_then(_is_alive(b, own)):
            name = word(b, own, FrameSlot.BARRIER)
            asked = word(b, own, FrameSlot.THREADS)
            everyone = b.mul(b.load(alive), i64(32))
            wanted = b.select(b.icmp_unsigned("!=", asked, i64(0)), asked, everyone)
            b.store(wanted, b.gep(need, [name]))
            _add(b, b.gep(here, [name]), i64(32))
            _add(b, b.gep(true, [name]), word(b, own, FrameSlot.TRUE))
            _add(b, b.gep(false, [name]), word(b, own, FrameSlot.FALSE))
    b.store(i64(0), opened)
    b.store(i64(0), waiting)
    with Loop(b, count) as number:
        own = frame(number)
        with b.if_then(_is_alive(b, own)):
            name = word(b, own, FrameSlot.BARRIER)
            present = b.add(b.load(b.gep(here, [name])), b.load(b.gep(arrived, [name])))
            full = b.icmp_unsigned(">=", present, b.load(b.gep(need, [name])))
            _add(b, waiting, i64(1))
            with b.if_then(full):
                set_word(b, own, FrameSlot.OPEN, i64(1))
                set_word(b, own, FrameSlot.SUM_TRUE, b.load(b.gep(true, [name])))
                set_word(b, own, FrameSlot.SUM_FALSE, b.load(b.gep(false, [name])))
                _add(b, opened, i64(1))
    with b.if_then(b.icmp_unsigned("==", b.load(opened), i64(0)), likely=False):
        _report_deadlock(b, launch, block, frame, count, b.load(waiting))
        b.ret(i64(STOPPED))
    with Loop(b, count) as number:  # a barrier that opened starts anew: those that only arrived are used up
        own = frame(number)
        with b.if_then(b.and_(_is_alive(b, own), b.icmp_unsigned("!=", word(b, own, FrameSlot.OPEN), i64(0)))):
            b.store(i64(0), b.gep(arrived, [word(b, own, FrameSlot.BARRIER)]))
    if cells is not None:
        checks.opened(b, launch, block, frame, count, b.load(alive))
        checks.next_epoch(b, launch, worker, cells)
    b.branch(again)
    return function


def _is_alive(b: Builder, frame: Value) -> Value:
    return b.icmp_unsigned("!=", word(b, frame, FrameSlot.RESUME), i64(FINISHED & (2**64 - 1)))


def _add(b: Builder, place: Value, number: Value) -> None:
    b.store(b.add(b.load(place), number), place)


def _report_deadlock(b: Builder, launch: Value, block: Value, frame: Any, count: Value, waiting: Value) -> None:
    """Report the first warp that waits."""
    told = b.alloca(I64)
    b.store(i64(0), told)
    with Loop(b, count) as number:
        own = frame(number)
        fresh = b.icmp_unsigned("==", b.load(told), i64(0))
        with b.if_then(b.and_(_is_alive(b, own), fresh)):
            b.store(i64(1), told)
            site = word(b, own, FrameSlot.SITE)
            name = word(b, own, FrameSlot.BARRIER)
            call_report(b, launch, i64(Fault.BARRIER_DEADLOCK), site, block, b.mul(number, i64(32)), name, waiting)
