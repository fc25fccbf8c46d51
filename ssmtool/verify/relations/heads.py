"""R8: heads and users do not know of each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ssmtool.golden.case import poisoned
from ssmtool.verify.contract import SPECIAL_SIZE
from ssmtool.verify.relations import (
    CONV,
    CONV_SLOTS,
    GATE,
    NORM,
    QKNORM,
    REC,
    REC_SEQ,
    REC_SLOTS,
    TWO_PASS,
    UNROLL,
    WARP,
    Relation,
)
from ssmtool.verify.relations.bench import Bench
from ssmtool.verify.relations.draw import Draw


def _permuted_step(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        slots = entry in (REC_SLOTS, TWO_PASS)
        d = draw.dims(most_users=3 if slots else 1)
        lead = (d.users,) if slots else ()
        start, x, order = draw.state(d, *lead), draw.step(d, *lead), draw.order("heads", d.heads)
        s, y = bench.step(entry, d, start, x)
        moved, ys = bench.step(entry, d, np.take(start, order, axis=-3), x.heads(order))
        axes = "slot h j i" if slots else "h j i"
        bench.equal("s", moved, np.take(s, order, axis=-3), axes)
        bench.equal("y", ys, np.take(y, order, axis=-2), axes[:-2])

    return check


def _permuted_scan(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        d = draw.dims(size=None if entry == REC_SEQ else SPECIAL_SIZE)
        start, x, order = draw.state(d), draw.step(d, d.n), draw.order("heads", d.heads)
        s, y, _ = bench.scan(entry, d, start, x, snaps=False)
        moved, ys, _ = bench.scan(entry, d, start[order], x.heads(order), snaps=False)
        bench.equal("s", moved, s[order], "h j i")
        bench.equal("y", ys, y[:, order], "t h j")

    return check


def permuted_norm(bench: Bench, draw: Draw) -> None:
    """Kernel 3."""
    d = draw.dims()
    y, z = draw.bell("y", d.heads, d.size), draw.bell("z", d.heads, d.size)
    weight, order = draw.bell("weight", d.size), draw.order("heads", d.heads)
    gated, moved = poisoned(y.shape), poisoned(y.shape)
    bench.launch(NORM, d, y=y, weight=weight, z=z, gated=gated)
    bench.launch(NORM, d, y=y[order], weight=weight, z=z[order], gated=moved)
    bench.equal("gated", moved, gated[order], "h j")


def permuted_gate(bench: Bench, draw: Draw) -> None:
    """Kernel 5."""
    d = draw.dims()
    inputs = {name: draw.uniform(name, d.heads, low=-9, high=9) for name in ("alpha", "ssm_dt", "ssm_a")}
    order = draw.order("heads", d.heads)
    g, moved = poisoned((d.heads,)), poisoned((d.heads,))
    bench.launch(GATE, d, g=g, **inputs)
    bench.launch(GATE, d, g=moved, **{name: each[order] for name, each in inputs.items()})
    bench.equal("g", moved, g[order], "h")


def permuted_qknorm(bench: Bench, draw: Draw) -> None:
    """Kernel 6: moving K-heads moves the V-heads that repeat them, r * n_k_heads + kh."""
    d = draw.dims()
    key_dim, order = d.key_heads * d.size, draw.order("heads", d.key_heads)
    rows = draw.bell("conv_out", 2, d.key_heads, d.size)
    repeated = np.concatenate([order + r * d.key_heads for r in range(d.groups)])
    results = []
    for inputs in (rows, rows[:, order]):
        qg, kg = poisoned((d.heads, d.size)), poisoned((d.heads, d.size))
        bench.launch(QKNORM, d, conv_out=inputs.reshape(2 * key_dim), qg=qg, kg=kg)
        results.append((qg, kg))
    for name, still, moved in zip(("qg", "kg"), *results, strict=True):
        bench.equal(name, moved, still[repeated], "h i")


def permuted_channels(bench: Bench, draw: Draw) -> None:
    """Kernel 2: channels in another order."""
    d = draw.dims()
    start, weight = draw.bell("history", d.channels, d.taps - 1), draw.bell("weight", d.channels, d.taps)
    qkv, order = draw.bell("qkv", d.channels), draw.order("channels", d.channels)
    history, out = bench.convolve(CONV, d, start, qkv, weight)
    moved, outs = bench.convolve(CONV, d, start[order], qkv[order], weight[order])
    bench.equal("conv_state", moved, history[order], "c tap")
    bench.equal("out", outs, out[order], "c")


def _untouched_step(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        d = draw.dims(most_users=4)
        there = d.users + 1
        start, x = draw.state(d, there), draw.step(d, there)
        s, y = bench.step(entry, d, start, x)
        bench.equal("s of the slot that was not launched", s[d.users :], start[d.users :], "slot h j i")
        bench.unwritten("y of the slot that was not launched", y[d.users :], "slot h j")

    return check


def untouched_convolution(bench: Bench, draw: Draw) -> None:
    """Kernel 11."""
    d = draw.dims(most_users=4)
    there = d.users + 1
    start = draw.bell("history", there, d.channels, d.taps - 1)
    weight, qkv = draw.bell("weight", d.channels, d.taps), draw.bell("qkv", there, d.channels)
    history, out = bench.convolve(CONV_SLOTS, d, start, qkv, weight)
    bench.equal("conv_state of the slot that was not launched", history[d.users :], start[d.users :], "slot c tap")
    bench.unwritten("out of the slot that was not launched", out[d.users :], "slot c")


_PERMUTED = "permuting heads permutes the outputs"
_UNTOUCHED = "a slot that is not launched keeps its state"

RELATIONS = (
    Relation("R8/recurrence", _PERMUTED, (REC,), _permuted_step(REC)),
    Relation("R8/recurrence-seq", _PERMUTED, (REC_SEQ,), _permuted_scan(REC_SEQ)),
    Relation("R8/unroll", _PERMUTED, (UNROLL,), _permuted_scan(UNROLL)),
    Relation("R8/warp", _PERMUTED, (WARP,), _permuted_scan(WARP)),
    Relation("R8/slots", _PERMUTED, (REC_SLOTS,), _permuted_step(REC_SLOTS)),
    Relation("R8/two-pass", _PERMUTED, (TWO_PASS,), _permuted_step(TWO_PASS)),
    Relation("R8/norm", _PERMUTED, (NORM,), permuted_norm),
    Relation("R8/decay-gate", _PERMUTED, (GATE,), permuted_gate),
    Relation("R8/qknorm", _PERMUTED, (QKNORM,), permuted_qknorm),
    Relation("R8/convolution", "permuting channels permutes the outputs", (CONV,), permuted_channels),
    Relation("R8/untouched-slots", _UNTOUCHED, (REC_SLOTS,), _untouched_step(REC_SLOTS)),
    Relation("R8/untouched-two-pass", _UNTOUCHED, (TWO_PASS,), _untouched_step(TWO_PASS)),
    Relation("R8/untouched-convolution", _UNTOUCHED, (CONV_SLOTS,), untouched_convolution),
)
