"""The driver by PyCUDA, which has to be built against the machine's own CUDA toolkit."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from ssmtool.device import binding
from ssmtool.device.binding import LOG_BYTES, Binding, Triple
from ssmtool.device.codes import code_of
from ssmtool.device.errors import BindingError, NoDeviceError

INSTALL = "CUDA_ROOT=/usr/local/cuda-11.4 pip install pycuda (it needs the toolkit's cuda.h)"

_ATTRIBUTES = {
    binding.MULTIPROCESSORS: "MULTIPROCESSOR_COUNT",
    binding.CAPABILITY_MAJOR: "COMPUTE_CAPABILITY_MAJOR",
    binding.CAPABILITY_MINOR: "COMPUTE_CAPABILITY_MINOR",
    binding.MULTI_GPU_BOARD: "MULTI_GPU_BOARD",
    binding.MULTI_GPU_BOARD_GROUP: "MULTI_GPU_BOARD_GROUP_ID",
}


class PyCuda(Binding):
    """`pycuda.driver`. Raises NoDeviceError without the package."""

    name = "pycuda"

    def __init__(self) -> None:
        try:
            self._driver: Any = importlib.import_module("pycuda.driver")
        except ImportError as error:
            if getattr(error, "name", None) in ("pycuda", "pycuda.driver"):
                raise NoDeviceError("the package pycuda is not installed", hint=INSTALL) from None
            # Built, but against another libcuda or Python than this machine's: the words say which.
            raise NoDeviceError(f"pycuda cannot be imported: {error}", hint=INSTALL) from None
        # Allocations by address: PyCUDA frees one when nothing refers to it.
        self._held: dict[int, Any] = {}
        self._call("cuInit", self._driver.init)

    def _call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """PyCUDA raises its own errors, which keep the driver's text and not its number."""
        try:
            return function(*arguments)
        except (self._driver.Error, self._driver.MemoryError) as error:
            text = str(error)
            raise BindingError(name, code_of(text), text.partition(" - ")[2]) from None

    def version(self) -> int:  # noqa: D102 - the interface says it
        return int(self._call("cuDriverGetVersion", self._driver.get_driver_version))

    def count(self) -> int:  # noqa: D102
        return int(self._call("cuDeviceGetCount", self._driver.Device.count))

    def model(self, index: int) -> str:  # noqa: D102
        return str(self._call("cuDeviceGetName", self._device(index).name))

    def attribute(self, index: int, attribute: int) -> int:  # noqa: D102
        kind = getattr(self._driver.device_attribute, _ATTRIBUTES[attribute])
        return int(self._call("cuDeviceGetAttribute", self._device(index).get_attribute, kind))

    def total_memory(self, index: int) -> int:  # noqa: D102
        return int(self._call("cuDeviceTotalMem", self._device(index).total_memory))

    def _device(self, index: int) -> Any:
        return self._call("cuDeviceGet", self._driver.Device, index)

    def retain(self, index: int) -> Any:  # noqa: D102
        return self._call("cuDevicePrimaryCtxRetain", self._device(index).retain_primary_context)

    def release(self, index: int, context: Any) -> None:  # noqa: D102
        # Pushed once, by make_current in this same thread; PyCUDA ends the process if a context is left on its stack.
        self._call("cuCtxPopCurrent", self._driver.Context.pop)
        self._call("cuDevicePrimaryCtxRelease", context.detach)

    def make_current(self, context: Any) -> None:  # noqa: D102
        self._call("cuCtxPushCurrent", context.push)

    def synchronize(self) -> None:  # noqa: D102
        self._call("cuCtxSynchronize", self._driver.Context.synchronize)

    def load(self, text: bytes) -> Any:  # noqa: D102
        options = [(self._driver.jit_option.ERROR_LOG_BUFFER_SIZE_BYTES, LOG_BYTES)]
        return self._call("cuModuleLoadDataEx", self._driver.module_from_buffer, text + b"\0", options)

    def unload(self, module: Any) -> None:
        """PyCUDA unloads a module when nothing refers to it any more."""

    def function(self, module: Any, name: str) -> Any:  # noqa: D102
        return self._call("cuModuleGetFunction", module.get_function, name)

    def static_shared(self, function: Any) -> int:  # noqa: D102
        kind = self._driver.function_attribute.SHARED_SIZE_BYTES
        return int(self._call("cuFuncGetAttribute", function.get_attribute, kind))

    def alloc(self, size: int) -> int:  # noqa: D102
        memory = self._call("cuMemAlloc", self._driver.mem_alloc, size)
        address = int(memory)
        self._held[address] = memory
        return address

    def free(self, address: int) -> None:  # noqa: D102
        self._call("cuMemFree", self._held.pop(address).free)

    def copy_in(self, address: int, array: NDArray[Any]) -> None:  # noqa: D102
        self._call("cuMemcpyHtoD", self._driver.memcpy_htod, address, array)

    def copy_out(self, array: NDArray[Any], address: int) -> None:  # noqa: D102
        self._call("cuMemcpyDtoH", self._driver.memcpy_dtoh, array, address)

    def copy_within(self, to: int, source: int, size: int) -> None:  # noqa: D102
        self._call("cuMemcpyDtoD", self._driver.memcpy_dtod, to, source, size)

    def launch(  # noqa: D102
        self, function: Any, grid: Triple, block: Triple, shared: int, data: NDArray[Any], offsets: Sequence[int]
    ) -> None:
        # What pycuda.driver's own call of a function does once it has packed the arguments.
        self._call("cuLaunchKernel", function._launch_kernel, grid, block, data.tobytes(), shared, None)

    def event(self) -> Any:  # noqa: D102
        return self._call("cuEventCreate", self._driver.Event)

    def record(self, event: Any) -> None:  # noqa: D102
        self._call("cuEventRecord", event.record)

    def elapsed(self, first: Any, last: Any) -> float:  # noqa: D102
        self._call("cuEventSynchronize", last.synchronize)
        return float(self._call("cuEventElapsedTime", first.time_till, last))
