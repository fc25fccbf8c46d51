"""What watch mode adds: every access of one block to one place in shared memory is told, in the order they are made.

It runs after a race was found, to name the access on the other side: the shadow cells that find races hold threads,
and instructions as well would double them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ssmtool.execute.layout import WATCHED, LaunchSlot, WorkerSlot
from ssmtool.execute.lower.access import Target
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.lower.runtime import POINTER, Region, call_report, lane_loop
from ssmtool.execute.lower.values import i64, mask_bits, word
from ssmtool.execute.numerics.lanes import I64, Value


def accessed(gang: Gang, target: Target, mask: Value) -> None:
    """A load, store or atomic that the lanes of `mask` have made."""
    if not gang.mode.watch or target.region not in (Region.SHARED, Region.GENERIC):
        return
    b = gang.builder
    room = gang.alloca(gang.vector(I64))
    b.store(gang.spread(target.address), room)
    arguments = gang.arguments
    b.call(
        _function(b.module, gang.lanes),
        [
            arguments.launch,
            arguments.worker,
            b.bitcast(room, POINTER),
            mask_bits(b, mask),
            i64(target.bytes),
            i64(target.site),
            arguments.block,
            gang.thread_zero,
        ],
    )


def _function(module: Value, lanes: int) -> Any:
    """`watch(launch, worker, addresses, mask, bytes, site, block, first thread)`."""
    found = module.globals.get("watch_lanes")
    if found is not None:
        return found
    bits = ir.IntType(lanes)
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, bits] + [I64] * 4)
    function = ir.Function(module, kind, "watch_lanes")
    function.linkage = "internal"
    function.attributes.add("noinline")
    launch, worker, addresses, mask, size, site, block, first = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    with b.if_then(b.icmp_unsigned("!=", block, word(b, launch, LaunchSlot.WATCHED_BLOCK))):
        b.ret_void()
    place = b.add(word(b, worker, WorkerSlot.SHARED), word(b, launch, LaunchSlot.WATCHED_OFFSET))
    with lane_loop(b, lanes, mask) as lane:
        address = b.load(b.gep(addresses, [lane]))
        with b.if_then(b.icmp_unsigned("<", b.sub(place, address), size)):
            call_report(b, launch, i64(WATCHED), site, block, b.add(first, lane), address, size)
    b.ret_void()
    return function
