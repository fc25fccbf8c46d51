"""The two dozen driver calls a device needs, whichever library makes them.

Handles are whatever the binding returns; addresses are ints. Every method raises BindingError with the driver's code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

# CUdevice_attribute
MULTIPROCESSORS = 16
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
MULTI_GPU_BOARD, MULTI_GPU_BOARD_GROUP = 84, 85
# CUjit_option
JIT_LOG, JIT_LOG_BYTES = 5, 6
LOG_BYTES = 16384
# CUfunction_attribute
STATIC_SHARED = 1

Triple = tuple[int, int, int]


class Binding(ABC):
    """The driver through one library. Calls with a context need `make_current` in the same thread before."""

    name: str

    @abstractmethod
    def version(self) -> int:
        """`cuDriverGetVersion`: 11040."""

    @abstractmethod
    def count(self) -> int:
        """How many devices there are."""

    @abstractmethod
    def model(self, index: int) -> str:
        """`Tesla K80`."""

    @abstractmethod
    def attribute(self, index: int, attribute: int) -> int:
        """One of CUdevice_attribute."""

    @abstractmethod
    def total_memory(self, index: int) -> int:
        """Bytes of device memory."""

    @abstractmethod
    def retain(self, index: int) -> Any:
        """The device's primary context."""

    @abstractmethod
    def release(self, index: int, context: Any) -> None:
        """Give the primary context back."""

    @abstractmethod
    def make_current(self, context: Any) -> None:
        """Use the context in this thread."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything; this is where a kernel's own error shows."""

    @abstractmethod
    def load(self, text: bytes) -> Any:
        """A module. The error carries the JIT's log."""

    @abstractmethod
    def unload(self, module: Any) -> None:
        """Unload a module."""

    @abstractmethod
    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""

    @abstractmethod
    def static_shared(self, function: Any) -> int:
        """Bytes of static shared memory of one block."""

    @abstractmethod
    def alloc(self, size: int) -> int:
        """`size` > 0 bytes of device memory."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Give memory back."""

    @abstractmethod
    def copy_in(self, address: int, array: NDArray[Any]) -> None:
        """Host to device: all of a C-ordered array."""

    @abstractmethod
    def copy_out(self, array: NDArray[Any], address: int) -> None:
        """Device to host: all of a C-ordered array."""

    @abstractmethod
    def copy_within(self, to: int, source: int, size: int) -> None:
        """Device to device."""

    @abstractmethod
    def launch(
        self,
        function: Any,
        grid: Triple,
        block: Triple,
        shared: int,
        data: NDArray[Any],
        offsets: Sequence[int],
    ) -> None:
        """Start a kernel. `data` holds the parameter bytes, `offsets` where each parameter starts in them."""

    @abstractmethod
    def event(self) -> Any:
        """A new event with a time."""

    @abstractmethod
    def record(self, event: Any) -> None:
        """Put the event behind all that was started."""

    @abstractmethod
    def elapsed(self, first: Any, last: Any) -> float:
        """Milliseconds between two events, once the last has happened."""
