"""Special registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from ssmtool.execute.layout import LaunchSlot
from ssmtool.execute.lower.values import Lanes, i64, splat
from ssmtool.execute.numerics.lanes import I32, I64, Splat, Value
from ssmtool.execute.program.flat import Op, refuse

if TYPE_CHECKING:
    from ssmtool.execute.lower.gang import Gang

_AXES = "xyz"
_GRID = (LaunchSlot.NCTAID_X, LaunchSlot.NCTAID_Y, LaunchSlot.NCTAID_Z)
# A launch on the CPU has one SM and one grid; nothing else can be said of them.
_FIXED = {"%smid": 0, "%nsmid": 1, "%gridid": 0, "%ntid.w": 1, "%tid.w": 0, "%ctaid.w": 0, "%nctaid.w": 1}


def special(gang: Gang, op: Op, name: str) -> Lanes:
    """The value of a special register: i32, or i64 for `%clock64` and its like."""
    b, geometry = gang.builder, gang.geometry
    stem, _, axis = name.partition(".")
    if name in _FIXED:
        return Lanes(ir.Constant(I32, _FIXED[name]))
    if axis and axis in _AXES:
        place = _AXES.index(axis)
        if stem == "%ntid":
            return Lanes(ir.Constant(I32, geometry.block[place]))
        if stem == "%ctaid":
            return Lanes(b.trunc(gang.arguments.ctaid[place], I32))
        if stem == "%nctaid":
            return Lanes(b.trunc(gang.launch_word(_GRID[place]), I32))
        if stem == "%tid":
            return _tid(gang, place)
    if name == "%laneid":
        if gang.lanes == 32:
            return Lanes(ir.Constant(I32, 0), 1)
        return Lanes(b.and_(_numbers(gang), Splat(gang.vector(I32), ir.Constant(I32, 31))), None)
    if name == "%warpid":
        return Lanes(b.trunc(gang.arguments.gang, I32))
    if name == "%nwarpid":
        return Lanes(ir.Constant(I32, -(-geometry.threads // 32)))
    if name.startswith("%lanemask_"):
        return Lanes(_lanemask(gang, name.removeprefix("%lanemask_")), None)
    if name in ("%clock", "%clock64", "%clock_hi"):
        cycles = b.call(_counter(b.module), [])
        if name == "%clock64":
            return Lanes(cycles)
        return Lanes(b.trunc(b.lshr(cycles, i64(32)) if name == "%clock_hi" else cycles, I32))
    if name == "%dynamic_smem_size" or name == "%total_smem_size":
        return Lanes(b.trunc(gang.launch_word(LaunchSlot.SHARED_BYTES), I32))
    raise refuse(op, f"{name} has no meaning on the CPU")


def _counter(module: Value) -> Value:
    name = "llvm.readcyclecounter"
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(I64, []), name)


def _numbers(gang: Gang) -> Value:
    return gang.builder.trunc(gang.lane_numbers, gang.vector(I32))


def _tid(gang: Gang, place: int) -> Lanes:
    b, geometry = gang.builder, gang.geometry
    stride = geometry.special(f"%tid.{_AXES[place]}")
    below = [1, geometry.block[0], geometry.block[0] * geometry.block[1]][place]
    size = geometry.block[place]
    if stride is not None:
        first = b.trunc(b.udiv(gang.thread_zero, i64(below)), I32)
        if geometry.threads > below * size:
            first = b.urem(first, ir.Constant(I32, size))
        return Lanes(first if size > 1 else ir.Constant(I32, 0), stride)
    numbers = b.add(_numbers(gang), splat(b, b.trunc(gang.thread_zero, I32), gang.lanes))
    quotient = b.udiv(numbers, Splat(gang.vector(I32), ir.Constant(I32, below)))
    return Lanes(b.urem(quotient, Splat(gang.vector(I32), ir.Constant(I32, size))), None)


def _lanemask(gang: Gang, which: str) -> Value:
    b = gang.builder
    kind = gang.vector(I32)
    lane = b.and_(_numbers(gang), Splat(kind, ir.Constant(I32, 31)))
    own = b.shl(Splat(kind, ir.Constant(I32, 1)), lane)
    below = b.sub(own, Splat(kind, ir.Constant(I32, 1)))
    masks = {"eq": own, "lt": below, "le": b.or_(own, below)}
    masks["ge"], masks["gt"] = b.not_(below), b.not_(masks["le"])
    return masks[which]
