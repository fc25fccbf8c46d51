"""Kernels written by hand in LLVM IR, as the lowering would: the runner is tested without it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

from ssmtool import ptx
from ssmtool.execute.layout import (
    AllocationSlot,
    Fault,
    KernelFacts,
    LaunchSlot,
    Mode,
    Param,
    Site,
    SiteSlot,
    WorkerSlot,
)
from ssmtool.execute.numerics.evidence import Level

PTX = """\
.version 7.4
.target sm_37
.address_size 64

.global .align 4 .f32 bias[4] = {1.0, 2.0, 3.0, 4.0};
.const .align 8 .u64 table[2] = {bias, bias+8};
.extern .global .u32 elsewhere;

.visible .entry scale(
    .param .u64 scale_param_0,
    .param .u64 scale_param_1,
    .param .f32 scale_param_2,
    .param .u32 scale_param_3
)
{
    ret;
}

.visible .entry spin(.param .u64 spin_param_0)
.reqntid 32
{
    ret;
}

.visible .entry bounded(.param .align 8 .b8 bounded_param_0[16])
.maxntid 64, 2
{
    ret;
}
"""
"""What the entries below do is in their IR; this is only for names and parameters."""

NAMES = {"scale": ("y", "x", "a", "n")}


def _slot(table: str, slot: int, name: str) -> str:
    place = f"  %p.{name} = getelementptr i64, ptr %{table}, i64 {int(slot)}\n"
    return f"{place}  %{name} = load volatile i64, ptr %p.{name}\n"


_HEAD = "define void @run(ptr %launch, ptr %worker) {\nentry:\n" + "".join(
    _slot("launch", slot, name)
    for slot, name in (
        (LaunchSlot.TOTAL, "total"),
        (LaunchSlot.PARAMS, "params"),
        (LaunchSlot.ALLOCATIONS, "rows"),
        (LaunchSlot.ALLOCATION_COUNT, "count"),
        (LaunchSlot.REPORT, "report"),
        (LaunchSlot.CHUNK, "chunk"),
    )
)

SCALE = (
    _HEAD
    + _slot("worker", WorkerSlot.SITES, "sites")
    + _slot("worker", WorkerSlot.COUNTERS, "counters")
    + f"""
  %f = inttoptr i64 %report to ptr
  %pp = inttoptr i64 %params to ptr
  %r = inttoptr i64 %rows to ptr
  %s = inttoptr i64 %sites to ptr
  %y = load i64, ptr %pp
  %px = getelementptr i8, ptr %pp, i64 8
  %x = load i64, ptr %px
  %pa = getelementptr i8, ptr %pp, i64 16
  %a = load float, ptr %pa
  %pn = getelementptr i8, ptr %pp, i64 20
  %n32 = load i32, ptr %pn
  %n = zext i32 %n32 to i64
  %touched = getelementptr i64, ptr %s, i64 {4 + SiteSlot.TOUCHED}
  %pnext = getelementptr i64, ptr %launch, i64 {int(LaunchSlot.NEXT)}
  %pstop = getelementptr i64, ptr %launch, i64 {int(LaunchSlot.STOP)}
  br label %take
take:
  %first = atomicrmw add ptr %pnext, i64 %chunk monotonic
  %last = add i64 %first, %chunk
  br label %block
block:
  %b = phi i64 [ %first, %take ], [ %b1, %after ]
  %in = icmp slt i64 %b, %total
  br i1 %in, label %ask, label %out
ask:
  %stop = load volatile i64, ptr %pstop
  %go = icmp eq i64 %stop, 0
  br i1 %go, label %count1, label %out
count1:
  %pc = inttoptr i64 %counters to ptr
  %c = load i64, ptr %pc
  %c1 = add i64 %c, 1
  store i64 %c1, ptr %pc
  br label %thread
thread:
  %t = phi i64 [ 0, %count1 ], [ %t1, %next ]
  %i0 = mul i64 %b, 32
  %i = add i64 %i0, %t
  %some = icmp ult i64 %i, %n
  br i1 %some, label %check, label %next
check:
  %off = mul i64 %i, 4
  %to = add i64 %y, %off
  %from = add i64 %x, %off
  br label %search
search:
  %k = phi i64 [ 0, %check ], [ %k1, %other ]
  %left = icmp slt i64 %k, %count
  br i1 %left, label %row, label %bad
