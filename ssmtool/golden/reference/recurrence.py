"""Kernels 1, 8, 9, 10, 12 and 13: the gated delta rule, written from its formula (see `Rules.step`)."""

from __future__ import annotations

from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules

# The only size that the unrolled and the warp kernels are made for; with another they write nothing.
_SPECIAL = 128


def recurrence(launch: Bound, rules: Rules) -> None:
    """One position of every head. The grid is (S, n_v_heads)."""
    size, heads = launch.int("state_size"), launch.grid[1]
    s = launch.array("s", heads, size, size)
    q, k = rules.inputs(launch.array("q", heads, size), launch.array("k", heads, size))
    v, g, beta = launch.array("v", heads, size), launch.array("g", heads), launch.array("beta", heads)
    state = rules.load(s)
    y = rules.step(state, q, k, v, g, beta, launch.float("scale"))
    launch.array("y", heads, size)[...] = rules.result(y)
    rules.store(s, rules.result(state))


def recurrence_seq(launch: Bound, rules: Rules) -> None:
    """All n positions of every head, one after the other."""
    size, heads, n = launch.int("state_size"), launch.int("n_v_heads"), rules.positions(launch.int("n"))
    if n <= 0:
        return
    s = launch.array("s", heads, size, size)
    q, k = rules.inputs(launch.array("q", n, heads, size), launch.array("k", n, heads, size))
    v, y = launch.array("v", n, heads, size), launch.array("y", n, heads, size)
    g, beta = launch.array("g", n, heads), launch.array("beta", n, heads)
    snaps = None if launch.is_null("snaps") else launch.array("snaps", n, heads, size, size)
    state = rules.load(s)
    images = [state.copy()]
    for t in range(n):
        y[t] = rules.result(rules.step(state, q[t], k[t], v[t], g[t], beta[t], launch.float("scale")))
        if snaps is not None:
            images.append(rules.result(state.copy()))
    if snaps is not None:
        rules.snapshots(snaps, images)
    rules.store(s, rules.result(state))


def recurrence_seq_special(launch: Bound, rules: Rules) -> None:
    """The unrolled and the warp kernel: the same for S = 128, and nothing for any other S."""
    if rules.guarded(launch.int("state_size"), _SPECIAL):
        recurrence_seq(launch, rules)


def recurrence_slots(launch: Bound, rules: Rules) -> None:
    """One position for each of K users. The grid is (S, n_v_heads, K)."""
    _slots(launch, rules, two_pass=False)


def recurrence_slots_two_pass(launch: Bound, rules: Rules) -> None:
    """The same, y by the regrouped formula."""
    _slots(launch, rules, two_pass=True)


def _slots(launch: Bound, rules: Rules, *, two_pass: bool) -> None:
    size, heads = launch.int("state_size"), launch.int("n_v_heads")
    users = rules.slots(launch.grid[2], launch.room("s").size // (heads * size * size))
    s = launch.array("s", users, heads, size, size)
    q, k = rules.inputs(launch.array("q", users, heads, size), launch.array("k", users, heads, size))
    v, y = launch.array("v", users, heads, size), launch.array("y", users, heads, size)
    g, beta = launch.array("g", users, heads), launch.array("beta", users, heads)
    state = rules.load(s)
    step = rules.step_two_pass if two_pass else rules.step
    y[...] = rules.result(step(state, q, k, v, g, beta, launch.float("scale")))
    rules.store(s, rules.result(state))
