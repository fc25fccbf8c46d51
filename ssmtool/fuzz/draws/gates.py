"""Launches of the element-wise kernels: sigmoid (4), decay gate (5 and 14)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.values import F32, Source
from ssmtool.golden import GoldenCase
from ssmtool.wording import plural

_MANY = "fc_ssm_decay_gate_nx"
_POLICY = "elementwise"
_THREADS = 256
# Where exp leaves fp32, where softplus becomes its argument, where 1 + exp(-x) becomes 1.
_EDGES = (0.0, -0.0, 1e-40, 0.5, 1.0, 5.0, 16.5, 17.5, 19.999998, 20.0, 20.000002, 21.0, 80.0, 87.0, 87.5, 88.5, 88.75,
          89.0, 95.0, 103.0, 104.0, 200.0, 1e30, 3.4e38)  # fmt: skip


def _count(choices: Choices) -> int:
    """A few elements, or about a block's end."""
    return choices.integer("n", 0, 40) if choices.flag("few") else choices.pick("n", (1, 255, 256, 257, 300, 513, 0))


def _arguments(source: Source, name: str, *shape: int) -> F32:
    """Arguments of exp and softplus: a fill, a range, or edges of either sign."""
    kind = source.choices.pick(f"kind of {name}", ("filled", "narrow", "wide", "wide", "edges", "edges"))
    if kind == "filled":
        return source.array(name, *shape)
    if kind == "edges":
        return source.chosen(name, [*_EDGES, *(-each for each in _EDGES)], *shape)
    width = 8.0 if kind == "narrow" else 120.0
    return source.uniform(name, *shape, low=-width, high=width)


def sigmoid(entry: str, choices: Choices, _sizes: Sequence[int]) -> GoldenCase:
    """Elements in place, in a buffer that may have more."""
    n = _count(choices)
    room = max(n, 1) + choices.pick("unused elements", (0, 1, 100))
    b = Blank(f"fuzz/{entry}", f"{plural(n, 'element')} of {room}")
    b.given("x", _arguments(Source(choices), "x", room), "i", _POLICY if n else None)
    b.launch(entry, entry, (max(-(-n // _THREADS), 1) + choices.integer("idle blocks", 0, 1),), _THREADS, 0, "x", n)
    return b.case()


def gate(entry: str, choices: Choices, _sizes: Sequence[int]) -> GoldenCase:
    """Positions of some heads; the kernel for one position takes one."""
    many = entry == _MANY
    heads = choices.integer("heads", 1, 9) if many else max(_count(choices), 1)
    n = choices.pick("n", (1, 2, 3, 5, 17, 31, 64)) if many else 1
    nothing = choices.rarely("no positions", 16)
    total = 0 if nothing else n * heads
    count = n + choices.integer("unused positions", 0, 1)
    b = Blank(f"fuzz/{entry}", f"{plural(heads, 'head')}, {plural(total // heads, 'position')}")
    source = Source(choices)
    b.given("alpha", _arguments(source, "alpha", count, heads), "t h")
    b.given("ssm_dt", _arguments(source, "ssm_dt", heads) if choices.flag("dt") else np.zeros(heads), "h")
    b.given("ssm_a", source.array("ssm_a", heads), "h")
    b.poison("g", (count, heads), "t h", _POLICY if total else None)
    grid = (max(-(-total // _THREADS), 1) + choices.integer("idle blocks", 0, 1),)
    b.launch(entry, entry, grid, _THREADS, 0, "alpha", "ssm_dt", "ssm_a", "g", *((heads, total) if many else (total,)))
    return b.case()
