"""Checked mode: what it asks of every access, barrier, shuffle, division and register beyond an access's bounds.

The emitters of instructions call these at the right places; without `Mode.checks` they emit nothing.
"""

from __future__ import annotations

from ssmtool.execute.layout import Mode, Site
from ssmtool.execute.lower.checks.barriers import barrier, opened
from ssmtool.execute.lower.checks.cells import begin_block, granule, next_epoch, passed_together, warp_synced
from ssmtool.execute.lower.checks.lanes import divided, shuffled
from ssmtool.execute.lower.checks.registers import begin_registers, registers_read, registers_written, suspects
from ssmtool.execute.lower.checks.shared import changed_atomically, loaded, stored
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.program.flat import Op
from ssmtool.execute.program.shapes import Shapes

__all__ = [
    "barrier",
    "barrier_passed",
    "begin",
    "begin_block",
    "cell_shift",
    "changed_atomically",
    "divided",
    "granule",
    "loaded",
    "next_epoch",
    "opened",
    "registers_read",
    "registers_written",
    "scratch_bytes",
    "shuffled",
    "stored",
    "suspects",
    "warp_barrier",
]


def begin(gang: Gang) -> None:
    """At a gang's start."""
    if gang.mode.checks:
        begin_registers(gang)


def barrier_passed(gang: Gang, together: bool) -> None:
    """Behind a barrier of the block. Warps that wait for each other have their scheduler count (`next_epoch`)."""
    if gang.mode.checks and together:
        passed_together(gang)


def warp_barrier(gang: Gang, _: Op) -> None:
    """`bar.warp.sync`: lanes of a warp run in step, so there is nothing to do but to note it."""
    if gang.mode.checks:
        warp_synced(gang)


def cell_shift(shapes: Shapes, mode: Mode) -> int | None:
    """log2 of the bytes that share a shadow cell; None when there are no cells."""
    return granule(shapes).bit_length() - 1 if mode.checks else None


def scratch_bytes(mode: Mode, sites: list[Site]) -> int:
    """A word for each place that can be reported: whether a race within a warp was told there."""
    return 8 * len(sites) if mode.checks else 0
