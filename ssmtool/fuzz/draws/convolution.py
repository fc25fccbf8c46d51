"""Launches of the convolution: kernels 2 and 7 over positions, 11 over users' slots."""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.draws.chunks import cuts
from ssmtool.fuzz.values import Source
from ssmtool.golden import GoldenCase
from ssmtool.wording import plural

_SEQ = "fc_ssm_conv1d_silu_seq"
_POLICY = "convolution"
_THREADS = 256
_LONGEST = 4


def _channels(choices: Choices) -> int:
    """A few, or about a block's end."""
    return choices.integer("channels", 1, 40) if choices.flag("few channels") else choices.pick(
        "channels", (1, 2, 255, 256, 257, 300, 511, 513)
    )  # fmt: skip


def _taps(choices: Choices, entry: str) -> int:
    if entry == _SEQ:  # of 5 it writes nothing
        return choices.pick("taps", (1, 2, 3, 4, 4, 4, 4, 5))
    return choices.pick("taps", (1, 2, 3, 4, 4, 4, 5, 6, 7, 8, 13, 32))


def _blocks(choices: Choices, channels: int) -> int:
    """Blocks that the channels need, and sometimes one more, which must do nothing."""
    return -(-channels // _THREADS) + choices.integer("idle blocks", 0, 1)


def positions(entry: str, choices: Choices, _sizes: Sequence[int]) -> GoldenCase:
    """Samples of one user, in one launch or in chunks (kernel 2: one launch each)."""
    seq = entry == _SEQ
    channels, taps = _channels(choices), _taps(choices, entry)
    n = choices.pick("n", (1, 2, 3, 0, 4, 5, 7, 12)) if seq else choices.integer("n", 1, 4)
    count = max(n, 1) + choices.integer("unused positions", 0, 1)
    kept = max(taps - 1, 1)
    b = Blank(f"fuzz/{entry}", f"{plural(channels, 'channel')}, {plural(taps, 'tap')}, {plural(n, 'position')}")
    source = Source(choices)
    shown = _POLICY if n and not (seq and taps > _LONGEST) else None
    copied = "exact" if shown and taps > 1 else None
    b.given("qkv", source.array("qkv", count, channels), "t c")
    b.given("weight", source.array("weight", channels, taps), "c tap")
    b.given("conv_state", source.array("conv_state", channels, kept), "c age", copied)
    b.poison("out", (count, channels), "t c", shown, group="t")
    snaps = seq and choices.flag("snapshots")
    if snaps:
        b.poison("snaps", (count, channels, kept), "t c age", copied)
    grid, start = (_blocks(choices, channels),), 0
    for length in cuts(choices, n) if seq else [1] * n:
        row = min(start, count - 1)
        at = (("qkv", row * channels), "weight", "conv_state", ("out", row * channels), channels, taps)
        more = (length, ("snaps", row * channels * kept) if snaps else None) if seq else ()
        b.launch(entry, entry, grid, _THREADS, 0, *at, *more)
        start += length
    return b.case()


def users(entry: str, choices: Choices, _sizes: Sequence[int]) -> GoldenCase:
    """One sample of some users' slots; those that are not launched keep their history."""
    channels, taps = _channels(choices), _taps(choices, entry)
    launched = choices.integer("users", 1, 4)
    count = launched + choices.integer("unused slots", 0, 1)
    b = Blank(
        f"fuzz/{entry}", f"{plural(channels, 'channel')}, {plural(taps, 'tap')}, {launched} of {plural(count, 'user')}"
    )
    source = Source(choices)
    b.given("qkv", source.array("qkv", count, channels), "user c")
    b.given("weight", source.array("weight", channels, taps), "c tap")
    state = source.array("conv_state", count, channels, max(taps - 1, 1))
    b.given("conv_state", state, "user c age", "exact" if taps > 1 else None)
    b.poison("out", (count, channels), "user c", _POLICY, group="user")
    names = ("qkv", "weight", "conv_state", "out")
    b.launch(entry, entry, (_blocks(choices, channels), launched), _THREADS, 0, *names, channels, taps)
    return b.case()
