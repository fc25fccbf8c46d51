"""Forms of the instructions that are not arithmetic, as one-line bodies: memory, lanes, barriers, control.

Every form is compiled by `test_others.py`; what it gives is checked by the test that its family names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
LOADED = ("global", "shared", "local", "const", "param", "")
HINTS = ("volatile", "relaxed.gpu", "acquire.sys", "weak")
CACHE = ("ca", "cg", "cs", "lu", "cv", "nc", "L1::evict_last", "L2::64B")


@dataclass(frozen=True)
class Family:
    """Forms that belong together: what they are, how their results are checked, and by which test."""

    name: str
    oracle: str
    test: str
    forms: tuple[str, ...]


def _register(kind: str) -> str:
    return {"f32": "%f", "f64": "%fd", "b16": "%h", "u16": "%h", "s16": "%h"}.get(kind) or (
        "%rd" if kind.endswith("64") else "%r"
    )


def _registers(kind: str, count: int) -> str:
    names = ", ".join(f"{_register(kind)}{k + 1}" for k in range(count))
    return names if count == 1 else f"{{{names}}}"


def _widths(kind: str) -> list[tuple[int, str]]:
    return [(count, "" if count == 1 else f".v{count}") for count in (1, 2, 4) if count * int(kind[1:]) <= 128]


def _base(space: str) -> str:
    return {"shared": "s", "local": "l", "const": "c", "param": "many"}.get(space, "%rd0")


def _dot(word: str) -> str:
    return f".{word}" if word else ""


def _loads() -> Iterator[str]:
    for space, kind in product(LOADED, TYPES):
        for count, vector in _widths(kind):
            yield f"ld{_dot(space)}{vector}.{kind} {_registers(kind, count)}, [{_base(space)}];"
    for hint, space, kind in product(HINTS, ("global", "shared", ""), TYPES):
        yield f"ld.{hint}{_dot(space)}.{kind} {_registers(kind, 1)}, [{_base(space)}];"
    for hint, kind in product(CACHE, TYPES):
        yield f"ld.global.{hint}.{kind} {_registers(kind, 1)}, [%rd0];"
    for kind in TYPES:
        for count, vector in _widths(kind):
            yield f"ldu.global{vector}.{kind} {_registers(kind, count)}, [%rd0];"


def _stores() -> Iterator[str]:
    for space, kind in product(("global", "shared", "local", ""), TYPES):
        for count, vector in _widths(kind):
            yield f"st{_dot(space)}{vector}.{kind} [{_base(space)}], {_registers(kind, count)};"
    for hint, space, kind in product(
        ("volatile", "relaxed.gpu", "release.sys", "weak"), ("global", "shared", ""), TYPES
    ):
        yield f"st.{hint}{_dot(space)}.{kind} [{_base(space)}], {_registers(kind, 1)};"
    for hint, kind in product(("wb", "cg", "cs", "wt"), TYPES):
        yield f"st.global.{hint}.{kind} [%rd0], {_registers(kind, 1)};"


def _atomics() -> Iterator[str]:
    kinds = {
        **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
        "add": ("u32", "s32", "u64", "f32", "f64"),
        "inc": ("u32",),
        "dec": ("u32",),
        "min": ("u32", "s32", "u64", "s64"),
        "max": ("u32", "s32", "u64", "s64"),
    }
    for space, scope in product(("global", "shared", ""), ("", ".relaxed.gpu", ".acq_rel.cta")):
        place = _base(space)
        for op, types in kinds.items():
            for kind in types:
                stem = _register(kind)
                yield f"atom{scope}{_dot(space)}.{op}.{kind} {stem}1, [{place}], {stem}2;"
                if ".acq" not in scope:
                    yield f"red{scope}{_dot(space)}.{op}.{kind} [{place}], {stem}2;"
        for kind in ("b32", "b64"):
            stem = _register(kind)
            yield f"atom{scope}{_dot(space)}.exch.{kind} {stem}1, [{place}], {stem}2;"
            yield f"atom{scope}{_dot(space)}.cas.{kind} {stem}1, [{place}], {stem}2, {stem}3;"


def _moves() -> Iterator[str]:
    for kind in ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"):
        yield f"mov.{kind} {_register(kind)}1, {_register(kind)}2;"
        yield f"mov.{kind} {_register(kind)}1, {'1.5' if kind[0] == 'f' else '7'};"
    yield from (
        "mov.pred %p1, %p2;", "mov.b32 %r1, {%h1, %h2};", "mov.b32 {%h1, %h2}, %r1;", "mov.b64 %rd1, {%r1, %r2};",
        "mov.b64 {%r1, %r2}, %rd1;", "mov.b64 %rd1, {%h1, %h2, %h3, %h4};", "mov.b64 {%h1, %h2, %h3, %h4}, %rd1;",
        "mov.b64 {%r1, _}, %rd1;", "mov.b32 %f1, %r1;", "mov.b32 %r1, %f1;", "mov.b64 %fd1, %rd1;", "mov.u64 %rd1, s;",
        "mov.u64 %rd1, l;", "mov.u64 %rd1, c;", "mov.u64 %rd1, g+4;", "mov.u32 %r1, s;",
    )  # fmt: skip
    for space in ("global", "shared", "local", "const"):
        yield f"cvta.{space}.u64 %rd1, %rd2;"
        yield f"cvta.to.{space}.u64 %rd1, %rd2;"
    for space in ("global", "shared", "local"):
        yield f"isspacep.{space} %p1, %rd1;"
    for name in (
        "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x",
        "%nctaid.y", "%nctaid.z", "%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le",
        "%lanemask_gt", "%lanemask_ge", "%smid", "%nsmid", "%gridid", "%clock", "%total_smem_size",
        "%dynamic_smem_size",
    ):  # fmt: skip
        yield f"mov.u32 %r1, {name};"
    yield "mov.u64 %rd1, %clock64;"


def _lanes() -> Iterator[str]:
    for mode, to, lane, clamp in product(
        ("up", "down", "bfly", "idx"), ("%r1", "%r1|%p1"), ("3", "%r3"), ("31", "%r4")
    ):
        yield f"shfl.{mode}.b32 {to}, %r2, {lane}, {clamp};"
        yield f"shfl.sync.{mode}.b32 {to}, %r2, {lane}, {clamp}, -1;"
    for mode, source in product(("all", "any", "uni"), ("%p2", "!%p2")):
        yield f"vote.{mode}.pred %p1, {source};"
        yield f"vote.sync.{mode}.pred %p1, {source}, -1;"
    yield from ("vote.ballot.b32 %r1, %p2;", "vote.sync.ballot.b32 %r1, !%p2, -1;", "activemask.b32 %r1;")
    for kind, stem in (("b32", "%r"), ("b64", "%rd")):
        yield f"match.any.sync.{kind} %r1, {stem}2, -1;"
        yield f"match.all.sync.{kind} %r1|%p1, {stem}2, -1;"


def _barriers() -> Iterator[str]:
    yield "bar.warp.sync -1;"
    for stem, name, count in product(("bar.sync", "barrier.sync", "barrier.sync.aligned"), ("0", "15"), ("", ", 64")):
        yield f"{stem} {name}{count};"
    yield from ("bar.cta.sync 0;", "barrier.cta.sync.aligned 0;", "bar.arrive 1, 64;", "barrier.arrive 1, 64;")
    for stem, source in product(("bar.red", "barrier.red", "bar.cta.red", "barrier.cta.red"), ("%p2", "!%p2")):
        yield f"{stem}.popc.u32 %r1, 0, {source};"
        yield f"{stem}.and.pred %p1, 0, {source};"
        yield f"{stem}.or.pred %p1, 0, {source};"
    yield from ("membar.cta;", "membar.gl;", "membar.sys;", "fence.sc.cta;", "fence.acq_rel.gpu;")


def _control() -> Iterator[str]:
    yield from (
        "bra END;", "bra.uni END;", "@%p1 bra END;", "@!%p1 bra END;", "@%p1 exit;", "exit;", "@%p1 ret;", "ret;",
        "trap;", "@%p1 trap;", "T: .branchtargets END, END; brx.idx %r1, T;", "brkpt;", "nanosleep.u32 100;",
        "pmevent 1;", "prefetch.global.L2 [%rd0];", "prefetchu.L1 [%rd0];", "discard.global.L2 [%rd0], 128;",
        "applypriority.global.L2::evict_normal [%rd0], 128;", "call nothing;", "@%p1 call nothing;",
        "call (%r1), same, (%r2);",
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), by_param, (a); ld.param.b32 %r2, [b]; }",
    )  # fmt: skip


FAMILIES = (
    Family("`ld`, `ldu`", "bytes counted in NumPy", "test_memory.py", tuple(_loads())),
    Family("`st`", "bytes counted in NumPy", "test_memory.py", tuple(_stores())),
    Family("`atom`, `red`", "Python, one thread after the other", "test_atomics.py", tuple(_atomics())),
    Family("`mov`, `cvta`, `isspacep`, special registers", "Python", "test_memory.py, test_warp.py", tuple(_moves())),
    Family("`shfl`, `vote`, `match`, `activemask`", "the ISA's pseudo-code in Python", "test_warp.py", tuple(_lanes())),
    Family("`bar`, `barrier`, `membar`, `fence`", "Python", "test_barriers.py", tuple(_barriers())),
    Family(
        "branches, calls, ends, hints",
        "an interpreter, one thread after the other, on random kernels",
        "test_divergence.py, test_calls.py",
        tuple(_control()),
    ),
)

MODULE = """
.global .align 16 .b8 g[64]; .const .align 16 .b8 c[64];
.func nothing() { ret; }
.func (.reg .b32 %out) same(.reg .b32 %in) { mov.b32 %out, %in; ret; }
.func (.param .b32 r) by_param(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; st.param.b32 [r], %r; ret; }
"""
HEAD = ".shared .align 16 .b8 s[64]; .local .align 16 .b8 l[64];"
PARAMS = ".param .u64 out, .param .align 16 .b8 many[64]"
