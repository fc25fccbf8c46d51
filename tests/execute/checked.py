"""Tiny kernels in checked mode: a body of PTX in, what was told out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ssmtool.execute.faults import KernelFault
from ssmtool.execute.lower.checks import cells
from ssmtool.execute.module import Module
from ssmtool.execute.result import LaunchResult

Told = tuple[str, str, int, int | None]
"""(rule, instruction, thread, other thread) of a report; threads by %tid.x."""

_HEAD = """\
.version 7.4
.target sm_37
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .f64 %d<8>; .reg .b64 %rd<16>;
.shared .align 16 .b8 s[1024];
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u32 %r9, [n];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, s;
add.u32 %r3, %r3, %r2;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
setp.eq.u32 %p1, %r1, 0;
setp.lt.u32 %p2, %r1, 32;
"""
"""%r1 thread, %r2 four times it, %r3 its word of s, %rd1 a, %rd2 b, %rd4 and %rd5 its words of them, %r9 n."""

WIDE = "bar.sync 0;"
"""A barrier that all reach: the block runs as one vector."""
WARPS = "mov.u32 %r31, %laneid; bar.sync 0;"
"""A lane number: it runs warp by warp."""


def text_of(body: str) -> str:
    """The whole PTX."""
    lines = [f"{line.strip()};" for line in body.replace("\n", " ").split(";") if line.strip()]
    lines = [line.replace(": ", ":\n") for line in lines]
    return _HEAD + "\n".join(lines) + "\nret;\n}\n"


def run(body: str, block: Any = 64, grid: Any = 1, n: int = 0, threads: int | None = 1, **options: Any) -> LaunchResult:
    """Launch `body` with two zeroed arrays `a` and `b` of 1024 words, every check on; faults are collected."""
    module = _module(text_of(body), cells.MOST_TICKS)
    arrays = [np.zeros(1024, np.uint32) for _ in range(2)]
    return module.launch("k", grid, block, [*arrays, n], check="all", on_fault="collect", threads=threads, **options)


@lru_cache(maxsize=16)
def _module(text: str, _: int) -> Module:
    """A module keeps its kernels; how many ticks there are is in them."""
    return Module(text)


def told(reports: tuple[KernelFault, ...]) -> list[Told]:
    """What is asked of a report."""
    return [
        (each.rule, each.text.rstrip(";"), each.thread[0], each.other[0] if each.other else None) for each in reports
    ]


def faults(body: str, block: Any = 64, **options: Any) -> list[Told]:
    """Faults of `body`, in the order of the PTX."""
    return told(run(body, block, **options).faults)


def notes(body: str, block: Any = 64, **options: Any) -> list[Told]:
    """Notes of `body`; it must have no faults."""
    result = run(body, block, **options)
    assert not result.faults, [str(each) for each in result.faults]
    return told(result.notes)


def silent(body: str, block: Any = 64, **options: Any) -> LaunchResult:
    """The result of a `body` of which nothing is told."""
    result = run(body, block, **options)
    assert not result.faults and not result.notes, [str(each) for each in (*result.faults, *result.notes)]
    return result
