"""What checked mode asks of every access beyond its bounds."""

from __future__ import annotations

from ssmtool.execute.lower.access import Target
from ssmtool.execute.lower.gang import Gang
from ssmtool.execute.numerics.lanes import Builder, Value
from ssmtool.execute.program.flatten import Op
from ssmtool.execute.program.shapes import Shapes


def loaded(gang: Gang, op: Op, target: Target, mask: Value) -> None:
    """After a load."""


def stored(gang: Gang, op: Op, target: Target, mask: Value, same_value: bool) -> None:
    """After a store."""


def shuffled(gang: Gang, op: Op, sources: Value) -> None:
    """Before a shuffle."""


def divided(gang: Gang, op: Op, lanes: object, form: object) -> None:
    """Before arithmetic."""


def changed_atomically(gang: Gang, op: Op, target: Target, mask: Value) -> None:
    """After an atomic operation."""


def begin(gang: Gang) -> None:
    """At a gang's start."""


def begin_block(b: Builder, worker: Value) -> None:
    """At a block's start."""


def next_epoch(b: Builder, worker: Value) -> None:
    """When a barrier opens."""


def registers_read(gang: Gang, op: Op) -> None:
    """Before an instruction."""


def registers_written(gang: Gang, op: Op) -> None:
    """After an instruction."""


def barrier(gang: Gang, op: Op) -> None:
    """At a barrier."""


def barrier_passed(gang: Gang) -> None:
    """Behind a barrier."""


def exited(gang: Gang, mask: Value) -> None:
    """When lanes exit."""


def granule(shapes: Shapes) -> int:
    """Bytes of shared memory that share a shadow cell."""
    return 4


def suspects(shapes: Shapes) -> tuple[str, ...]:
    """Registers that may be read before they are written."""
    return ()
