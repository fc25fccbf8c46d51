"""Issue slots of the cases on the executor, and the floors of a K80 die that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ssmtool.audit.cost import BASE_HZ, BOOST_HZ, BYTES_PER_SECOND, SCHEDULERS
from ssmtool.bench.cases import Part
from ssmtool.bench.result import Slots
from ssmtool.bench.vectors import right

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ssmtool.bench.cases import Case, Group
    from ssmtool.execute import Module
    from ssmtool.execute.module import Check


def count(group: Group, whole: Group, modules: dict[str, Module]) -> list[Slots]:
    """Slots of `whole`'s cases, counted in `group`: the same cases, smaller. Every block does the same work."""
    found: list[Slots] = []
    reference: list[bytes] | None = None
    for case, full in zip(group.cases, whole.cases, strict=True):
        buffers = group.make()
        slots = float(_execute(case, buffers, modules, "none" if group.vector is None else "bounds"))
        slots *= full.rows / case.rows
        bits = [buffers[name].tobytes() for name in case.outputs]
        equal = None
        if reference is None:
            reference = bits
        else:
            equal = all(one == other for one, other in zip(bits, reference, strict=False))
        issue = (slots / SCHEDULERS / BASE_HZ * 1e6, slots / SCHEDULERS / BOOST_HZ * 1e6)
        bandwidth = full.bytes / BYTES_PER_SECOND * 1e6
        found.append(
            Slots(
                full.name,
                whole.title,
                len(full.calls),
                slots,
                slots / full.rows,
                full.bytes,
                issue,
                bandwidth,
                equal,
                whole.unit,
                right(group, buffers),
            )
        )
    return found


def _execute(case: Case, buffers: dict[str, NDArray[Any]], modules: dict[str, Module], check: Check) -> int:
    """Warp instructions of all launches."""

    def given(value: Any) -> Any:
        if isinstance(value, Part):
            return buffers[value.buffer].reshape(-1)[value.element :]
        if isinstance(value, str):
            return buffers[value]
        return np.int32(value) if isinstance(value, int) else value

    total = 0
    for call in case.calls:
        args = {name: given(value) for name, value in call.args.items()}
        result = modules[call.entry].launch(
            call.entry, call.grid, call.block, args, call.shared_bytes, check=check, counters=True
        )
        assert result.counters is not None
        total += result.counters.total
    return total
