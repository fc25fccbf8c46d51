"""R3: K users in one launch are K launches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssmtool.verify.relations import CONV, CONV_SLOTS, REC, REC_SLOTS, Relation
from ssmtool.verify.relations.bench import Bench
from ssmtool.verify.relations.draw import Draw


def recurrence(bench: Bench, draw: Draw) -> None:
    """Kernel 12 against 1."""
    d = draw.dims(most_users=5)
    start, x = draw.state(d, d.users), draw.step(d, d.users)
    s, y = bench.step(REC_SLOTS, d, start, x)
    ones = [bench.step(REC, d, start[slot], x[slot]) for slot in range(d.users)]
    bench.equal("s", s, np.stack([each[0] for each in ones]), "slot h j i")
    bench.equal("y", y, np.stack([each[1] for each in ones]), "slot h j")


def convolution(bench: Bench, draw: Draw) -> None:
    """Kernel 11 against 2; both take more taps than the sequence kernel, by a code path of their own."""
    d = draw.dims(most_users=5)
    d = d if draw.round == 0 else replace(d, taps=7 if draw.round == 1 else draw.integer("window", 1, 8))
    start = draw.bell("history", d.users, d.channels, d.taps - 1)
    weight, qkv = draw.bell("weight", d.channels, d.taps), draw.bell("qkv", d.users, d.channels)
    history, out = bench.convolve(CONV_SLOTS, d, start, qkv, weight)
    ones = [bench.convolve(CONV, d, start[slot], qkv[slot], weight) for slot in range(d.users)]
    bench.equal("conv_state", history, np.stack([each[0] for each in ones]), "slot c tap")
    bench.equal("out", out, np.stack([each[1] for each in ones]), "slot c")


RELATIONS = (
    Relation("R3/recurrence", "12 with K slots = K launches of 1", (REC_SLOTS, REC), recurrence),
    Relation("R3/convolution", "11 with K slots = K launches of 2", (CONV_SLOTS, CONV), convolution),
)
