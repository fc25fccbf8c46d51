"""The driver by ctypes: needs no package at all."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ssmtool.device.binding import JIT_LOG, JIT_LOG_BYTES, LOG_BYTES, STATIC_SHARED, Binding, Triple
from ssmtool.device.errors import BindingError, NoDeviceError

LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")

_u32, _u64, _size, _pointer = ctypes.c_uint, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_u32,),
    "cuDriverGetVersion": (_pointer,),
    "cuDeviceGetCount": (_pointer,),
    "cuDeviceGet": (_pointer, ctypes.c_int),
    "cuDeviceGetName": (_pointer, ctypes.c_int, ctypes.c_int),
    "cuDeviceGetAttribute": (_pointer, ctypes.c_int, ctypes.c_int),
    "cuDeviceTotalMem_v2": (_pointer, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (_pointer, ctypes.c_int),
    "cuDevicePrimaryCtxRelease_v2": (ctypes.c_int,),
    "cuCtxSetCurrent": (_pointer,),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (_pointer, _pointer, _u32, _pointer, _pointer),
    "cuModuleUnload": (_pointer,),
    "cuModuleGetFunction": (_pointer, _pointer, ctypes.c_char_p),
    "cuFuncGetAttribute": (_pointer, ctypes.c_int, _pointer),
    "cuMemAlloc_v2": (_pointer, _size),
    "cuMemFree_v2": (_u64,),
    "cuMemcpyHtoD_v2": (_u64, _pointer, _size),
    "cuMemcpyDtoH_v2": (_pointer, _u64, _size),
    "cuMemcpyDtoD_v2": (_u64, _u64, _size),
    "cuLaunchKernel": (_pointer, _u32, _u32, _u32, _u32, _u32, _u32, _u32, _pointer, _pointer, _pointer),
    "cuEventCreate": (_pointer, _u32),
    "cuEventRecord": (_pointer, _pointer),
    "cuEventElapsedTime": (_pointer, _pointer, _pointer),
}
# A driver so old that it lacks a call says so with this; cuda.h's CUDA_ERROR_NOT_FOUND would be read as a kernel's.
_NO_SUCH_CALL = 301


class Libcuda(Binding):
    """`libcuda.so.1` of this machine, or another library with its entry points. Raises NoDeviceError without one."""

    name = "ctypes"

    def __init__(self, libraries: Sequence[str] | None = None) -> None:
        libraries = LIBRARIES if libraries is None else libraries
        for library in libraries:
            with contextlib.suppress(OSError):
                self._library = ctypes.CDLL(library)
                break
        else:
            raise NoDeviceError(f"no CUDA driver on this machine ({' and '.join(libraries)} cannot be opened)")
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: Any, log: Any = None) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise BindingError(name, _NO_SUCH_CALL, "this driver is too old to have that call") from None
        function.argtypes = _SIGNATURES[name]
        function.restype = ctypes.c_int
        code = int(function(*arguments))
        if code:
            said = "" if log is None else log.value.decode(errors="replace")
            raise BindingError(name.removesuffix("_v2"), code, said)

    def _number(self, name: str, kind: Any, *arguments: Any) -> int:
        value = kind()
        self._call(name, ctypes.byref(value), *arguments)
        return int(value.value or 0)

    def version(self) -> int:  # noqa: D102 - the interface says it
        return self._number("cuDriverGetVersion", ctypes.c_int)

    def count(self) -> int:  # noqa: D102
        return self._number("cuDeviceGetCount", ctypes.c_int)

    def model(self, index: int) -> str:  # noqa: D102
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, self._device(index))
        return name.value.decode(errors="replace")

    def attribute(self, index: int, attribute: int) -> int:  # noqa: D102
        return self._number("cuDeviceGetAttribute", ctypes.c_int, attribute, self._device(index))

    def total_memory(self, index: int) -> int:  # noqa: D102
        return self._number("cuDeviceTotalMem_v2", _size, self._device(index))

    def _device(self, index: int) -> int:
        return self._number("cuDeviceGet", ctypes.c_int, index)

    def retain(self, index: int) -> Any:  # noqa: D102
        return self._number("cuDevicePrimaryCtxRetain", _pointer, self._device(index))

    def release(self, index: int, context: Any) -> None:  # noqa: D102
        self._call("cuDevicePrimaryCtxRelease_v2", self._device(index))

    def make_current(self, context: Any) -> None:  # noqa: D102
        self._call("cuCtxSetCurrent", context)

    def synchronize(self) -> None:  # noqa: D102
        self._call("cuCtxSynchronize")

    def load(self, text: bytes) -> Any:  # noqa: D102
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (ctypes.c_int * 2)(JIT_LOG, JIT_LOG_BYTES)
        # One byte less than there is: a log that fills its buffer has no NUL at its end.
        values = (_pointer * 2)(ctypes.addressof(log), LOG_BYTES - 1)
        module = _pointer()
        image = ctypes.create_string_buffer(text)
        self._call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, options, values, log=log)
        return module.value

    def unload(self, module: Any) -> None:  # noqa: D102
        self._call("cuModuleUnload", module)

    def function(self, module: Any, name: str) -> Any:  # noqa: D102
        return self._number("cuModuleGetFunction", _pointer, module, name.encode())

    def static_shared(self, function: Any) -> int:  # noqa: D102
        return self._number("cuFuncGetAttribute", ctypes.c_int, STATIC_SHARED, function)

    def alloc(self, size: int) -> int:  # noqa: D102
        return self._number("cuMemAlloc_v2", _u64, size)

    def free(self, address: int) -> None:  # noqa: D102
        self._call("cuMemFree_v2", address)

    def copy_in(self, address: int, array: NDArray[Any]) -> None:  # noqa: D102
        self._call("cuMemcpyHtoD_v2", address, array.ctypes.data, array.nbytes)

    def copy_out(self, array: NDArray[Any], address: int) -> None:  # noqa: D102
        self._call("cuMemcpyDtoH_v2", array.ctypes.data, address, array.nbytes)

    def copy_within(self, to: int, source: int, size: int) -> None:  # noqa: D102
        self._call("cuMemcpyDtoD_v2", to, source, size)

    def launch(  # noqa: D102
        self, function: Any, grid: Triple, block: Triple, shared: int, data: NDArray[Any], offsets: Sequence[int]
    ) -> None:
        pointers = (_pointer * max(len(offsets), 1))(*(data.ctypes.data + offset for offset in offsets))
        self._call("cuLaunchKernel", function, *grid, *block, shared, None, pointers, None)

    def event(self) -> Any:  # noqa: D102
        return self._number("cuEventCreate", _pointer, 0)

    def record(self, event: Any) -> None:  # noqa: D102
        self._call("cuEventRecord", event, None)

    def elapsed(self, first: Any, last: Any) -> float:  # noqa: D102
        value = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(value), first, last)
        return value.value
