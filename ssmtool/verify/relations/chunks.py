"""R6 and R7: a run may stop anywhere, and go on from where it stopped or from an earlier snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ssmtool.verify.contract import SPECIAL_SIZE
from ssmtool.verify.relations import CONV_SEQ, REC_SEQ, UNROLL, WARP, Relation
from ssmtool.verify.relations.bench import Bench
from ssmtool.verify.relations.draw import Draw

_SCANS = {"recurrence": REC_SEQ, "unroll": UNROLL, "warp": WARP}


def _size(entry: str) -> int | None:
    return None if entry == REC_SEQ else SPECIAL_SIZE


def _resumed_scan(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        d = replace(draw.dims(size=_size(entry)), n=draw.integer("length", 2, 9))
        start, x = draw.state(d), draw.step(d, d.n)
        whole, ys, snaps = bench.scan(entry, d, start, x)
        assert snaps is not None
        kept = draw.integer("accepted", 1, d.n - 1)
        rest = replace(d, n=d.n - kept)
        s, y, images = bench.scan(entry, rest, snaps[kept - 1], x[kept:])
        assert images is not None
        bench.equal("s", s, whole, "h j i")
        bench.equal(f"y from position {kept} on", y, ys[kept:], "t h j")
        bench.equal(f"snaps from position {kept} on", images, snaps[kept:], "t h j i")

    return check


def resumed_convolution(bench: Bench, draw: Draw) -> None:
    """Kernel 7 from a snapshot of its history."""
    d = replace(draw.dims(), n=draw.integer("length", 2, 9), taps=draw.integer("window", 2, 4))
    start, weight = draw.bell("history", d.channels, d.taps - 1), draw.bell("weight", d.channels, d.taps)
    qkv = draw.bell("qkv", d.n, d.channels)
    whole, out, snaps = bench.convolve_seq(d, start, qkv, weight)
    assert snaps is not None
    kept = draw.integer("accepted", 1, d.n - 1)
    history, rest, _ = bench.convolve_seq(replace(d, n=d.n - kept), snaps[kept - 1], qkv[kept:], weight)
    bench.equal("conv_state", history, whole, "c tap")
    bench.equal(f"out from position {kept} on", rest, out[kept:], "t c")


def _split_scan(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        d = replace(draw.dims(size=_size(entry)), n=draw.integer("length", 4, 12))
        start, x = draw.state(d), draw.step(d, d.n)
        whole, ys, snaps = bench.scan(entry, d, start, x)
        assert snaps is not None
        s, at, parts, images = start, 0, [], []
        for size in draw.cuts(d.n):
            s, y, part = bench.scan(entry, replace(d, n=size), s, x[at : at + size])
            assert part is not None
            parts.append(y)
            images.append(part)
            at += size
        bench.equal("s", s, whole, "h j i")
        bench.equal("y", np.concatenate(parts), ys, "t h j")
        bench.equal("snaps", np.concatenate(images), snaps, "t h j i")

    return check


def split_convolution(bench: Bench, draw: Draw) -> None:
    """Kernel 7 in chunks; those of 1 and 2 are shorter than its history."""
    d = replace(draw.dims(), n=draw.integer("length", 4, 12))
    start, weight = draw.bell("history", d.channels, d.taps - 1), draw.bell("weight", d.channels, d.taps)
    qkv = draw.bell("qkv", d.n, d.channels)
    whole, out, _ = bench.convolve_seq(d, start, qkv, weight, snaps=False)
    history, at, parts = start, 0, []
    for size in draw.cuts(d.n):
        history, part, _ = bench.convolve_seq(replace(d, n=size), history, qkv[at : at + size], weight, snaps=False)
        parts.append(part)
        at += size
    bench.equal("conv_state", history, whole, "c tap")
    bench.equal("out", np.concatenate(parts), out, "t c")


RELATIONS = (
    *(
        Relation(f"R6/{name}", "resuming from snaps[M-1] = one straight run", (entry,), _resumed_scan(entry))
        for name, entry in _SCANS.items()
    ),
    Relation("R6/convolution", "resuming from snaps[M-1] = one straight run", (CONV_SEQ,), resumed_convolution),
    *(
        Relation(f"R7/{name}", "any split of n into chunks = one run", (entry,), _split_scan(entry))
        for name, entry in _SCANS.items()
    ),
    Relation("R7/convolution", "any split of n into chunks = one run", (CONV_SEQ,), split_convolution),
)