row:
  %k4 = mul i64 %k, 4
  %prow = getelementptr i64, ptr %r, i64 %k4
  %base = load i64, ptr %prow
  %pbytes = getelementptr i64, ptr %prow, i64 {int(AllocationSlot.BYTES)}
  %bytes = load i64, ptr %pbytes
  %end = add i64 %base, %bytes
  %to4 = add i64 %to, 4
  %low = icmp uge i64 %to, %base
  %high = icmp ule i64 %to4, %end
  %hit = and i1 %low, %high
  br i1 %hit, label %store, label %other
other:
  %k1 = add i64 %k, 1
  br label %search
bad:
  call void %f(i64 {int(Fault.OUT_OF_BOUNDS)}, i64 1, i64 %b, i64 %t, i64 %to, i64 4)
  br label %next
store:
  %bit = shl i64 1, %k
  %old = load i64, ptr %touched
  %new = or i64 %old, %bit
  store i64 %new, ptr %touched
  %q = inttoptr i64 %from to ptr
  %v = load float, ptr %q
  %w = fmul float %v, %a
  %d = inttoptr i64 %to to ptr
  store float %w, ptr %d
  br label %next
next:
  %t1 = add i64 %t, 1
  %more = icmp slt i64 %t1, 32
  br i1 %more, label %thread, label %after
after:
  %b1 = add i64 %b, 1
  %same = icmp slt i64 %b1, %last
  br i1 %same, label %block, label %take
out:
  ret void
}}
"""
)
"""y[i] = a * x[i] for i < n with blocks of 32; stores are checked and noted, loads are not. Counts thread blocks."""

SPIN = (
    _HEAD
    + f"""
  %f = inttoptr i64 %report to ptr
  %pbudget = getelementptr i64, ptr %launch, i64 {int(LaunchSlot.BUDGET)}
  br label %round
round:
  %i = phi i64 [ 0, %entry ], [ %i1, %round ]
  %i1 = add i64 %i, 1
  %budget = load volatile i64, ptr %pbudget
  %on = icmp sle i64 %i1, %budget
  br i1 %on, label %round, label %spent
spent:
  call void %f(i64 {int(Fault.BUDGET)}, i64 0, i64 0, i64 0, i64 0, i64 0)
  ret void
}}
"""
)
"""Goes round until the budget is spent."""

_SITES = (
    Site(13, "ld.global.f32 %f1, [%rd2]"),
    Site(15, "st.global.f32 [%rd1], %f2", "scale.cu:7", store=True, level=int(Level.UNIT_MODEL), units=("ex2.approx",)),
    Site(16, "st.global.f32 [%rd9], %f3", store=True, level=int(Level.CONTRACTION)),
)


@dataclass
class Lowered:
    ir: str
    facts: KernelFacts


def facts(entry: str, block: tuple[int, int, int], mode: Mode) -> KernelFacts:
    params = {
        "scale": (
            Param("scale_param_0", "u64", 0, 8),
            Param("scale_param_1", "u64", 8, 8),
            Param("scale_param_2", "f32", 16, 4),
            Param("scale_param_3", "u32", 20, 4),
        ),
        "spin": (Param("spin_param_0", "u64", 0, 8),),
        "bounded": (Param("bounded_param_0", "b8", 0, 16),),
    }[entry]
    return KernelFacts(
        entry,
        block,
        32,
        params,
        24,
        static_shared=1024,
        dynamic_offset=1024,
        local_bytes=16,
        frame_bytes=64,
        scratch_bytes=64,
        shadow_granule=4,
        symbols=("table",),
        sites=_SITES,
        counters=2,
        blocks=((0,), ()),
        mode=mode,
    )


class Lowering:
    """Stands in for `ssmtool.execute.lower.lower`; `calls` are the kernels it was asked for."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, module: ptx.Module, entry: str, block: tuple[int, int, int], mode: Mode) -> Lowered:
        self.calls.append(entry)
        return Lowered(SPIN if entry == "spin" else SCALE, facts(entry, block, mode))


def install(monkeypatch: pytest.MonkeyPatch) -> Lowering:
    """Put the stand-in in the lowering's place."""
    room, lowering = ModuleType("ssmtool.execute.lower"), Lowering()
    monkeypatch.setattr(room, "lower", lowering, raising=False)
    monkeypatch.setitem(sys.modules, "ssmtool.execute.lower", room)
    return lowering
