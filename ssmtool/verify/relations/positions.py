"""R1 and R4: many positions in one launch are as many launches of one position."""

from __future__ import annotations

import numpy as np

from ssmtool.golden.case import poisoned
from ssmtool.verify.relations import (
    CONV,
    CONV_SEQ,
    GATE,
    GATE_NX,
    QKNORM,
    QKNORM_NX,
    REC,
    REC_SEQ,
    Relation,
)
from ssmtool.verify.relations.bench import Bench
from ssmtool.verify.relations.draw import Draw


def recurrence(bench: Bench, draw: Draw) -> None:
    """Kernel 8 against n launches of 1: y, every snapshot, the final state."""
    d = draw.dims()
    start, x = draw.state(d), draw.step(d, d.n)
    last, ys, snaps = bench.scan(REC_SEQ, d, start, x)
    assert snaps is not None
    s = start
    ones = []
    images = []
    for t in range(d.n):
        s, y = bench.step(REC, d, s, x[t])
        ones.append(y)
        images.append(s)
    bench.equal("y", ys, np.stack(ones), "t h j")
    bench.equal("snaps", snaps, np.stack(images), "t h j i")
    bench.equal("s", last, s, "h j i")
    without, ys, _ = bench.scan(REC_SEQ, d, start, x, snaps=False)
    bench.equal("s without snapshots", without, last, "h j i")
    bench.equal("y without snapshots", ys, np.stack(ones), "t h j")


def convolution(bench: Bench, draw: Draw) -> None:
    """Kernel 7 against n launches of 2: output, every snapshot, the final history."""
    d = draw.dims()
    start, weight = draw.bell("history", d.channels, d.taps - 1), draw.bell("weight", d.channels, d.taps)
    qkv = draw.bell("qkv", d.n, d.channels)
    last, out, snaps = bench.convolve_seq(d, start, qkv, weight)
    history = start
    ones, images = [], []
    for t in range(d.n):
        history, one = bench.convolve(CONV, d, history, qkv[t], weight)
        ones.append(one)
        images.append(history)
    bench.equal("out", out, np.stack(ones), "t c")
    bench.equal("conv_state", last, history, "c tap")
    if snaps is not None:
        bench.equal("snaps", snaps, np.stack(images), "t c tap")
    last, out, _ = bench.convolve_seq(d, start, qkv, weight, snaps=False)
    bench.equal("out without snapshots", out, np.stack(ones), "t c")
    bench.equal("conv_state without snapshots", last, history, "c tap")


def decay_gate(bench: Bench, draw: Draw) -> None:
    """Kernel 14 against 5 at each position."""
    d = draw.dims(most_n=40)
    alpha = draw.uniform("alpha", d.n, d.heads, low=-30, high=30)
    per_head = {
        "ssm_dt": draw.uniform("ssm_dt", d.heads, low=-4, high=4),
        "ssm_a": draw.uniform("ssm_a", d.heads, low=-16, high=0),
    }
    many = poisoned(alpha.shape)
    bench.launch(GATE_NX, d, alpha=alpha, g=many, **per_head)
    ones = poisoned(alpha.shape)
    for t in range(d.n):
        bench.launch(GATE, d, alpha=alpha[t], g=ones[t], **per_head)
    bench.equal("g", many, ones, "t h")


def qknorm(bench: Bench, draw: Draw) -> None:
    """Kernel 15 against 6 at each position; its v is a plain copy."""
    d = draw.dims()
    key_dim, value_dim = d.key_heads * d.size, d.heads * d.size
    rows = draw.bell("conv_out", d.n, 2 * key_dim + value_dim)
    shape = (d.n, d.heads, d.size)
    qg, kg, vg = poisoned(shape), poisoned(shape), poisoned((d.n, value_dim))
    bench.launch(QKNORM_NX, d, conv_out=rows, qg=qg, kg=kg, vg=vg)
    q, k = poisoned(shape), poisoned(shape)
    for t in range(d.n):
        bench.launch(QKNORM, d, conv_out=rows[t], qg=q[t], kg=k[t])
    bench.equal("qg", qg, q, "t h i")
    bench.equal("kg", kg, k, "t h i")
    bench.equal("vg", vg, rows[:, 2 * key_dim :], "t c")


RELATIONS = (
    Relation("R1/recurrence", "8 over n positions = n launches of 1", (REC_SEQ, REC), recurrence),
    Relation("R1/convolution", "7 over n positions = n launches of 2", (CONV_SEQ, CONV), convolution),
    Relation("R4/decay-gate", "14 = 5 at each position", (GATE_NX, GATE), decay_gate),
    Relation("R4/qknorm", "15 = 6 at each position, v is copied", (QKNORM_NX, QKNORM), qknorm),
)
