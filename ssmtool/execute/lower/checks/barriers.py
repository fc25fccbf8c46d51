"""Barriers that some threads do not reach.

Threads of a warp that wait elsewhere make a barrier divergent. Threads that have exited never reach one: most GPUs let
the others pass, but CUDA leaves it undefined, and compute-sanitizer's synccheck calls both errors; so does this.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ssmtool.execute.layout import Fault
from ssmtool.execute.lower.frames import FINISHED, FrameSlot
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import call_report
from ssmtool.execute.lower.values import any_lane, as_type, i64, mask_bits, word
from ssmtool.execute.numerics.lanes import I1, I64, Builder, Value
from ssmtool.execute.program.flat import Op


def barrier(gang: Gang, op: Op) -> None:
    """Before a barrier: the lanes that run must be all that live, and all that live all that there were."""
    if not gang.mode.checks or gang.full:
        return
    b = gang.builder
    live = b.load(gang.live)
    reach = as_type(b, mask_bits(b, gang.mask), I64)
    for fault, missing in (
        (Fault.BARRIER_DIVERGENCE, b.and_(live, b.not_(gang.mask))),
        (Fault.BARRIER_EXITED, b.and_(gang.existing(), b.not_(live))),
    ):
        with gang.rarely(any_lane(b, missing)):
            gang.report(fault, gang.sites.of(op), gang.thread_zero, i64(0), reach)


def opened(
    b: Builder, launch: Value, block: Value, frame: Callable[[Value], Value], count: Value, alive: Value
) -> None:
    """Barriers open while whole warps have exited: told once, for the first warp that waited for all threads."""
    told = b.alloca(I1)
    b.store(ir.Constant(I1, 0), told)
    from ssmtool.execute.lower.blocks import Loop

    with b.if_then(b.icmp_unsigned("<", alive, count), likely=False), Loop(b, count) as number:
        own = frame(number)
        waits = b.icmp_unsigned("!=", word(b, own, FrameSlot.RESUME), i64(FINISHED & (2**64 - 1)))
        opens = b.icmp_unsigned("!=", word(b, own, FrameSlot.OPEN), i64(0))
        everyone = b.icmp_unsigned("==", word(b, own, FrameSlot.THREADS), i64(0))
        first = b.not_(b.load(told))
        with b.if_then(b.and_(b.and_(waits, opens), b.and_(everyone, first))):
            b.store(ir.Constant(I1, 1), told)
            site = word(b, own, FrameSlot.SITE)
            thread = b.mul(number, i64(32))
            kind = i64(Fault.BARRIER_EXITED)
            call_report(b, launch, kind, site, block, thread, i64(0), i64(0xFFFFFFFF))
