"""Ask the CUDA driver of this machine what each kernel of a PTX module uses. Runs as a process of its own.

JSON on stdin: `ptx`, `entries` (names), `capability` ([3, 7]: the device to prefer), `library` (names to try). JSON on
stdout: `device`, `capability`, `driver` and `entries`, or `skip` with a reason, or `refused` with the driver's log.
Nothing of ssmtool is imported, so that a driver which crashes or hangs takes only this process with it, and the
context it leaves behind is nobody's. Numbers of enumerations are those of cuda.h, which never renumbers them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

# CUdevice_attribute
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
# CUjit_option
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_LOG_BYTES = 16_384
# CUfunction_attribute
_ATTRIBUTES = {
    "max_threads_per_block": 0,
    "shared_bytes": 1,
    "constant_bytes": 2,
    "local_bytes": 3,
    "registers": 4,
    "ptx_version": 5,
    "binary_version": 6,
}
# CUresult: the PTX itself is wrong. CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_SOURCE.
_PRODUCT_IS_WRONG = (200, 218, 300)
# How the driver's log says that the PTX is for a newer GPU than this machine's, under CUDA_ERROR_INVALID_PTX too.
_TOO_NEW = "SM version"


class RefusedError(Exception):
    """The driver will not load the PTX, and says why."""


class DriverError(Exception):
    """A call failed for a reason that is this machine's."""


def main() -> int:
    """Read the question, write the answer."""
    # A driver may print (a profiler's banner does): that goes to stderr, so that stdout holds the answer alone.
    stdout = os.dup(1)
    os.dup2(2, 1)
    question = json.load(sys.stdin)
    try:
        answer = _answer(question)
    except RefusedError as error:
        answer = {"refused": str(error)}
    except DriverError as error:
        answer = {"skip": str(error)}
    with os.fdopen(stdout, "w", encoding="utf-8") as out:
        json.dump(answer, out)
    return 0


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    driver = _Driver(_open(question["library"]))
    driver.call("cuInit", 0)
    device, capability = driver.device(question["capability"])
    version = ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    name = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", name, 256, device)
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    module = driver.load(question["ptx"].encode())
    return {
        "device": name.value.decode(errors="replace"),
        "capability": capability,
        "driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "entries": {entry: driver.attributes(module, entry) for entry in question["entries"]},
    }


def _open(names: Sequence[str]) -> ctypes.CDLL:
    for name in names:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise DriverError(f"no CUDA driver on this machine ({' and '.join(names)} cannot be opened)")


class _Driver:
    """The few driver calls this needs, each failing by exception."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a CUresult. Raises DriverError."""
        code = self._code(name, *arguments)
        if code:
            raise DriverError(f"{name} failed: {self._error(code)}")

    def device(self, wanted: list[int]) -> tuple[ctypes.c_int, list[int]]:
        """The first device of the wanted compute capability, else the first device; and its capability."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        devices = [self._device(index) for index in range(count.value)]
        if not devices:
            raise DriverError("the CUDA driver sees no GPU")
        return next((item for item in devices if item[1] == wanted), devices[0])

    def _device(self, index: int) -> tuple[ctypes.c_int, list[int]]:
        device, value = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        capability = []
        for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
            capability.append(value.value)
        return device, capability

    def load(self, ptx: bytes) -> ctypes.c_void_p:
        """The module. Raises RefusedError when the PTX is wrong, DriverError when this machine cannot take it."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        module = ctypes.c_void_p()
        # PTX is read as a C string.
        image = ctypes.create_string_buffer(ptx)
        code = self._code("cuModuleLoadDataEx", ctypes.byref(module), image, 2, options, values)
        if code:
            said = log.value.decode(errors="replace").strip()
            message = f"{self._error(code)}{': ' if said else ''}{said}"
            raise RefusedError(message) if code in _PRODUCT_IS_WRONG and _TOO_NEW not in said else DriverError(message)
        return module

    def attributes(self, module: ctypes.c_void_p, entry: str) -> dict[str, int]:
        """What the driver's own compilation of one kernel uses."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        found = {}
        for key, attribute in _ATTRIBUTES.items():
            value = ctypes.c_int()
            self.call("cuFuncGetAttribute", ctypes.byref(value), attribute, function)
            found[key] = value.value
        return found

    def _code(self, name: str, *arguments: Any) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DriverError(f"the CUDA driver is too old: it lacks {name}") from None
        return int(function(*arguments))

    def _error(self, code: int) -> str:
        """`CUDA_ERROR_NO_DEVICE (100)`."""
        text = ctypes.c_char_p()
        with contextlib.suppress(AttributeError):
            self._library.cuGetErrorName(code, ctypes.byref(text))
        return f"{(text.value or b'error').decode(errors='replace')} ({code})"


if __name__ == "__main__":
    sys.exit(main())
