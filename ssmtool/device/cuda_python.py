"""The driver by NVIDIA's own Python package, `cuda-bindings`."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ssmtool.device.binding import LOG_BYTES, Binding, Triple
from ssmtool.device.errors import BindingError, NoDeviceError

INSTALL = "pip install 'ssmtool[gpu]'"


class CudaPython(Binding):
    """`cuda.bindings.driver`, or `cuda.cuda` of releases before 12. Raises NoDeviceError without the package."""

    name = "cuda-bindings"

    def __init__(self) -> None:
        self._driver = _package()
        try:
            self._call("cuInit", 0)
        except RuntimeError as error:
            # The package imports without a driver; the first call then fails in Python.
            raise NoDeviceError(f"no CUDA driver on this machine ({' '.join(str(error).split())})") from None

    def _call(self, name: str, *arguments: Any, log: bytearray | None = None) -> Any:
        code, *results = getattr(self._driver, name)(*arguments)
        if int(code):
            said = "" if log is None else bytes(log).split(b"\0")[0].decode(errors="replace")
            raise BindingError(name, int(code), said)
        return results[0] if results else None

    def version(self) -> int:  # noqa: D102 - the interface says it
        return int(self._call("cuDriverGetVersion"))

    def count(self) -> int:  # noqa: D102
        return int(self._call("cuDeviceGetCount"))

    def model(self, index: int) -> str:  # noqa: D102
        name: bytes = self._call("cuDeviceGetName", 256, self._device(index))
        return name.split(b"\0")[0].decode(errors="replace")

    def attribute(self, index: int, attribute: int) -> int:  # noqa: D102
        kind = self._driver.CUdevice_attribute(attribute)
        return int(self._call("cuDeviceGetAttribute", kind, self._device(index)))

    def total_memory(self, index: int) -> int:  # noqa: D102
        return int(self._call("cuDeviceTotalMem", self._device(index)))

    def _device(self, index: int) -> Any:
        return self._call("cuDeviceGet", index)

    def retain(self, index: int) -> Any:  # noqa: D102
        return self._call("cuDevicePrimaryCtxRetain", self._device(index))

    def release(self, index: int, context: Any) -> None:  # noqa: D102
        self._call("cuDevicePrimaryCtxRelease", self._device(index))

    def make_current(self, context: Any) -> None:  # noqa: D102
        self._call("cuCtxSetCurrent", context)

    def synchronize(self) -> None:  # noqa: D102
        self._call("cuCtxSynchronize")

    def load(self, text: bytes) -> Any:  # noqa: D102
        log = bytearray(LOG_BYTES)
        option = self._driver.CUjit_option
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        return self._call("cuModuleLoadDataEx", text + b"\0", 2, options, [log, LOG_BYTES - 1], log=log)

    def unload(self, module: Any) -> None:  # noqa: D102
        self._call("cuModuleUnload", module)

    def function(self, module: Any, name: str) -> Any:  # noqa: D102
        return self._call("cuModuleGetFunction", module, name.encode())

    def static_shared(self, function: Any) -> int:  # noqa: D102
        kind = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        return int(self._call("cuFuncGetAttribute", kind, function))

    def alloc(self, size: int) -> int:  # noqa: D102
        return int(self._call("cuMemAlloc", size))

    def free(self, address: int) -> None:  # noqa: D102
        self._call("cuMemFree", address)

    def copy_in(self, address: int, array: NDArray[Any]) -> None:  # noqa: D102
        self._call("cuMemcpyHtoD", address, array.ctypes.data, array.nbytes)

    def copy_out(self, array: NDArray[Any], address: int) -> None:  # noqa: D102
        self._call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)

    def copy_within(self, to: int, source: int, size: int) -> None:  # noqa: D102
        self._call("cuMemcpyDtoD", to, source, size)

    def launch(  # noqa: D102
        self, function: Any, grid: Triple, block: Triple, shared: int, data: NDArray[Any], offsets: Sequence[int]
    ) -> None:
        pointers = (ctypes.c_void_p * max(len(offsets), 1))(*(data.ctypes.data + offset for offset in offsets))
        self._call("cuLaunchKernel", function, *grid, *block, shared, 0, ctypes.addressof(pointers), 0)

    def event(self) -> Any:  # noqa: D102
        return self._call("cuEventCreate", 0)

    def record(self, event: Any) -> None:  # noqa: D102
        self._call("cuEventRecord", event, 0)

    def elapsed(self, first: Any, last: Any) -> float:  # noqa: D102
        return float(self._call("cuEventElapsedTime", first, last))


def _package() -> Any:
    for name in ("cuda.bindings.driver", "cuda.cuda"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise NoDeviceError("the package cuda-bindings is not installed", hint=INSTALL)
