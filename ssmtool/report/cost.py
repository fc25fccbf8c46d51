"""Costs as tables: slots by class, and the floors they imply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssmtool.audit.classes import CLASSES
from ssmtool.audit.cost import CostReport, KernelCost

# Shorter heads for the columns; a class that is not here keeps its name.
_HEADS = {
    "loop control": "loop",
    "shared memory": "shared",
    "transcendental": "transc",
    "floating point": "float",
    "address arithmetic": "address",
    "local memory": "local",
    "global memory": "global",
}


def cost_tables(report: CostReport) -> list[dict[str, Any]]:
    """Per position, per block, and the floors, as report formats take them."""
    if not report.costs:
        return []
    used = [name for name in CLASSES if any(cost.block_slots.get(name) for cost in report.costs)]
    heads = [_HEADS.get(name, name) for name in used]
    sequential = [cost for cost in report.costs if cost.position_slots is not None]
    tables = []
    if sequential:
        tables.append(
            {
                "title": "Issue slots per (block, position), from PTX text (estimate)",
                "columns": ["kernel", "warps", "total", "per warp", *heads],
                "rows": [
                    [cost.kernel, str(cost.warps), *_slots(cost.position_slots or {}, used, cost.warps)]
                    for cost in sequential
                ],
            }
        )
    tables.append(
        {
            "title": "Issue slots per block, whole launch, from PTX text (estimate)",
            "columns": ["kernel", "warps", "total", "per warp", *heads],
            "rows": [
                [cost.kernel, str(cost.warps), *_slots(cost.block_slots, used, cost.warps)] for cost in report.costs
            ],
        }
    )
    tables.append(
        {
            "title": "K80 floors (estimates): one GK210, 52 schedulers at 824 to 875 MHz, 240 GB/s",
            "columns": ["kernel", "grid", "positions", "slots", "issue us", "bytes", "bandwidth us", "bound by"],
            "rows": [_floors(cost) for cost in report.costs],
        }
    )
    return tables


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value - round(value)) < 0.005 else f"{value:.2f}"


def _time(microseconds: float) -> str:
    return f"{microseconds:.1f}" if microseconds >= 10 else f"{microseconds:.3f}"


def _slots(slots: Mapping[str, float], used: list[str], warps: int) -> list[str]:
    total = sum(slots.values())
    return [_number(total), _number(total / warps), *(_number(slots.get(name, 0)) for name in used)]


def _floors(cost: KernelCost) -> list[str]:
    base, boost = cost.issue_floor_us
    bandwidth = cost.bandwidth_floor_us
    known = "" if cost.exact else ">= "
    return [
        cost.kernel,
        "x".join(str(size) for size in cost.grid),
        "-" if cost.positions is None else str(cost.positions),
        f"{cost.slots:.0f}",
        f"{_time(boost)} to {_time(base)}",
        f"{known}{cost.bytes:.0f}",
        f"{known}{_time(bandwidth)}",
        "bandwidth" if bandwidth > boost else "issue" if cost.exact else "not told",
    ]
