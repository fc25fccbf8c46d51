"""Launches of the gated norm (kernel 3) and of the norm of q and k (kernels 6 and 15)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.values import Source
from ssmtool.golden import GoldenCase
from ssmtool.wording import plural

_MANY = "fc_ssm_qknorm_gqa_nx"
_POLICY = "norm"
_THREADS = 256
_EPS = (1e-6, 1e-6, 1e-6, 1e-2, 1e-12, 0.0)
# Powers of two by which vectors are made shorter: their norms then lie about every eps.
_SHORTER = (0, 0, 0, -10, -17, -20, -21, -30)


def gated(entry: str, choices: Choices, sizes: Sequence[int]) -> GoldenCase:
    """Heads of any size by blocks of 256; or of a power of two, by as many threads."""
    if choices.flag("a block of S"):
        size = block = choices.pick("S", sizes)
    else:
        size, block = choices.pick("S", (1, 2, 3, 5, 16, 100, 128, 255, 256, 257, 300, 513)), _THREADS
    heads = choices.integer("heads", 1, 5)
    b = Blank(f"fuzz/{entry}", f"{plural(heads, 'head')} of {size}, blocks of {block}")
    source = Source(choices)
    b.given("y", np.ldexp(source.array("y", heads, size), choices.pick("shorter", _SHORTER)), "h j")
    b.given("weight", source.array("weight", size), "j")
    b.given("z", source.array("z", heads, size) * np.float32(choices.pick("z times", (32.0, 1.0, 4.0))), "h j")
    b.poison("gated", (heads + choices.integer("unused heads", 0, 1), size), "h j", _POLICY, group="h")
    eps = choices.pick("eps", _EPS)
    b.launch(entry, entry, (heads,), block, block, "y", "weight", "z", "gated", size, eps)
    return b.case()


def qknorm(entry: str, choices: Choices, sizes: Sequence[int]) -> GoldenCase:
    """Vectors q and k of some K-heads, repeated to V-heads; v is copied by the kernel for many positions."""
    size = choices.pick("S", sizes)
    key_heads, groups = choices.integer("K-heads", 1, 4), choices.integer("V-heads of each", 1, 6)
    many = entry == _MANY
    n = choices.integer("n", 1, 5) if many else 1
    count = n + choices.integer("unused positions", 0, 1)
    key_dim, heads = key_heads * size, key_heads * groups
    val_dim = heads * size
    b = Blank(
        f"fuzz/{entry}",
        f"{plural(key_heads, 'K-head')}, {plural(groups, 'V-head')} each, S = {size}, {plural(n, 'position')}",
    )
    source = Source(choices)
    rows = source.array("conv_out", count, 2 * key_heads, size)
    exponents = source.chosen("shorter", choices.pick("shorter", ((0,), _SHORTER)), count, 2 * key_heads, 1)
    parts = [np.ldexp(rows, exponents.astype(np.int32)).reshape(count, 2 * key_dim)]
    if many:
        parts.append(source.array("v", count, val_dim))
    b.given("conv_out", np.concatenate(parts, axis=1), "t c")
    for name in ("qg", "kg"):
        b.poison(name, (count, heads, size), "t h i", _POLICY, group="t h")
    eps, shape = choices.pick("eps", _EPS), (key_heads, groups, size, key_dim)
    if many:
        b.poison("vg", (count, heads, size), "t h j", "exact")
        b.launch(entry, entry, (key_heads, n), size, 2 * size, "conv_out", "qg", "kg", "vg", *shape, val_dim, eps)
    else:
        b.launch(entry, entry, (key_heads,), size, 2 * size, "conv_out", "qg", "kg", *shape, eps)
    return b.case()
