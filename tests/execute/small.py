"""Small PTX kernels for tests: a body between a fixed head and end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ssmtool.execute import LaunchResult, Module

HEADER = ".version 7.4\n.target sm_37\n.address_size 64\n"


def kernel(body: str, params: str = ".param .u64 out", module: str = "", head: str = "") -> str:
    """A module whose entry `k` declares plenty of registers and runs `body`.

    `%rd0` is the first parameter, `%i` the thread's number in its block of any shape.
    """
    first = params.split()[2].rstrip(",")
    return f"""{HEADER}{module}
.visible .entry k({params})
{{
.reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<40>; .reg .f64 %fd<10>;
.reg .b32 %i;
{head}
mad.lo.u32 %i, %tid.z, %ntid.y, %tid.y;
mad.lo.u32 %i, %i, %ntid.x, %tid.x;
ld.param.u64 %rd0, [{first}];
{body}
END:
ret;
}}
"""


def run(text: str, args: list[Any], block: Any = 32, grid: Any = 1, shared_bytes: int = 0, **more: Any) -> LaunchResult:
    """Launch `k`."""
    return Module(text).launch("k", grid, block, args, shared_bytes=shared_bytes, **more)


def words(body: str, count: int = 1, block: Any = 32, **more: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """What a body leaves in its threads' own `count` words, at `%rd1`: an array [thread, word]."""
    grid = more.pop("grid", 1)
    threads = int(np.prod(block)) * int(np.prod(grid))
    out = np.full((threads, count), 0xEEEEEEEE, np.uint32)
    place = f"""
    mul.lo.u32 %r39, %ntid.x, %ntid.y; mul.lo.u32 %r39, %r39, %ntid.z; mad.lo.u32 %r39, %ctaid.x, %r39, %i;
    mad.wide.u32 %rd1, %r39, {4 * count}, %rd0;
    """
    head, module = more.pop("head", ""), more.pop("module", "")
    run(kernel(place + body, module=module, head=head), [out], block, grid, **more)
    return out
