"""What is known about a result: exact, dependent on a model of a hardware unit, or on whether the assembler fuses.

The executor joins these over everything an output was computed from; the strongest doubt wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Ordered by doubt."""

    EXACT = 0
    CONTRACTION = 1
    UNIT_MODEL = 2


@dataclass(frozen=True)
class Evidence:
    """A label: its level, the unit it names ('' for none) and the proof there is."""

    level: Level
    unit: str = ""
    proof: str = ""

    def __str__(self) -> str:
        if self.level is Level.EXACT:
            return "exact"
        if self.level is Level.CONTRACTION:
            return "contraction dependent"
        return f"unit-model dependent ({self.unit}: {self.proof})"


EXACT = Evidence(Level.EXACT, proof="IEEE 754 and the PTX ISA; checked against MPFR, exact integers and an H200")
CONTRACTION = Evidence(
    Level.CONTRACTION,
    proof="no .rn: ptxas may fuse this mul into an add; executed as written, each rounded",
)
H200 = "H200-exact"


def unit(name: str) -> Evidence:
    """The label of a multifunction unit that the model reproduces bit for bit on the H200 (a K80 is unmeasured)."""
    return Evidence(Level.UNIT_MODEL, name, H200)


EVIDENCE = {
    name: unit(name)
    for name in (
        "ex2.approx", "lg2.approx", "sin.approx", "cos.approx", "rcp.approx", "rsqrt.approx", "sqrt.approx",
        "div.approx", "div.full",
    )
}  # fmt: skip
"""Label by operation; everything else is `EXACT` or, for f32/f64 add, sub and mul without a rounding, `CONTRACTION`."""
