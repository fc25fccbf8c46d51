"""PTX on one device, ready to run launches of golden cases: which module holds which kernel, and what a run left.

On the CPU the executor's checks stand guard: an access outside a buffer ends the launch, and with `check="all"` races,
loads of what nothing wrote and misused barriers do too. On a card the device puts canaries around every buffer.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.golden.case import DTYPES

if TYPE_CHECKING:
    from ssmtool.device import Device, DeviceModule
    from ssmtool.execute import KernelFault
    from ssmtool.golden import Argument, GoldenCase, Launch
    from ssmtool.ptx import Module

Check = Literal["all", "bounds", "none"]
Array = NDArray[Any]

# What cudaMalloc gives is aligned at least so, and kernels may rely on it.
_ALIGNMENT = 256


class MissingEntryError(SsmtoolError):
    """The PTX has no kernel of the name that a case launches."""


@dataclass(frozen=True)
class Text:
    """One PTX module to verify: parsed, with its parameters' names in C where the file tells them."""

    module: Module
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)


def named(text: Text, cases: Sequence[GoldenCase]) -> Text:
    """The text with the parameters' names that cases give, where it has none itself: messages then speak of `y`."""
    names: dict[str, Sequence[str]] = {}
    for case in cases:
        for run in case.meta.runs:
            for launch in run.launches:
                names.setdefault(launch.entry, tuple(argument.name for argument in launch.args))
    fitting = {
        entry.name: names[entry.name]
        for entry in text.module.entries
        if len(names.get(entry.name, ())) == len(entry.params) and len(set(names[entry.name])) == len(entry.params)
    }
    return Text(text.module, {**fitting, **text.parameters})


@dataclass
class Ran:
    """What the launches of a run left. `evidence` has the doubts about a buffer's bits, by the executor alone."""

    after: dict[str, Array]
    notes: list[KernelFault] = field(default_factory=list)
    evidence: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Loaded:
    """Modules on one device. `check` is what the executor looks for unless a run asks for less; cards have their own.

    Raises what `Device.load` raises. May be used by several threads where the device may.
    """

    def __init__(self, device: Device, texts: Sequence[Text], *, check: Check = "all") -> None:
        self.device = device
        self.check = check
        self._texts = texts
        self._modules: dict[Check, dict[str, DeviceModule]] = {}
        self._lock = threading.Lock()
        self.entries = tuple(dict.fromkeys(entry.name for text in texts for entry in text.module.entries))
        if device.real:
            self._modules["none"] = self._load(device)

    def close(self) -> None:
        """Unload."""
        for modules in self._modules.values():
            for module in {id(each): each for each in modules.values()}.values():
                module.close()

    def _load(self, device: Device) -> dict[str, DeviceModule]:
        found: dict[str, DeviceModule] = {}
        for text in self._texts:
            module = device.load(text.module, parameters=text.parameters)
            for entry in text.module.entries:
                found.setdefault(entry.name, module)
        return found

    def module(self, entry: str, check: Check | None = None) -> DeviceModule:
        """The module with a kernel. Raises MissingEntryError."""
        level: Check = "none" if self.device.real else check or self.check
        with self._lock:
            modules = self._modules.get(level)
            if modules is None:
                from ssmtool.device.cpu import CpuDevice

                modules = self._modules[level] = self._load(CpuDevice(level))
        if entry not in modules:
            import difflib

            close = difflib.get_close_matches(entry, modules, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise MissingEntryError(
                f"the PTX has no kernel {entry}{meant}", hint="ssmtool audit-ptx, which lists those that it has"
            )  # fmt: skip
        return modules[entry]

    def launch(
        self, entry: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_bytes: int,
        *, check: Check | None = None,
    ) -> Any:  # fmt: skip
        """One launch; arrays among `args` are changed in place. Raises what `DeviceModule.launch` raises."""
        return self.module(entry, check).launch(entry, grid, block, args, shared_bytes)

    def run(self, case: GoldenCase, launches: Sequence[Launch], *, check: Check | None = None) -> Ran:
        """A run of a case, from the images that the case gives. Raises as `launch`."""
        for launch in launches:
            self.module(launch.entry, check)
        memory = Memory(case)
        ran = Ran(memory.arrays)
        for launch in launches:
            args = [memory.argument(each) for each in launch.args]
            done = self.launch(launch.entry, launch.grid, launch.block, args, launch.shared_bytes, check=check)
            ran.seconds += done.seconds
            if done.result is not None:
                ran.notes += done.result.notes
                _gather(ran.evidence, launch, done.result)
        return ran


def _gather(evidence: dict[str, str], launch: Launch, result: Any) -> None:
    """The doubt about each buffer that this launch stored into: a later launch may add to it, never take away."""
    for position, argument in enumerate(launch.args):
        if argument.buffer is not None and result.written(position):
            told = str(result.evidence(position))
            if told != "exact" or argument.buffer not in evidence:
                evidence[argument.buffer] = told


class Memory:
    """The buffers of a case before a run, and arguments as the devices take them."""

    def __init__(self, case: GoldenCase) -> None:
        self.arrays = {name: _image(case, name) for name in case.meta.buffers}
        self._fresh: dict[str, Any] = {}
        poisoned = [name for name, buffer in case.meta.buffers.items() if buffer.before == "poison"]
        if poisoned:
            from ssmtool.execute.memory import Uninitialised

            # What a run's earlier launches wrote counts as written in the later ones.
            self._fresh = {name: Uninitialised(self.arrays[name]) for name in poisoned}

    def argument(self, argument: Argument) -> Any:
        """An array (from the offset on), None for null, or the scalar with its own bits."""
        if argument.buffer is None:
            return None if argument.type == "null" else scalar(argument)
        fresh = self._fresh.get(argument.buffer)
        if argument.offset == 0:
            return fresh if fresh is not None else self.arrays[argument.buffer]
        rest = self.arrays[argument.buffer].reshape(-1)[argument.offset :]
        if fresh is None or argument.offset * rest.itemsize % 4:
            return rest
        part = type(fresh)(rest)
        part.written = fresh.written[argument.offset * rest.itemsize // 4 :]
        return part


def scalar(argument: Argument) -> Any:
    """The value as a NumPy scalar of its type."""
    return np.dtype(argument.type or "int32").type(argument.value)


def _image(case: GoldenCase, name: str) -> Array:
    """The buffer before a run. Of one that is in the file only by rows, no other page is touched: it may have 8 GiB."""
    buffer = case.meta.buffers[name]
    if buffer.rows is None or buffer.before == "poison":
        image = case.image(name)
        copy = _room(image.shape, image.dtype)
        copy[...] = image
        return copy
    zeros = _room(buffer.shape, np.dtype(DTYPES[buffer.dtype]))
    if buffer.before == "given":
        zeros[list(buffer.rows)] = case.before[name]
    return zeros


def _room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros at an address such as a card gives; NumPy itself promises 16 bytes."""
    size = prod(shape) * dtype.itemsize
    room = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    array: Array = room[start : start + size].view(dtype).reshape(shape)
    return array
