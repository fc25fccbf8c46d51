"""`ssmtool run --device`: the same launch on cards, and on several devices compared bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.device import Device
    from ssmtool.ptx import Module

Buffers = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class DeviceRun:
    """What the devices answered: the first one's buffers, the findings, a line for each device, and the last line."""

    buffers: Buffers
    outcome: Outcome
    lines: list[str]
    summary: str
    extra: dict[str, Any]


def run_on_devices(
    spec: str,
    module: Module,
    parameters: Mapping[str, Sequence[str]],
    entry: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    args: Mapping[str, Any],
    repeat: int,
) -> DeviceRun:
    """Launch on every device that `spec` means, each from the same buffers; the first is what others are compared with.

    Raises SsmtoolError when there is no such device. A device that fails is a finding, or a check that did not run.
    """
    from ssmtool.device import compare, open_devices

    outcome, lines = Outcome(), []
    reference: Buffers | None = None
    equal = 0
    devices_json = []
    with open_devices(spec) as devices:
        for device in devices:
            try:
                buffers, seconds = _launch(device, module, parameters, entry, grid, block, shared, args, repeat)
            except SsmtoolError as error:
                if len(devices) == 1:
                    raise
                _failed(outcome, device, entry, error)
                continue
            lines.append(f"  {device}: {seconds * 1e3:.3f} ms")
            devices_json.append({"device": device.name, "what": str(device), "seconds": seconds})
            if reference is None:
                reference, first = buffers, device
                continue
            different = {name: compare.difference(reference[name], array) for name, array in buffers.items()}
            equal += not any(different.values())
            outcome.findings += [
                _finding(first, device, entry, name, found) for name, found in different.items() if found is not None
            ]
        names = [device.name for device in devices]
    summary = f"{entry} on {', '.join(names)}"
    if len(names) > 1:
        count = plural(len(reference or {}), "buffer")
        summary += f": {count}, the same bits on {equal + (reference is not None)} of {len(names)} devices"
    return DeviceRun(reference or {}, outcome, lines, summary, {"entry": entry, "devices": devices_json})


def print_device_run(ran: DeviceRun, shown: Mapping[str, int], quiet: bool, output_format: str, command: str) -> None:
    """The report, for people or in one of the formats for machines."""
    if output_format != "console":
        from ssmtool.cli.context import print_report

        values = {name: list(map(str, ran.buffers[name].reshape(-1)[:count])) for name, count in shown.items()}
        print_report(ran.outcome, output_format, command=command, extra={**ran.extra, "values": values})
        return
    from ssmtool.report.console import print_outcome
    from ssmtool.report.run import print_values

    if not quiet:
        print("\n".join(ran.lines))
    print_values(shown, ran.buffers)
    print_outcome(ran.outcome, summary=ran.summary, quiet=quiet)


def _launch(
    device: Device,
    module: Module,
    parameters: Mapping[str, Sequence[str]],
    entry: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    args: Mapping[str, Any],
    repeat: int,
) -> tuple[Buffers, float]:
    from statistics import median

    from ssmtool.device.compare import copied

    loaded = device.load(module, parameters=parameters)
    try:
        ran = loaded.launch(entry, grid, block, copied(args), shared)
        if repeat > 1:
            return ran.buffers, median(loaded.time(entry, grid, block, args, shared, repeat=repeat))
        return ran.buffers, ran.seconds
    finally:
        loaded.close()


def _failed(outcome: Outcome, device: Device, entry: str, error: SsmtoolError) -> None:
    """The product's fault is a finding; a device's is a check that did not run."""
    if error.exit_code == 1:
        outcome.findings.append(
            Finding("run/failed", Severity.ERROR, f"{device.name}: {error}", kernel=entry, fix=error.hint)
        )
    else:
        outcome.required_skips.append(Skip(f"{entry} on {device.name}", str(error), error.hint))


def _finding(first: Device, device: Device, entry: str, name: str, found: Any) -> Finding:
    place = ", ".join(map(str, found.first))
    return Finding(
        "run/devices-differ",
        Severity.ERROR,
        f"{device.name} and {first.name} differ in {plural(found.count, 'element')} of {name} ({found.cause}); first:"
        f" {name}[{place}] is 0x{found.got:x}, on {first.name} 0x{found.expected:x}",
        kernel=entry,
        effect=f"the kernel computes something else on {device.properties.model}",
    )
