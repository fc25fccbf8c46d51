"""R2 and R5: the fast kernels give the slow ones' bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ssmtool.verify.contract import SPECIAL_SIZE
from ssmtool.verify.relations import REC_SEQ, REC_SLOTS, TWO_PASS, UNROLL, WARP, Relation
from ssmtool.verify.relations.bench import F32, Bench
from ssmtool.verify.relations.draw import Draw

# What summing in another order leaves in y; the same limits as the policy of the recurrence.
_NMSE, _MAX_RMS = 1e-11, 1e-4


def unroll(bench: Bench, draw: Draw) -> None:
    """Kernel 9 against 8."""
    _same(bench, draw, UNROLL)


def warp(bench: Bench, draw: Draw) -> None:
    """Kernel 10 against 8."""
    _same(bench, draw, WARP)


def _same(bench: Bench, draw: Draw, entry: str) -> None:
    d = draw.dims(size=SPECIAL_SIZE)
    start, x = draw.state(d), draw.step(d, d.n)
    for snaps in (True, False):
        got, want = (bench.scan(each, d, start, x, snaps=snaps) for each in (entry, REC_SEQ))
        also = "" if snaps else " without snapshots"
        bench.equal(f"y{also}", got[1], want[1], "t h j")
        bench.equal(f"s{also}", got[0], want[0], "h j i")
        if got[2] is not None and want[2] is not None:
            bench.equal("snaps", got[2], want[2], "t h j i")


def two_pass(bench: Bench, draw: Draw) -> None:
    """Kernel 13 against 12: the state's bits; y regrouped."""
    d = draw.dims(most_users=4)
    start, x = draw.state(d, d.users), draw.step(d, d.users)
    x = replace(x, q=_leaning(x.q, x.k))
    (got, y13), (want, y12) = (bench.step(entry, d, start, x) for entry in (TWO_PASS, REC_SLOTS))
    bench.equal("s", got, want, "slot h j i")
    bench.close("y", y13, y12, "slot h j", nmse=_NMSE, max_rms=_MAX_RMS)


def _leaning(q: F32, k: F32) -> F32:
    """The mean of q and k, of length about 1: element by element, so that no sum's order makes machines differ.

    y has (q k) as a factor of its new part. Of random vectors of 16 elements the product is about 0 now and then, y is
    then what cancellation left, and no order of summation is within a tolerance of another. Here it is 1 + q k.
    """
    turned = (q + k) * np.float32(0.7071)
    turned.flags.writeable = False
    return turned


RELATIONS = (
    Relation("R2/unroll", "9 = 8, every output", (UNROLL, REC_SEQ), unroll),
    Relation("R2/warp", "10 = 8, every output", (WARP, REC_SEQ), warp),
    Relation("R5/two-pass", "13's state = 12's, y within reassociation", (TWO_PASS, REC_SLOTS), two_pass),
)
