"""How many blocks of a kernel one multiprocessor of the K80's GK210 holds, and what holds it back.

The rule is that of NVIDIA's occupancy calculator for compute capability 3.x: registers are given to whole warps in
units of 256, out of four partitions of the register file; shared memory to whole blocks in units of 256 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ssmtool.audit.launches import Launch
from ssmtool.errors import SsmtoolError
from ssmtool.toolchain.ptxas_report import Resources

_WARP = 32
_KB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one multiprocessor has to share out, and the units it is shared out in.

    `registers` are 32-bit; shared memory is in bytes. The defaults are GK210's (compute capability 3.7). Warps (2048
    threads), blocks, and the registers and shared memory of a multiprocessor, a block and a thread are the table
    "Technical Specifications per Compute Capability" of the CUDA C Programming Guide (11.x) and, for what GK210
    doubles, the Kepler Tuning Guide; 13 multiprocessors is a K80 die. The units (256 registers a warp, 4 partitions,
    256 bytes of shared memory) are those of cuda_occupancy.h in CUDA 11.8.
    """

    name: str = "GK210"
    multiprocessors: int = 13
    warps: int = 64
    blocks: int = 16
    registers: int = 131_072
    shared_bytes: int = 112 * _KB
    threads_per_block: int = 1024
    registers_per_block: int = 65_536
    registers_per_thread: int = 255
    shared_bytes_per_block: int = 48 * _KB
    register_unit: int = 256
    shared_unit: int = 256
    partitions: int = 4


# L1 and shared memory come out of one 128 KB store: a host that asks for more L1 (cuFuncSetCacheConfig) leaves 96 or
# 80 KB to shared memory; `dataclasses.replace(GK210, shared_bytes=80 * 1024)` is that machine.
GK210 = Limits()


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`blocks` and `warps` that one multiprocessor holds at once; `fraction` of its warps.

    `limiter` names what is used up first, all of them when several tie (`warps, blocks`). `allowed` is how many blocks
    each resource that the launch uses would allow by itself. With 0 blocks the launch fails on the machine ("too many
    resources requested").
    """

    blocks: int
    warps: int
    fraction: float
    limiter: str
    allowed: Mapping[str, int]


def occupancy(registers: int, threads_per_block: int, shared_bytes: int, limits: Limits = GK210) -> Occupancy:
    """The occupancy of a launch. `registers` are per thread; `shared_bytes` per block, static and dynamic together.

    Raises SsmtoolError for numbers that no launch has (a block of no threads, anything negative).
    """
    if registers < 0 or shared_bytes < 0 or threads_per_block < 1:
        raise SsmtoolError(
            f"no launch has {registers} registers, {threads_per_block} threads a block and {shared_bytes} shared bytes"
        )
    warps_per_block = _up(threads_per_block, _WARP) // _WARP
    fits = threads_per_block <= limits.threads_per_block
    allowed = {
        "warps": limits.warps // warps_per_block if fits else 0,
        "blocks": limits.blocks,
    }
    if registers:
        allowed["registers"] = _by_registers(registers, warps_per_block, limits)
    if shared_bytes:
        allowed["shared memory"] = _by_shared(shared_bytes, limits)
    blocks = min(allowed.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps_per_block,
        fraction=blocks * warps_per_block / limits.warps,
        limiter=", ".join(name for name, count in allowed.items() if count == blocks),
        allowed=allowed,
    )


@dataclass(frozen=True, slots=True)
class OccupancyRow:
    """One line of the occupancy table. `waves` is how often the grid fills the whole die; None when it does not fit."""

    launch: Launch
    registers: int
    shared_bytes: int
    occupancy: Occupancy
    waves: float | None


def occupancy_rows(
    resources: Iterable[Resources], launches: Iterable[Launch], limits: Limits = GK210
) -> tuple[OccupancyRow, ...]:
    """The occupancy of each launch whose kernel is among `resources`, in the order of `launches`."""
    by_name = {item.name: item for item in resources}
    return tuple(_row(by_name[launch.kernel], launch, limits) for launch in launches if launch.kernel in by_name)


def occupancy_table(rows: Iterable[OccupancyRow], limits: Limits = GK210, target: str = "sm_37") -> dict[str, object]:
    """Title, columns and rows for a report. `target` is what ptxas counted the registers for."""
    runs = re.fullmatch(r"sm_[123]\d", target)
    other = "" if runs else f", with the registers of {target} (a comparison: such PTX does not run there)"
    return {
        "title": f"Occupancy of one {limits.name} multiprocessor{other}",
        "columns": ("kernel", "grid", "block", "registers", "shared", "blocks", "warps", "occupancy", "limit", "waves"),
        "rows": [
            (
                row.launch.kernel,
                " x ".join(str(size) for size in row.launch.grid),
                " x ".join(str(size) for size in row.launch.block if size > 1) or "1",
                str(row.registers),
                str(row.shared_bytes),
                str(row.occupancy.blocks),
                f"{row.occupancy.warps}/{limits.warps}",
                f"{row.occupancy.fraction:.0%}",
                row.occupancy.limiter,
                "does not launch" if row.waves is None else f"{row.waves:.2f}",
            )
            for row in rows
        ],
    }


def _row(resources: Resources, launch: Launch, limits: Limits) -> OccupancyRow:
    shared = resources.shared_bytes + launch.dynamic_shared_bytes
    result = occupancy(resources.registers, launch.threads, shared, limits)
    at_once = result.blocks * limits.multiprocessors
    waves = launch.blocks / at_once if at_once else None
    return OccupancyRow(launch, resources.registers, shared, result, waves)


def _by_registers(registers: int, warps_per_block: int, limits: Limits) -> int:
    if registers > limits.registers_per_thread:
        return 0
    per_warp = _up(registers * _WARP, limits.register_unit)
    # The check at launch counts a block's warps in whole rounds over the partitions, as if each got the same number.
    if per_warp * _up(warps_per_block, limits.partitions) > limits.registers_per_block:
        return 0
    # A warp lives in one partition: what is left over in one cannot be joined to what is left over in another.
    warps = limits.registers // limits.partitions // per_warp * limits.partitions
    return warps // warps_per_block


def _by_shared(shared_bytes: int, limits: Limits) -> int:
    allocated = _up(shared_bytes, limits.shared_unit)
    if allocated > limits.shared_bytes_per_block:
        return 0
    return limits.shared_bytes // allocated


def _up(value: int, unit: int) -> int:
    """`value` rounded up to a multiple of `unit`."""
    return -(-value // unit) * unit
