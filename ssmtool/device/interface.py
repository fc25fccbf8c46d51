"""The interface every device has. Arguments and their rules are those of `ssmtool.execute.Module.launch`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from ssmtool import ptx
    from ssmtool.execute.arguments import Arguments
    from ssmtool.execute.result import LaunchResult

Extent = int | Sequence[int]


@dataclass(frozen=True)
class Properties:
    """What a device is.

    `model` is its name (`Tesla K80`), `capability` (3, 7); the executor has that of the card it stands for. `driver` is
    the CUDA release of the driver ((11, 4)), `ptx_isa` the newest it takes; None where there is none or it is not
    known. `memory` is in bytes. `dies` counts the devices of this card: a K80 is two. `binding` is the library that
    the driver is called through, `cpu` for the executor.
    """

    model: str
    capability: tuple[int, int]
    binding: str
    driver: tuple[int, int] | None = None
    ptx_isa: tuple[int, int] | None = None
    memory: int = 0
    multiprocessors: int = 0
    dies: int = 1

    @property
    def target(self) -> str:
        """`sm_37`."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


@dataclass(frozen=True)
class Launched:
    """One launch that has run. `buffers` are the caller's arrays, by the parameters' names, changed in place.

    `seconds` is the kernel's own time. `result` is the executor's, with what it knows of every buffer; None on a card.
    """

    buffers: dict[str, NDArray[Any]]
    seconds: float
    result: LaunchResult | None = None


class DeviceModule(ABC):
    """PTX loaded on a device."""

    entries: tuple[str, ...]

    @abstractmethod
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
        """Run a kernel to its end and bring the buffers back.

        Raises LaunchError or ArgumentError before anything has run, KernelFaultError or OutsideWriteError for a kernel
        that left its buffers, CrashedError for one that ended the card's context by it, another DeviceError for a
        device that could not; after a fatal one `device.problem` is set.
        """

    @abstractmethod
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
        """Seconds of `repeat` launches after `warmup` others, each from the buffers' state as given.

        Putting the buffers back is not in the time. The caller's arrays are left as they were.
        """

    @abstractmethod
    def close(self) -> None:
        """Unload. A second call does nothing."""


class Device(ABC):
    """One device, open. `name` is how it is chosen (`cpu`, `cuda:0`); `problem` is why it is out of use, or None."""

    name: str
    properties: Properties
    problem: Exception | None = None

    @property
    def real(self) -> bool:
        """Whether this is a card, and not the executor."""
        return self.properties.binding != "cpu"

    @abstractmethod
    def load(
        self,
        text: str | bytes | ptx.Module,
        path: str | None = None,
        *,
        parameters: Mapping[str, Sequence[str]] | None = None,
    ) -> DeviceModule:
        """Load PTX. Raises PtxSyntaxError, or LoadError when this device cannot take it and why."""

    @abstractmethod
    def close(self) -> None:
        """Give the device back. A second call does nothing."""

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        p = self.properties
        if not self.real:
            return f"{self.name} ({p.model})"
        release = f", driver of CUDA {p.driver[0]}.{p.driver[1]}" if p.driver else ""
        return f"{self.name} ({p.model}, {p.target}{release}, by {p.binding})"
