"""Cases of the recurrence: kernels 1, 8, 9, 10, 17 over positions, 12, 13, 16 over users' slots."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.build import Builder
from ssmtool.golden.case import GoldenCase

Arrays = dict[str, NDArray[Any]]
Edit = Callable[[Arrays], None]
Makers = Iterator[tuple[str, Callable[[], GoldenCase]]]

SEQ, UNROLL, WARP = "fc_ssm_recurrence_seq", "fc_ssm_recurrence_seq_unroll128", "fc_ssm_recurrence_seq_warp"
ONE, SLOTS, TWO_PASS = "fc_ssm_recurrence", "fc_ssm_recurrence_slots", "fc_ssm_recurrence_slots_2pass"
MULTI, SLOTS_WARP = "fc_ssm_recurrence_seq_warp_multi", "fc_ssm_recurrence_slots_warp"
# Kernel 17 in its shapes for eight and for four rows a warp: a run each.
MULTI_OF_FOUR = f"{MULTI} (8 blocks)"
EVERY_SEQ = (SEQ, UNROLL, WARP, MULTI, MULTI_OF_FOUR)
# The size that the unrolled and the warp kernels are made for.
SPECIAL = 128
# Shapes of kernel 16: blocks in x, threads. Eight, four and two rows a warp; and two rows in blocks of four warps.
_SLOT_SHAPES = ((16, 32), (32, 32), (64, 32), (16, 128))

_POLICY = "recurrence"
_MISTAKES = ("linear-decay", "scale-missing", "state-transposed", "y-from-old-state", "beta-missing")


def inputs(
    b: Builder, steps: int, heads: int, size: int, *, key_heads: int = 0, state: tuple[int, ...] | None = None
) -> Arrays:
    """What a model feeds: q and k of norm 1 (repeated from `key_heads`), decays of 0.9 to 1, beta between 0 and 1."""
    used = key_heads or heads
    repeated = np.arange(heads) % used
    arrays: Arrays = {
        "q": b.random.unit("q", (steps, used, size))[:, repeated],
        "k": b.random.unit("k", (steps, used, size))[:, repeated],
        "v": b.random.bell("v", (steps, heads, size)),
        "g": b.random.uniform("g", (steps, heads), -0.1, -0.001),
        "beta": b.random.uniform("beta", (steps, heads), 0.05, 0.95),
    }
    if state is not None:
        arrays["s"] = b.random.bell("s", state, -2)
    return arrays


def sequence(
    name: str,
    title: str,
    *,
    heads: int,
    size: int,
    n: int,
    kernels: Sequence[str] = (SEQ,),
    splits: Sequence[Sequence[int]] = (),
    steps: bool = False,
    slots: bool = False,
    two_pass: bool = True,
    snaps: bool = False,
    fresh: bool = False,
    key_heads: int = 0,
    edit: Edit | None = None,
    policy: str = _POLICY,
    exposes: Sequence[str] = (),
) -> GoldenCase:
    """Positions of one user: by each of `kernels`, in chunks, step by step, and as the only user of a slot kernel."""
    conventions = {"n_k_heads": key_heads} if key_heads else {}
    b = Builder(f"recurrence/{name}", title, exposes=exposes, **conventions)
    arrays = inputs(b, max(n, 1), heads, size, key_heads=key_heads, state=None if fresh else (heads, size, size))
    if edit is not None:
        edit(arrays)
    changes = policy if n else None
    if fresh:
        b.zero("s", (heads, size, size), "h j i", changes, group="h")
    else:
        b.given("s", arrays["s"], "h j i", changes, group="h")
    for each, axes in (("q", "t h i"), ("k", "t h i"), ("v", "t h j"), ("g", "t h"), ("beta", "t h")):
        b.given(each, arrays[each], axes)
    b.poison("y", (max(n, 1), heads, size), "t h j", changes, group="h")
    if snaps:
        b.poison("snaps", (max(n, 1), heads, size, size), "t h j i", changes, group="t h")
    chunk = functools.partial(_chunk, b, heads=heads, size=size, snaps=snaps)
    for kernel in kernels:
        chunk(kernel, kernel, 0, n)
    for split in splits:
        for kernel in kernels:
            start = 0
            for length in split:
                chunk(f"{kernel} {'+'.join(map(str, split))}", kernel, start, length)
                start += length
    scale = 1 / math.sqrt(size)
    for t in range(n if steps or slots else 0):
        at = _arguments(t, heads, size)
        if steps:
            b.launch(f"{ONE} x {n}", ONE, (size, heads), size, size, *at, size, scale)
        if slots:
            b.launch(f"{SLOTS} x {n}", SLOTS, (size, heads, 1), size, size, *at, size, heads, scale)
        if slots and two_pass:  # its regrouped sum ends otherwise where terms cancel or are infinite
            b.launch(f"{TWO_PASS} x {n}", TWO_PASS, (size, heads, 1), size, 3 * size, *at, size, heads, scale)
        if slots and size == SPECIAL:
            b.launch(f"{SLOTS_WARP} x {n}", SLOTS_WARP, (16, heads, 1), 128, 0, *at, size, heads, scale)
    return b.case()


def _arguments(t: int, heads: int, size: int) -> list[tuple[str, int]]:
    row = t * heads * size
    return [("s", 0), ("q", row), ("k", row), ("v", row), ("g", t * heads), ("beta", t * heads), ("y", row)]


def _chunk(
    b: Builder, run: str, kernel: str, start: int, length: int, *, heads: int, size: int, snaps: bool, state: Any = "s",
    inside: int | None = None,
) -> None:  # fmt: skip
    """One launch of a sequence kernel over positions start to start + length."""
    grid, block, shared = (size, heads), size, size
    if kernel == WARP:
        grid, block, shared = (size // 4, heads), 128, 2 * length
    if kernel.startswith(MULTI):
        grid, block, shared = (8 if kernel == MULTI_OF_FOUR else 4, heads), 128, 0
    at = _arguments(min(start, max(start + length - 1, 0)), heads, size)[1:]
    image = ("snaps", (start if inside is None else inside) * heads * size * size) if snaps else None
    entry = kernel.partition(" ")[0]
    b.launch(run, entry, grid, block, shared, state, *at, size, heads, length, 1 / math.sqrt(size), image)


def resumed(short: str, kernels: Sequence[str], size: int) -> GoldenCase:
    """Draft of 4, accept 2: the third position is done again, with another token, from the snapshot of the second."""
    heads, n = 2, 4
    b = Builder(
        f"recurrence/resume-{short}",
        "speculative decoding: 4 drafted, 2 accepted, a new third from snaps[1]",
        exposes=("snapshot-before", "snapshots-reversed"),
    )
    arrays = inputs(b, n + 1, heads, size, state=(heads, size, size))
    b.given("s", arrays["s"], "h j i", _POLICY, group="h")
    for each, axes in (("q", "t h i"), ("k", "t h i"), ("v", "t h j"), ("g", "t h"), ("beta", "t h")):
        b.given(each, arrays[each], axes)
    b.poison("y", (n + 1, heads, size), "t h j", _POLICY, group="h")
    # snaps[1] itself is the state that the resumed launch works on.
    b.poison("snaps", (n, heads, size, size), "t h j i", _POLICY, group="t h")
    for kernel in kernels:
        _chunk(b, kernel, kernel, 0, n, heads=heads, size=size, snaps=True)
        _chunk(b, kernel, kernel, n, 1, heads=heads, size=size, snaps=False, state=("snaps", heads * size * size))
    return b.case()


def guard(short: str, kernel: str, size: int) -> GoldenCase:
    """A kernel made for S = 128 is given another: it must return at once."""
    b = Builder(
        f"recurrence/guard-{short}-s{size}", f"S = {size}: nothing is written", exposes=("guard-missing",)
    )  # fmt: skip
    heads, n = 2, 2
    arrays = inputs(b, n, heads, size, state=(heads, size, size))
    b.given("s", arrays["s"], "h j i")
    for each, axes in (("q", "t h i"), ("k", "t h i"), ("v", "t h j"), ("g", "t h"), ("beta", "t h")):
        b.given(each, arrays[each], axes)
    b.poison("y", (n, heads, size), "t h j")
    b.poison("snaps", (n, heads, size, size), "t h j i")
    _chunk(b, kernel, kernel, 0, n, heads=heads, size=size, snaps=True)
    return b.case()


def guard_shape() -> GoldenCase:
    """Kernel 17 in shapes that are none of its own: it must return at once."""
    b = Builder("recurrence/guard-warp-multi-shape", "16 blocks and 2 blocks: nothing is written")
    heads, size = 1, SPECIAL
    arrays = inputs(b, 1, heads, size)
    b.zero("s", (heads, size, size), "h j i")
    for each, axes in (("q", "t h i"), ("k", "t h i"), ("v", "t h j"), ("g", "t h"), ("beta", "t h")):
        b.given(each, arrays[each], axes)
    b.poison("y", (1, heads, size), "t h j")
    for blocks in (16, 2):
        at = _arguments(0, heads, size)
        b.launch(
            f"{MULTI} ({blocks} blocks)", MULTI, (blocks, heads), 128, 0, *at, size, heads, 1, 1 / math.sqrt(size), None
        )
    return b.case()


def users(
    name: str,
    title: str,
    *,
    count: int,
    heads: int,
    size: int,
    launched: int = 0,
    fresh: Sequence[int] = (),
    separate: bool = False,
    exposes: Sequence[str] = (),
) -> GoldenCase:
    """One position of `count` users' slots, of which `launched` (all) are worked on; `fresh` ones start from zero."""
    b = Builder(f"slots/{name}", title, exposes=exposes)
    arrays = inputs(b, count, heads, size, state=(count, heads, size, size))
    if len(fresh) == count:
        _readable(arrays)
        b.zero("s", (count, heads, size, size), "user h j i", _POLICY, group="user h")
    else:
        arrays["s"][list(fresh)] = 0
        b.given("s", arrays["s"], "user h j i", _POLICY, group="user h")
    for each, axes in (("q", "h i"), ("k", "h i"), ("v", "h j"), ("g", "h"), ("beta", "h")):
        b.given(each, arrays[each], f"user {axes}")
    b.poison("y", (count, heads, size), "user h j", _POLICY, group="user h")
    users_of = launched or count
    scale = 1 / math.sqrt(size)
    names = ("s", "q", "k", "v", "g", "beta", "y")
    for kernel, shared in ((SLOTS, size), (TWO_PASS, 3 * size)):
        b.launch(kernel, kernel, (size, heads, users_of), size, shared, *names, size, heads, scale)
    for blocks, threads in _SLOT_SHAPES if size == SPECIAL else ():
        run = f"{SLOTS_WARP} ({blocks} x {threads})"
        b.launch(run, SLOTS_WARP, (blocks, heads, users_of), threads, 0, *names, size, heads, scale)
    for user in range(users_of if separate else 0):
        at = [("s", user * heads * size * size), *_arguments(user, heads, size)[1:]]
        b.launch(f"{ONE} x {users_of}", ONE, (size, heads), size, size, *at, size, scale)
    return b.case()


