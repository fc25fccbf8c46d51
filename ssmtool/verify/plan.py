"""Before a case runs: how much work it is, what may stand guard over it, and whether it fits the device at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ssmtool.verify.loaded import Check

if TYPE_CHECKING:
    from ssmtool.device import Device
    from ssmtool.golden import GoldenCase, Launch

# Thread-positions up to which a run on the CPU is watched for races and unwritten memory too; larger ones for bounds.
# Measured on 2 cores: the recurrence does 10^6 of them (S = 128) in about 0.1 s watched so.
ALL_WORK = 3_000_000
# Work of a case above which --quick leaves it out: some hundredths of a second.
QUICK_WORK = 4_000_000
# Buffers of one case on the CPU. A larger case is one for 64-bit offsets: on the CPU it would take 8 GiB and an hour.
CPU_BYTES = 1 << 29


def launch_work(launch: Launch) -> int:
    """Threads times positions."""
    threads = 1
    for extent in (*launch.grid, *launch.block):
        threads *= extent
    n = next((each.value for each in launch.args if each.name == "n" and each.type == "int32"), 1)
    return threads * max(1, n) if "seq" in launch.entry and isinstance(n, int) else threads


def case_work(case: GoldenCase) -> int:
    """Of all runs."""
    return sum(launch_work(launch) for run in case.meta.runs for launch in run.launches)


def run_check(launches: Sequence[Launch], limit: int) -> Check:
    """What stands guard on the CPU: everything where the work is within `limit`."""
    return "all" if sum(map(launch_work, launches)) <= limit else "bounds"


def capped_check(check: Check, most: Check) -> Check:
    """`check`, or less where `most` is less."""
    return check if most == "all" else most


def too_large(case: GoldenCase, device: Device) -> str | None:
    """Why the case does not fit the device, or None."""
    if not device.real:
        if case.device_bytes > CPU_BYTES:
            return f"needs {_gib(case.device_bytes)} of buffers; on the CPU a case has at most {_gib(CPU_BYTES)}"
        return None
    memory = device.properties.memory
    if memory and case.device_bytes > memory * 0.95:
        return f"needs {_gib(case.device_bytes)} of buffers, {device.name} has {_gib(memory)}"
    return None


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
