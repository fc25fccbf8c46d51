"""Kernels 2, 7 and 11: a short causal convolution of each channel, then silu; the last samples are kept."""

from __future__ import annotations

from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules

# The sequence kernel's window; a longer filter is refused by writing nothing.
_LONGEST = 4


def conv1d_silu(launch: Bound, rules: Rules) -> None:
    """One sample of every channel."""
    _convolve(launch, rules, users=None, n=1)


def conv1d_silu_slots(launch: Bound, rules: Rules) -> None:
    """One sample of every channel for each of K users. The grid is (blocks, K)."""
    _convolve(launch, rules, users=launch.grid[1], n=1)


def conv1d_silu_seq(launch: Bound, rules: Rules) -> None:
    """Samples of every channel, n of them, one after the other."""
    if rules.guarded_taps(launch.int("conv_kernel"), _LONGEST):
        _convolve(launch, rules, users=None, n=rules.positions(launch.int("n")), has_snaps=True)


def _convolve(launch: Bound, rules: Rules, *, users: int | None, n: int, has_snaps: bool = False) -> None:
    channels, taps = launch.int("conv_dim"), launch.int("conv_kernel")
    if n <= 0 or taps < 1:
        return
    if users is not None and taps > 1:
        users = rules.slots(users, launch.room("conv_state").size // (channels * (taps - 1)))
    lead = () if users is None else (users,)
    weight = launch.array("weight", channels, taps)
    x = rules.samples(launch.array("qkv", n, *lead, channels))
    out = launch.array("out", n, *lead, channels)
    room = launch.array("conv_state", *lead, channels, taps - 1)
    snaps = None
    if has_snaps and not launch.is_null("snaps"):
        snaps = launch.array("snaps", n, channels, taps - 1)
    history = start = rules.load(room)
    images = [start]
    for t in range(n):
        y = rules.activation(rules.convolve(history, x[t], weight))
        history = rules.push(history, x[t], y)
        rules.samples(out)[t] = rules.result(y)
        images.append(history)
    if snaps is not None:
        rules.snapshots(snaps, images)
    rules.store(room, rules.final_history(start, x, history))
