"""Launches of the recurrence: kernels 1, 8, 9, 10, 17 over positions, 12, 13, 16 over users' slots."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.draws.chunks import cuts
from ssmtool.fuzz.values import F32, FILLS, Source
from ssmtool.golden import GoldenCase
from ssmtool.verify.contract import SPECIAL_SIZE
from ssmtool.wording import plural

_ONE, _UNROLL, _WARP = "fc_ssm_recurrence", "fc_ssm_recurrence_seq_unroll128", "fc_ssm_recurrence_seq_warp"
_TWO_PASS = "fc_ssm_recurrence_slots_2pass"
_SLOTS_WARP, _WARP_MULTI = "fc_ssm_recurrence_slots_warp", "fc_ssm_recurrence_seq_warp_multi"
# Kernels for one state size: of any other they write nothing.
_SPECIAL = (_UNROLL, _WARP, _SLOTS_WARP, _WARP_MULTI)
# Rows of a warp of kernel 16, and warps of a block; the last shape is none of its, and nothing is written.
_SHAPES = ((8, 1), (8, 1), (2, 4), (2, 4), (4, 4), (4, 1), (2, 1), (1, 1))
_POLICY = "recurrence"
# Positions: chunks of 1 and 2, none, more than kernel 17 takes at a time (16); of small states, and one head, many.
_POSITIONS = (1, 2, 3, 0, 4, 5, 7, 9, 2, 3, 17, 33)
_MANY_POSITIONS = (*_POSITIONS[:-1], 130)
_FEW, _SMALL = 9, 16
# Elements of all states of a launch: a round is then some milliseconds.
_MOST_STATE = 3 * SPECIAL_SIZE * SPECIAL_SIZE
# Logarithms of decays. Where the exponential is exact (1 or 0) every bit of the result is; then those of a model, and
# those about which fp32 ends: the smallest normal number, the smallest number, nothing.
_DECAYS: dict[str, tuple[float, ...]] = {
    "none": (0.0,),
    "all": (-200.0, -math.inf, -1e30),
    "signs of zero": (0.0, -0.0),
    "usual": tuple(-(k * k) / 4096 - 1 / 1024 for k in range(112)),
    "strong": (-26.0, -5.5, -40.25, -16.75),
    "about the end of fp32": (-87.25, -87.5, -88.75, -95.0, -103.25, -103.75, -104.5, 0.0),
    "growth": (0.0078125, 0.5, 1.25, -0.5),
}
_LIKELY = ("none", "usual", "usual", "usual", "strong", "all", "signs of zero", "about the end of fp32", "growth")


def _size(entry: str, choices: Choices, sizes: Sequence[int]) -> int:
    if entry in _SPECIAL:
        other = choices.rarely("another size", 16)
        return choices.pick("S", [each for each in sizes if each != SPECIAL_SIZE] or [64]) if other else SPECIAL_SIZE
    return choices.pick("S", sizes)


def _inputs(b: Blank, choices: Choices, lead: str, count: int, heads: int, size: int) -> None:
    """Buffers q, k, v, g and beta, each of `count` positions or users."""
    source = Source(choices)
    rows, per_head = (count, heads, size), (count, heads)
    for name, axis in (("q", "i"), ("k", "i"), ("v", "j")):
        b.given(name, source.array(name, *rows), f"{lead} h {axis}")
    b.given("g", source.chosen("g", _DECAYS[choices.pick("decay", _LIKELY)], *per_head), f"{lead} h")
    b.given("beta", _betas(source, choices, per_head), f"{lead} h")
    b.random = source.stream


def _betas(source: Source, choices: Choices, shape: tuple[int, int]) -> F32:
    kind = choices.pick("beta", ("1", "0", "either", "usual", "usual", "usual"))
    if kind == "usual":
        return source.uniform("beta", *shape, low=0.0, high=1.0)
    return source.chosen("beta", {"1": (1.0,), "0": (0.0,), "either": (0.0, 1.0)}[kind], *shape)


def _state(b: Blank, choices: Choices, shape: tuple[int, ...], axes: str, group: str) -> None:
    """The state: zero, or as some fill has it."""
    kind = choices.pick("state", ("ones", "fresh", "drawn", "drawn", "drawn", "drawn"))
    if kind == "fresh":
        b.zero("s", shape, axes, _POLICY, group=group)
        return
    source = Source(choices, fills=("ones",) if kind == "ones" else FILLS)
    b.given("s", source.array("s", *shape), axes, _POLICY, group=group)


def _scale(choices: Choices, size: int) -> float:
    return choices.pick("scale", (1.0, 1 / math.sqrt(size), 1 / math.sqrt(size), 0.3))


def positions(entry: str, choices: Choices, sizes: Sequence[int]) -> GoldenCase:
    """Positions of one user, in one launch or in chunks (kernel 1: one launch each), with snapshots or without."""
    size = _size(entry, choices, sizes)
    guarded = entry in _SPECIAL and size != SPECIAL_SIZE
    single = entry == _ONE
    n = choices.integer("n", 1, 3) if single else choices.pick("n", _POSITIONS if size > _SMALL else _MANY_POSITIONS)
    most = _MOST_STATE // (size * size)
    heads = choices.integer("heads", 1, 1 if n > _FEW else max(1, min(6, most)))
    room = choices.integer("unused positions", 0, 1)
    b = Blank(f"fuzz/{entry}", f"S = {size}, {plural(heads, 'head')}, {plural(n, 'position')}")
    shown, count = (None if guarded or not n else _POLICY), max(n, 1) + room
    _inputs(b, choices, "t", count, heads, size)
    _state(b, choices, (heads, size, size), "h j i", "h")
    b.poison("y", (count, heads, size), "t h j", shown, group="t h")
    snaps = not single and choices.flag("snapshots")
    if snaps:
        b.poison("snaps", (count, heads, size, size), "t h j i", shown, group="t h")
    rows = choices.pick("rows of a warp", (8, 4)) if entry == _WARP_MULTI else 0
    scale, start = _scale(choices, size), 0
    for length in [1] * n if single else cuts(choices, n):
        row = min(start, count - 1)
        at = [("q", row * heads * size), ("k", row * heads * size), ("v", row * heads * size), ("g", row * heads),
              ("beta", row * heads), ("y", row * heads * size)]  # fmt: skip
        image = ("snaps", row * heads * size * size) if snaps else None
        if single:
            b.launch(entry, entry, (size, heads), size, size, "s", *at, size, scale)
        elif entry == _WARP:
            b.launch(entry, entry, (max(1, size // 4), heads), 128, 2 * max(length, 1), "s", *at, size, heads, length,
                     scale, image)  # fmt: skip
        elif entry == _WARP_MULTI:
            b.launch(entry, entry, (32 // rows, heads), 128, 0, "s", *at, size, heads, length, scale, image)
        else:
            block = SPECIAL_SIZE if entry == _UNROLL else size
            b.launch(entry, entry, (size, heads), block, block, "s", *at, size, heads, length, scale, image)
        start += length
    return b.case()


def users(entry: str, choices: Choices, sizes: Sequence[int]) -> GoldenCase:
    """One position of some users' slots; those that are not launched keep their state."""
    size = _size(entry, choices, sizes)
    most = max(1, _MOST_STATE // (size * size))
    launched = choices.integer("users", 1, min(4, most))
    heads = choices.integer("heads", 1, max(1, min(5, most // launched)))
    count = launched + choices.integer("unused slots", 0, 1)
    b = Blank(f"fuzz/{entry}", f"S = {size}, {plural(heads, 'head')}, {launched} of {plural(count, 'user')}")
    _inputs(b, choices, "user", count, heads, size)
    _state(b, choices, (count, heads, size, size), "user h j i", "user h")
    rows, warps = choices.pick("rows of a warp, warps", _SHAPES) if entry == _SLOTS_WARP else (0, 0)
    guarded = entry in _SPECIAL and (size != SPECIAL_SIZE or rows == 1)
    b.poison("y", (count, heads, size), "user h j", None if guarded else _POLICY, group="user h")
    names = ("s", "q", "k", "v", "g", "beta", "y")
    grid, block, shared = (size, heads, launched), size, 3 * size if entry == _TWO_PASS else size
    if entry == _SLOTS_WARP:
        grid, block, shared = (SPECIAL_SIZE // (rows * warps), heads, launched), 32 * warps, 0
    b.launch(entry, entry, grid, block, shared, *names, size, heads, _scale(choices, size))
    return b.case()
