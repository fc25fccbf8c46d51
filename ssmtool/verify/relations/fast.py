"""R10 to R12: the fast kernels give the bits of those they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssmtool.golden.case import poisoned
from ssmtool.verify.contract import SPECIAL_SIZE, Dims
from ssmtool.verify.relations import (
    CONV_SLOTS,
    DECODE_STEP,
    GATE_NX,
    NORM,
    QKNORM_NX,
    REC_SEQ,
    REC_SLOTS,
    SIGMOID,
    SLOTS_WARP,
    WARP_MULTI,
    Relation,
)
from ssmtool.verify.relations.bench import F32, Bench
from ssmtool.verify.relations.draw import Draw, Step

# Kernel 17 takes the decays of so many positions at a time.
_STAGED = 16


def slots(bench: Bench, draw: Draw) -> None:
    """Kernel 16 in each of its shapes against 12."""
    d = draw.dims(size=SPECIAL_SIZE, most_users=4)
    start, x = draw.state(d, d.users), draw.step(d, d.users)
    want, y12 = bench.step(REC_SLOTS, d, start, x)
    for rows in (8, 4, 2):
        got, y16 = bench.step(SLOTS_WARP, replace(d, rows=rows), start, x)
        bench.equal(f"s by {rows} rows a warp", got, want, "slot h j i")
        bench.equal(f"y by {rows} rows a warp", y16, y12, "slot h j")


def positions(bench: Bench, draw: Draw) -> None:
    """Kernel 17 in each of its shapes against 8, with snapshots and without, over more positions than it stages."""
    d = draw.dims(size=SPECIAL_SIZE)
    d = replace(d, n=d.n + draw.pick("stages", (0, _STAGED - 4, 2 * _STAGED)))
    start, x = draw.state(d), draw.step(d, d.n)
    for snaps in (True, False):
        want = bench.scan(REC_SEQ, d, start, x, snaps=snaps)
        for rows in (8, 4):
            got = bench.scan(WARP_MULTI, replace(d, rows=rows), start, x, snaps=snaps)
            also = f" by {rows} rows a warp" + ("" if snaps else " without snapshots")
            bench.equal(f"y{also}", got[1], want[1], "t h j")
            bench.equal(f"s{also}", got[0], want[0], "h j i")
            if got[2] is not None and want[2] is not None:
                bench.equal(f"snaps{also}", got[2], want[2], "t h j i")


def chunks(bench: Bench, draw: Draw) -> None:
    """Kernel 17 in chunks, each going on from the last snapshot, against one run."""
    d = draw.dims(size=SPECIAL_SIZE)
    d = replace(d, rows=draw.pick("rows", (8, 4)))
    state, x = draw.state(d), draw.step(d, d.n)
    whole, y, images = bench.scan(WARP_MULTI, d, state, x)
    at = 0
    for size in draw.cuts(d.n):
        part = slice(at, at + size)
        state, got, snaps = bench.scan(WARP_MULTI, replace(d, n=size), state, x[part])
        bench.equal(f"y of positions {at} to {at + size - 1}", got, y[part], "t h j")
        if snaps is not None and images is not None:
            bench.equal(f"snaps of positions {at} to {at + size - 1}", snaps, images[part], "t h j i")
            state = snaps[-1]
        at += size
    bench.equal("s", state, whole, "h j i")


def nothing(bench: Bench, draw: Draw) -> None:
    """Kernel 17 over no position."""
    d = replace(draw.dims(size=SPECIAL_SIZE), n=0)
    start = draw.state(d)
    s, y, _ = bench.scan(WARP_MULTI, d, start, draw.step(d, 0), snaps=False)
    bench.equal("s", s, start, "h j i")
    bench.unwritten("y", y, "t h j")


def step(bench: Bench, draw: Draw) -> None:
    """Kernel 18 against 11, 15, 14, 4, 12 and 3, one after the other."""
    d = draw.dims(size=SPECIAL_SIZE, most_users=3)
    d = replace(d, n=d.users, taps=4, channels=(2 * d.key_heads + d.heads) * d.size)
    users, heads = (d.users, d.heads), (d.users, d.heads, d.size)
    start, qkv = draw.state(d, d.users), draw.bell("qkv", d.users, d.channels)
    weight, history = draw.bell("weight", d.channels, 4), draw.bell("history", d.users, d.channels, 3)
    alpha, beta = draw.uniform("alpha", *users, low=-30.0, high=30.0), draw.uniform("beta", *users, low=-6.0, high=6.0)
    gates = {"ssm_dt": draw.bell("dt", d.heads), "ssm_a": -np.abs(draw.bell("a", d.heads))}
    z, norm = draw.bell("z", *heads), draw.bell("norm", d.size)

    want = _chain(bench, d, start, history, qkv, weight, {"alpha": alpha, **gates}, beta, z, norm)
    s, conv_state, gated = start.copy(), history.copy(), poisoned(heads)
    bench.launch(
        DECODE_STEP, d, s=s, qkv=qkv, conv_weight=weight, conv_state=conv_state, alpha=alpha, beta=beta, z=z,
        norm_weight=norm, gated=gated, **gates,
    )  # fmt: skip
    for name, got, expected, axes in (
        ("s", s, want[0], "slot h j i"),
        ("conv_state", conv_state, want[1], "slot c t"),
        ("gated", gated, want[2], "slot h j"),
    ):
        bench.equal(name, got, expected, axes)


def _chain(
    bench: Bench, d: Dims, start: F32, history: F32, qkv: F32, weight: F32, gates: dict[str, F32], beta: F32, z: F32,
    norm: F32,
) -> tuple[F32, F32, F32]:  # fmt: skip
    """State, history and gated output."""
    history, out = bench.convolve(CONV_SLOTS, d, history, qkv, weight)
    q, k, v, gated = (poisoned(z.shape) for _ in range(4))
    bench.launch(QKNORM_NX, d, conv_out=out, qg=q, kg=k, vg=v)
    g, beta = poisoned(beta.shape), beta.copy()
    bench.launch(GATE_NX, d, g=g, **gates)
    bench.launch(SIGMOID, replace(d, n=beta.size), x=beta)
    s, y = bench.step(REC_SLOTS, d, start, Step(q, k, v, g, beta))
    bench.launch(NORM, replace(d, heads=d.users * d.heads), y=y, weight=norm, z=z, gated=gated)
    return s, history, gated


_ALL = (DECODE_STEP, CONV_SLOTS, QKNORM_NX, GATE_NX, SIGMOID, REC_SLOTS, NORM)

RELATIONS = (
    Relation("R10/slots-warp", "16 = 12, state and y", (SLOTS_WARP, REC_SLOTS), slots),
    Relation("R11/warp-multi", "17 = 8, every output", (WARP_MULTI, REC_SEQ), positions),
    Relation("R11/chunks", "17 in any split, from its snapshots, = one run", (WARP_MULTI,), chunks),
    Relation("R11/nothing", "17 over no position writes nothing", (WARP_MULTI,), nothing),
    Relation("R12/decode-step", "18 = 11, 15, 14, 4, 12 and 3 in a chain", _ALL, step),
)
