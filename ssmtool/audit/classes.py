"""The class of each instruction in a cost report, and what the class is good for.

`loop control` depends on place, not on opcode: see `cost`. The rest is a table over the instruction categories of
`ssmtool.ptx.isa`.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from ssmtool.ptx import isa
from ssmtool.ptx.opcode import split_opcode

LOOP_CONTROL = "loop control"
CLASSES = (
    LOOP_CONTROL,
    "barrier",
    "shared memory",
    "shuffle",
    "transcendental",
    "floating point",
    "address arithmetic",
    "branch",
    "local memory",
    "global memory",
    "atomic",
    "other",
)
_BY_CATEGORY = {
    "float": "floating point",
    "integer": "address arithmetic",
    "bit": "address arithmetic",
    "logic": "address arithmetic",
    "compare": "address arithmetic",
    "select": "address arithmetic",
    "move": "address arithmetic",
    "convert": "address arithmetic",
    "transcendental": "transcendental",
    "barrier": "barrier",
    "fence": "barrier",
    "shuffle": "shuffle",
    "atomic": "atomic",
    "branch": "branch",
    "matrix": "floating point",
    "texture": "global memory",
    "surface": "global memory",
}
_SPACES = {
    "local": "local memory",
    "shared": "shared memory",
    "global": "global memory",
    "const": "other",
    "param": "other",
    None: "global memory",
}
_FLOATS = ("f16", "f32", "f64", "bf16", "f16x2", "bf16x2")


@lru_cache(maxsize=65536)
def class_of(opcode: str) -> str:
    """One of CLASSES but LOOP_CONTROL, for an opcode as written. Generic memory counts as global.

    A `mov`, `selp`, `setp` or `cvt` of a floating-point type is floating point. So is a division, root or reciprocal
    with `.rn`: the hardware has no such instruction, and ptxas puts a sequence of several dozen in its place.
    """
    category = isa.category(opcode)
    split = split_opcode(opcode)
    if category in ("load", "store"):
        return _SPACES.get(split.space, "other")
    if category in ("compare", "select", "move", "convert") and any(kind in _FLOATS for kind in split.types):
        return "floating point"
    return _BY_CATEGORY.get(category, "other")


def mix(histogram: Counter[str]) -> dict[str, int]:
    """Class -> number of instructions, classes that do not occur left out, in the order of CLASSES."""
    total: Counter[str] = Counter()
    for opcode, count in histogram.items():
        total[class_of(opcode)] += count
    return {name: total[name] for name in CLASSES if total[name]}
