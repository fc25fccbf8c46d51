"""R9: no positions leave everything as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ssmtool.golden.case import poisoned
from ssmtool.verify.contract import SPECIAL_SIZE
from ssmtool.verify.relations import CONV_SEQ, GATE, GATE_NX, REC_SEQ, SIGMOID, UNROLL, WARP, Relation
from ssmtool.verify.relations.bench import Bench
from ssmtool.verify.relations.draw import Draw


def _empty_scan(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        d = replace(draw.dims(size=None if entry == REC_SEQ else SPECIAL_SIZE), n=0)
        s, y, snaps = draw.state(d), poisoned((1, d.heads, d.size)), poisoned((1, d.heads, d.size, d.size))
        after = s.copy()
        # Room for one position is there, so that a store would be seen and not end the launch.
        bench.launch(entry, d, s=after, y=y, snaps=snaps, **draw.step(d, 1).named())
        bench.equal("s", after, s, "h j i")
        bench.unwritten("y", y, "t h j")
        bench.unwritten("snaps", snaps, "t h j i")

    return check


def empty_convolution(bench: Bench, draw: Draw) -> None:
    """Kernel 7."""
    d = replace(draw.dims(), n=0, taps=4)
    start, weight = draw.bell("history", d.channels, 3), draw.bell("weight", d.channels, 4)
    after, out, snaps = start.copy(), poisoned((1, d.channels)), poisoned((1, d.channels, 3))
    qkv = draw.bell("qkv", 1, d.channels)
    bench.launch(CONV_SEQ, d, qkv=qkv, weight=weight, conv_state=after, out=out, snaps=snaps)
    bench.equal("conv_state", after, start, "c tap")
    bench.unwritten("out", out, "t c")
    bench.unwritten("snaps", snaps, "t c tap")


def empty_sigmoid(bench: Bench, draw: Draw) -> None:
    """Kernel 4."""
    d = replace(draw.dims(), n=0)
    x = draw.bell("x", 7)
    after = x.copy()
    bench.launch(SIGMOID, d, x=after)
    bench.equal("x", after, x, "i")


def _empty_gate(entry: str) -> Callable[[Bench, Draw], None]:
    def check(bench: Bench, draw: Draw) -> None:
        d = draw.dims()
        g = poisoned((1, d.heads))
        inputs = {name: draw.bell(name, d.heads) for name in ("alpha", "ssm_dt", "ssm_a")}
        bench.launch(entry, d, g=g, **inputs, **{"n" if entry == GATE else "total": 0})
        bench.unwritten("g", g, "t h")

    return check


_TITLE = "n = 0 leaves every state as it was and writes nothing"

RELATIONS = (
    Relation("R9/recurrence", _TITLE, (REC_SEQ,), _empty_scan(REC_SEQ)),
    Relation("R9/unroll", _TITLE, (UNROLL,), _empty_scan(UNROLL)),
    Relation("R9/warp", _TITLE, (WARP,), _empty_scan(WARP)),
    Relation("R9/convolution", _TITLE, (CONV_SEQ,), empty_convolution),
    Relation("R9/sigmoid", _TITLE, (SIGMOID,), empty_sigmoid),
    Relation("R9/decay-gate", _TITLE, (GATE,), _empty_gate(GATE)),
    Relation("R9/decay-gate-nx", _TITLE, (GATE_NX,), _empty_gate(GATE_NX)),
)
