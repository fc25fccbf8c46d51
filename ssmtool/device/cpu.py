"""The CPU executor as a device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ssmtool import ptx
from ssmtool.device.interface import Device, DeviceModule, Extent, Launched, Properties

if TYPE_CHECKING:
    from ssmtool.execute.arguments import Arguments
    from ssmtool.execute.module import Check


class CpuDevice(Device):
    """Runs PTX for sm_37 on this machine's processor. `check` is that of `execute.Module.launch`."""

    name = "cpu"

    def __init__(self, check: Check = "bounds") -> None:
        from ssmtool.execute import require_libraries

        require_libraries()
        self.check: Check = check
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
        self.properties = Properties(
            model=_processor(), capability=(3, 7), binding="cpu", memory=memory, multiprocessors=os.cpu_count() or 1
        )

    def load(
        self,
        text: str | bytes | ptx.Module,
        path: str | None = None,
        *,
        parameters: Mapping[str, Sequence[str]] | None = None,
    ) -> CpuModule:
        """PTX, ready to be compiled entry by entry at the first launch of each."""
        from ssmtool.execute import Module

        return CpuModule(Module(text, path, parameters=parameters), self.check)

    def close(self) -> None:
        """Nothing is held."""


class CpuModule(DeviceModule):
    """A module of the executor."""

    def __init__(self, module: Any, check: Check) -> None:
        self._module = module
        self._check = check
        self.entries = module.entries

    def launch(
        self,
        entry: str,
        grid: Extent,
        block: Extent,
        args: Arguments,
        shared_bytes: int = 0,
        *,
        timeout_s: float | None = None,
    ) -> Launched:
        """As the interface says; endless loops end by the executor's own budget, so `timeout_s` is not used."""
        result = self._module.launch(entry, grid, block, args, shared_bytes, check=self._check)
        return Launched(result.buffers, result.seconds, result)

    def time(
        self,
        entry: str,
        grid: Extent,
        block: Extent,
        args: Arguments,
        shared_bytes: int = 0,
        *,
        repeat: int = 20,
        warmup: int = 3,
        timeout_s: float | None = None,
    ) -> tuple[float, ...]:
        """As the interface says."""
        arrays = arrays_of(args)
        before = [array.copy() for array in arrays]
        seconds = []
        for _ in range(warmup + repeat):
            seconds.append(self.launch(entry, grid, block, args, shared_bytes).seconds)
            for array, copy in zip(arrays, before, strict=True):
                array[...] = copy
        return tuple(seconds[warmup:])

    def close(self) -> None:
        """Nothing is held."""


def arrays_of(args: Arguments) -> list[NDArray[Any]]:
    """The arrays among a launch's arguments that a kernel may change."""
    import numpy as np

    values = args.values() if isinstance(args, Mapping) else args
    arrays = [getattr(value, "array", value) for value in values]
    return [each for each in arrays if isinstance(each, np.ndarray) and each.flags.writeable]


def _processor() -> str:
    """The processor's name, from Linux; else the machine's architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"CPU executor on {named or os.uname().machine}"