def guard_slots(name: str, title: str, *, size: int, blocks: int, exposes: Sequence[str] = ()) -> GoldenCase:
    """Kernel 16 with another state size, or in a shape that is none of its own: it must return at once."""
    b = Builder(f"slots/{name}", title, exposes=exposes)
    heads, count = 1, 2
    arrays = inputs(b, count, heads, size)
    b.zero("s", (count, heads, size, size), "user h j i")
    for each, axes in (("q", "h i"), ("k", "h i"), ("v", "h j"), ("g", "h"), ("beta", "h")):
        b.given(each, arrays[each], f"user {axes}")
    b.poison("y", (count, heads, size), "user h j")
    names = ("s", "q", "k", "v", "g", "beta", "y")
    b.launch(SLOTS_WARP, SLOTS_WARP, (blocks, heads, count), 32, 0, *names, size, heads, 1 / math.sqrt(size))
    return b.case()


def far_slots(name: str, heads: int, size: int) -> GoldenCase:
    """The smallest state whose last slot begins past element 2^31; only the slots about the edges are in the file."""
    per_slot = heads * size * size
    edge = -(-(2**31) // per_slot)
    # 2^30 elements is where offsets in bytes pass 32 bits unsigned, 2^31 where those in elements pass 32 bits signed.
    at: tuple[int, ...] = (0, -(-(2**30) // per_slot), edge - 1, edge)
    if size == SPECIAL:
        at = at[-1:]  # a slot of these takes as much of the file as five of the others
    b = Builder(
        f"slots/{name}",
        f"slot {edge} begins at element {edge * per_slot}: 8 GiB of state; offsets need 64 bits",
    )
    arrays = inputs(b, len(at), heads, size)
    _readable(arrays)
    count = edge + 1
    b.zero("s", (count, heads, size, size), "user h j i", _POLICY, group="user h", at=at)
    for each, axes in (("q", "h i"), ("k", "h i"), ("v", "h j"), ("g", "h"), ("beta", "h")):
        b.given(each, arrays[each], f"user {axes}", rows=count, at=at)
    b.poison("y", (count, heads, size), "user h j", _POLICY, group="user h", at=at)
    names, scale = ("s", "q", "k", "v", "g", "beta", "y"), 1 / math.sqrt(size)
    if size == SPECIAL:
        b.launch(SLOTS_WARP, SLOTS_WARP, (16, heads, count), 32, 0, *names, size, heads, scale)
        return b.case()
    for kernel, shared in ((SLOTS, size), (TWO_PASS, 3 * size)):
        b.launch(kernel, kernel, (size, heads, count), size, shared, *names, size, heads, scale)
    return b.case()


def _readable(arrays: Arrays) -> None:
    """Sets q = k: else the first output of a zero state is (q k) times delta, with a q k that may nearly cancel."""
    arrays["q"][...] = arrays["k"]


def _set(values: Mapping[str, float]) -> Edit:
    """Whole arrays to one value."""

    def edit(arrays: Arrays) -> None:
        for name, value in values.items():
            arrays[name][...] = value

    return edit


def _denormal(arrays: Arrays) -> None:
    arrays["s"] *= np.float32(2.0**-128)
    arrays["v"] *= np.float32(2.0**-130)


def _infinite(arrays: Arrays) -> None:
    arrays["s"][0, 2, 1] = np.inf
    arrays["s"][1, 5, 0] = -np.inf
    arrays["v"][1, 0, 6] = np.inf


def _nan(arrays: Arrays) -> None:
    arrays["s"][0, 2, 1] = np.nan  # row 2 of head 0, from the start
    arrays["v"][1, 1, 3] = np.nan  # row 3 of head 1, from position 1
    arrays["q"][1, 2, 5] = np.nan  # all outputs of head 2 at position 1, and no state


def _cancelling(arrays: Arrays) -> None:
    """Rows whose update cancels to the rounding error of k * delta: exact if it is rounded once, 0 if twice.

    k has two equal elements c = 1 + 2^-12, the row has -+R there, so that the prediction is exactly 0 and delta = v.
    """
    c = np.float32(1 + 2.0**-12)
    for name in ("q", "k", "s", "v"):
        arrays[name][...] = 0
    arrays["g"][...] = 0
    arrays["beta"][...] = 1
    arrays["k"][..., :2] = c
    arrays["q"][..., 0] = 1
    size = arrays["v"].shape[-1]
    v = (1 + (1 + 2 * np.arange(size, dtype=np.float32)) * np.float32(2.0**-12)).astype(np.float32)
    arrays["v"][...] = v
    rounded = (c * v).astype(np.float32)
    arrays["s"][..., 0], arrays["s"][..., 1] = -rounded, rounded


def makers() -> Makers:
    """Name and maker of every case here."""
    part = functools.partial

    def seq(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"recurrence/{name}", part(sequence, name, title, **options)

    def slot(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"slots/{name}", part(users, name, title, **options)

    yield seq("reference-t1", "the model's dimensions, one token", heads=32, size=128, n=1, kernels=EVERY_SEQ,
              steps=True, slots=True, exposes=_MISTAKES)  # fmt: skip
    yield seq("reference-t17", "the model's dimensions, 17 tokens of a new user", heads=32, size=128, n=17,
              kernels=EVERY_SEQ, fresh=True, key_heads=16, exposes=("grouped-heads", "lost-warp"))  # fmt: skip
    for n in (0, 1, 2, 3, 4, 17, 128):
        exposes = ("zero-length-writes",) if n == 0 else _MISTAKES
        yield seq(f"s128-t{n}", f"{n} positions, S = 128", heads=2 if n < 100 else 1, size=128, n=n, kernels=EVERY_SEQ,
                  snaps=n in (0, 3), steps=n in (2, 17), exposes=exposes)  # fmt: skip
    for size, n in ((8, 0), (16, 1), (2, 2), (1, 3), (16, 4), (32, 17), (16, 128), (256, 2)):
        splits = {3: [(1, 2), (2, 1), (1, 1, 1)], 4: [(1, 3), (2, 2), (3, 1), (4, 0)], 17: [(1, 2, 14), (16, 1)]}
        yield seq(
            f"s{size}-t{n}",
            f"{n} positions, S = {size}",
            heads=3,
            size=size,
            n=n,
            splits=splits.get(n, []),
            steps=True,
            slots=True,
            exposes=("zero-length-writes",) if n == 0 else ("delta-missing",),
        )
    yield seq("chunks-s128", "chunks of 1 and 2 positions, snapshots of all", heads=2, size=128, n=4, kernels=EVERY_SEQ,
              splits=[(1, 3), (2, 2), (1, 1, 2)], snaps=True,
              exposes=("state-reset", "snapshot-before", "snapshots-reversed", "state-not-written"))  # fmt: skip
    yield seq("chunks", "chunks of 1 and 2 positions, snapshots of all", heads=3, size=16, n=5,
              splits=[(1, 4), (2, 3), (1, 2, 1, 1), (4, 1)], snaps=True,
              exposes=("snapshot-before", "snapshots-reversed"))  # fmt: skip
    yield "recurrence/resume-seq", part(resumed, "seq", (SEQ,), 16)
    yield "recurrence/resume-warp", part(resumed, "warp", (WARP, MULTI, MULTI_OF_FOUR), SPECIAL)
    specials = {"unroll128": UNROLL, "warp": WARP, "warp-multi": MULTI}
    for short, size in (("unroll128", 64), ("warp", 64), ("unroll128", 256), ("warp", 32), ("warp-multi", 64)):
        yield f"recurrence/guard-{short}-s{size}", part(guard, short, specials[short], size)
    yield "recurrence/guard-warp-multi-shape", part(guard_shape)

    small = {"heads": 2, "size": 8, "steps": True, "slots": True}
    yield seq("mistake-grouped-heads", "4 V-heads of 2 K-heads: grouped pairs agree in the first and last head only",
              heads=4, size=8, n=2, key_heads=2, steps=True, exposes=("grouped-heads",))  # fmt: skip
    yield seq("mistake-transposed-state", "a state that is not symmetric, from the start", n=1,
              exposes=("state-transposed", "state-read-transposed", "state-written-transposed"), **small)  # fmt: skip
    yield seq("mistake-rms-norm", "norms of 1: vectors of RMS 1 blow the state up", n=24,
              exposes=("rms-instead-of-l2",), **small)  # fmt: skip
    yield seq(
        "mistake-linear-decay",
        "g is a logarithm",
        n=2,
        exposes=("linear-decay", "decay-twice", "decay-missing"),
        **small,
    )
    yield seq("mistake-scale", "y is scaled by 1/sqrt(S), once", n=1, exposes=("scale-missing", "scale-twice"), **small)
    yield seq(
        "mistake-order",
        "decay, predict, update, read",
        n=3,
        exposes=(
            "y-from-old-state",
            "predicted-before-decay",
            "decay-after-update",
            "beta-missing",
            "decay-on-update",
            "delta-missing",
            "qk-swapped",
        ),
        **small,
    )
    yield seq(
        "mistake-unfused-update",
        "updates that cancel to the rounding error of their product",
        n=1,
        edit=_cancelling,
        policy="elementwise",
        two_pass=False,
        exposes=("unfused-update",),
        **small,
    )
    yield seq("strong-decay", "g = -26 for 8 tokens: products of decays underflow, their quotients are NaN", n=8,
              edit=_set({"g": -26.0}), exposes=("decay-quotients",), **small)  # fmt: skip
    yield seq("strong-decay-s128", "g = -26 for 16 tokens, S = 128", heads=1, size=128, n=16, kernels=EVERY_SEQ,
              slots=True, edit=_set({"g": -26.0}), exposes=("decay-quotients",))  # fmt: skip
    yield seq("decay-to-zero", "g = -200: nothing of the state is left", n=3, edit=_set({"g": -200.0}), **small)
    yield seq("decay-none", "g = 0: nothing is forgotten", n=3, edit=_set({"g": 0.0}), **small)
    yield seq("beta-zero", "beta = 0: nothing is learnt", n=3, edit=_set({"beta": 0.0}), exposes=("beta-missing",),
              **small)  # fmt: skip
    yield seq(
        "drift-2048",
        "2048 tokens: roundings add up",
        heads=2,
        size=16,
        n=2048,
        exposes=("state-bf16", "state-fp16"),
        splits=[(1, 1023, 1024)],
    )
    yield seq("drift-2048-s128", "2048 tokens at S = 128", heads=1, size=128, n=2048, kernels=EVERY_SEQ, fresh=True,
              exposes=("state-bf16", "state-fp16"))  # fmt: skip
    yield seq("denormal", "a state of subnormal numbers", n=2, edit=_denormal, exposes=("subnormals-flushed",), **small)
    yield seq("denormal-s128", "a state of subnormal numbers, S = 128", heads=1, size=128, n=2, kernels=EVERY_SEQ,
              slots=True, edit=_denormal, exposes=("subnormals-flushed",))  # fmt: skip
    yield seq("infinite", "infinities stay in their rows", n=2, edit=_infinite, two_pass=False, **small)
    yield seq("infinite-s128", "infinities stay in their rows, S = 128", heads=2, size=128, n=2, kernels=EVERY_SEQ,
              slots=True, edit=_infinite, two_pass=False)  # fmt: skip
    for size, kernels in ((8, (SEQ,)), (128, EVERY_SEQ)):
        yield seq(f"nan-s{size}", "NaN in one lane stays in its row and head", heads=4, size=size, n=2, kernels=kernels,
                  edit=_nan, steps=True, slots=True, exposes=("nan-spread",))  # fmt: skip

    mixed = ("slot-0-for-all", "slots-shifted")
    yield slot("k1", "one user", count=1, heads=2, size=16, separate=True, exposes=("scale-missing",))
    yield slot("k3", "three users", count=3, heads=2, size=16, separate=True, exposes=mixed)
    yield slot("k32", "32 users", count=32, heads=2, size=16, separate=True, exposes=mixed)
    yield slot("k3-s128", "three users, S = 128", count=3, heads=2, size=128, separate=True, exposes=mixed)
    yield slot("reference-k2", "the model's dimensions, two new users", count=2, heads=32, size=128, fresh=[0, 1],
               exposes=("beta-missing",))  # fmt: skip
    yield slot("mistake-reused-slot", "a new user in slot 1: its state is zero, not its neighbour's", count=2, heads=1,
               size=4, fresh=[1], separate=True, exposes=mixed)  # fmt: skip
    yield slot("mistake-padding", "2 of 3 slots launched: the third keeps its state, its outputs are not written",
               count=3, heads=2, size=8, launched=2, separate=True, exposes=("all-slots",))  # fmt: skip
    yield "slots/guard-warp-s64", part(guard_slots, "guard-warp-s64", "S = 64: nothing is written", size=64, blocks=16,
                                       exposes=("guard-missing",))  # fmt: skip
    yield "slots/guard-warp-shape", part(guard_slots, "guard-warp-shape", "8 warps of 16 rows each: nothing is written",
                                         size=SPECIAL, blocks=8)  # fmt: skip
    for name, heads, size in (("past-2-to-the-31", 9, 64), ("past-2-to-the-31-s128", 3, SPECIAL)):
        yield f"slots/{name}", part(far_slots, name, heads, size)
