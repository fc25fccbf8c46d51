"""Launches of the decode step: kernel 18, from the projections to the gated output."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.values import MODEST, Source
from ssmtool.golden import GoldenCase
from ssmtool.verify.contract import SPECIAL_SIZE
from ssmtool.wording import plural

_POLICY = "recurrence"
_TAPS = 4
# Any of them gives the same bits.
_THREADS = (512, 512, 512, 128)
# Powers of two by which the filters are made weaker: norms then lie about eps, of q and k and of the output.
_WEAKER = (0, 0, 0, -10, -16, -22)
_BUFFERS = ("s", "qkv", "conv_weight", "conv_state", "alpha", "ssm_dt", "ssm_a", "beta", "z", "norm_weight", "gated")


def step(entry: str, choices: Choices, _sizes: Sequence[int]) -> GoldenCase:
    """One token of some users; slots that are not launched keep state and history.

    Inputs are modest ones: exponentials go through everything here, and the result is judged by a tolerance.
    """
    size, taps = SPECIAL_SIZE, choices.pick("taps", (_TAPS,) * 15 + (3,))
    key_heads, groups = choices.integer("K-heads", 1, 2), choices.integer("V-heads of each", 1, 3)
    launched = choices.integer("users", 1, 2)
    count, heads = launched + choices.integer("unused slots", 0, 1), key_heads * groups
    channels = (2 * key_heads + heads) * size
    b = Blank(f"fuzz/{entry}", f"{plural(key_heads, 'K-head')}, {groups} each, {launched} of {plural(count, 'user')}")
    source = Source(choices, fills=MODEST)
    shown = _POLICY if taps == _TAPS else None
    fresh = choices.flag("old users")
    state = source.array("s", count, heads, size, size) if fresh else np.zeros((count, heads, size, size))
    b.given("s", state, "user h j i", shown, group="user h")
    b.given("qkv", source.array("qkv", count, channels), "user c")
    weight = source.array("conv_weight", channels, taps)
    qk = 2 * key_heads * size
    weight[:qk] = np.ldexp(weight[:qk], choices.pick("weaker q and k", _WEAKER))
    weight[qk:] = np.ldexp(weight[qk:], choices.pick("weaker v", _WEAKER))
    b.given("conv_weight", weight, "c tap")
    history = source.array("conv_state", count, channels, taps - 1)
    b.given("conv_state", history, "user c age", "exact" if shown else None)
    reach = choices.pick("largest alpha", (30.0, 30.0, 120.0))
    b.given("alpha", source.uniform("alpha", count, heads, low=-reach, high=reach), "user h")
    b.given("ssm_dt", source.array("ssm_dt", heads), "h")
    b.given("ssm_a", source.uniform("ssm_a", heads, low=-4.0, high=0.0), "h")
    b.given("beta", source.uniform("beta", count, heads, low=-6.0, high=6.0), "user h")
    b.given("z", source.array("z", count, heads, size), "user h j")
    b.given("norm_weight", source.array("norm_weight", size), "j")
    b.poison("gated", (count, heads, size), "user h j", shown, group="user h")
    numbers = (key_heads, groups, size, taps, 1 / math.sqrt(size), 1e-6, choices.pick("eps of the norm", (1e-6, 1e-5)))
    threads = choices.pick("threads", _THREADS)
    b.launch(entry, entry, (key_heads, launched), threads, (2 + 2 * groups) * size, *_BUFFERS, *numbers)
    return b.case()
