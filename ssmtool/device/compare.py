"""The same launches on several devices, and whether every output has the same bits."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.device.causes import cause_of
from ssmtool.device.interface import Device, DeviceModule, Extent
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool import ptx
    from ssmtool.execute.arguments import Arguments


@dataclass(frozen=True)
class Launch:
    """One launch; arrays among `args` are its inputs and are not changed. `name` is for reports."""

    entry: str
    grid: Extent
    block: Extent
    args: Arguments
    shared_bytes: int = 0
    name: str = ""

    @property
    def title(self) -> str:
        """The name, else the entry's."""
        return self.name or self.entry


@dataclass(frozen=True)
class Difference:
    """A buffer whose bits differ from the first device's: how many elements, the first of them, and the likely cause.

    `first` is the element's index by axis; `expected` and `got` are its bits on the two devices.
    """

    count: int
    first: tuple[int, ...]
    expected: int
    got: int
    cause: str


@dataclass(frozen=True)
class Output:
    """One buffer of a launch on one device, against the first device.

    `evidence` is the executor's label when it is among the devices, else None; `difference` is None for equal bits.
    """

    buffer: str
    elements: int
    evidence: str | None = None
    difference: Difference | None = None


@dataclass
class Comparison:
    """One launch: by device its outputs, or why it has none. `reference` is the device the others are compared with."""

    launch: Launch
    reference: str
    outputs: dict[str, list[Output]] = field(default_factory=dict)
    failures: dict[str, SsmtoolError] = field(default_factory=dict)
    written: frozenset[str] | None = None

    @property
    def equal(self) -> bool:
        """Whether every device ran it and gave the same bits."""
        return not self.failures and not any(self.differences)

    @property
    def differences(self) -> list[tuple[str, Output]]:
        """(device, output) of every buffer that differs."""
        return [(name, each) for name, found in self.outputs.items() for each in found if each.difference]


def compare_devices(
    text: str | bytes | ptx.Module,
    launches: Sequence[Launch],
    devices: Sequence[Device],
    *,
    parameters: Mapping[str, Sequence[str]] | None = None,
    timeout_s: float | None = None,
) -> list[Comparison]:
    """Run every launch on every device from the same inputs, the devices side by side.

    The first device is the one that others are compared with. A device that fails a launch has that as its result, one
    that is lost fails all after it; the others go on. Raises SsmtoolError only when the PTX is none.
    """
    from ssmtool import ptx as front

    module = text if isinstance(text, front.Module) else front.parse(text)
    loaded: dict[str, DeviceModule | SsmtoolError] = {}
    for device in devices:
        loaded[device.name] = _load(device, module, parameters)
    try:
        with ThreadPoolExecutor(max(1, len(devices))) as pool:
            return [_compare(launch, devices, loaded, pool, timeout_s) for launch in launches]
    finally:
        for each in loaded.values():
            if isinstance(each, DeviceModule):
                each.close()


def _compare(
    launch: Launch,
    devices: Sequence[Device],
    loaded: Mapping[str, DeviceModule | SsmtoolError],
    pool: ThreadPoolExecutor,
    timeout_s: float | None,
) -> Comparison:
    found = Comparison(launch, devices[0].name)
    runs = {device.name: pool.submit(_run, launch, loaded[device.name], timeout_s) for device in devices}
    buffers: dict[str, dict[str, NDArray[Any]]] = {}
    evidence: dict[str, str] = {}
    for name, run in runs.items():
        got = run.result()
        if isinstance(got, SsmtoolError):
            found.failures[name] = got
            continue
        buffers[name] = got.buffers
        if got.result is not None:
            evidence = {each: str(got.result.evidence(each)) for each in got.buffers}
            found.written = frozenset(each for each in got.buffers if got.result.written(each) is not False)
    reference = buffers.get(found.reference)
    for name, each in buffers.items():
        if name != found.reference and reference is not None:
            found.outputs[name] = [
                Output(key, array.size, evidence.get(key), difference(reference[key], array))
                for key, array in each.items()
            ]
    return found


def _load(
    device: Device, module: ptx.Module, parameters: Mapping[str, Sequence[str]] | None
) -> DeviceModule | SsmtoolError:
    try:
        return device.load(module, parameters=parameters)
    except SsmtoolError as error:
        return error


def _run(launch: Launch, module: DeviceModule | SsmtoolError, timeout_s: float | None) -> Any:
    if isinstance(module, SsmtoolError):
        return module
    try:
        return module.launch(
            launch.entry, launch.grid, launch.block, copied(launch.args), launch.shared_bytes, timeout_s=timeout_s
        )
    except SsmtoolError as error:
        return error


def copied(args: Arguments) -> Arguments:
    """The arguments with copies of their arrays; the same array given twice stays one, views of one array stay views.

    Arrays that share memory keep doing so: what they are all views of is copied once.
    """
    owners: dict[int, Any] = {}
    if isinstance(args, Mapping):
        return {name: _copied(value, owners) for name, value in args.items()}
    return [_copied(value, owners) for value in args]


def _copied(value: Any, owners: dict[int, Any]) -> Any:
    if not isinstance(value, np.ndarray):
        return copy.deepcopy(value, owners)
    owner = value
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if id(owner) not in owners:
        owners[id(owner)] = owner.copy(order="K")
    fresh = owners[id(owner)]
    offset = value.ctypes.data - owner.ctypes.data
    whole = fresh.reshape(-1).view(np.uint8)[offset : offset + value.nbytes]
    again: NDArray[Any] = whole.view(value.dtype).reshape(value.shape) if value.nbytes else value.copy()
    again.flags.writeable = value.flags.writeable
    return again


def difference(expected: NDArray[Any], got: NDArray[Any]) -> Difference | None:
    """Where two arrays of one shape have different bits, or None."""
    raw = np.dtype(f"u{expected.dtype.itemsize}") if expected.dtype.itemsize in (1, 2, 4, 8) else np.dtype("u1")
    a, b = expected.reshape(-1).view(raw), got.reshape(-1).view(raw)
    places = np.flatnonzero(a != b)
    if not places.size:
        return None
    first = int(places[0])
    width = expected.dtype.itemsize // raw.itemsize
    index = tuple(int(each) for each in np.unravel_index(first // width, expected.shape or (1,)))
    kind = f"f{raw.itemsize * 8}" if expected.dtype.kind == "f" else f"b{raw.itemsize * 8}"
    return Difference(int(places.size), index, int(a[first]), int(b[first]), cause_of(kind, a[places], b[places]))
