"""Start the CUDA driver of this machine and list its devices. Runs as a process of its own.

JSON on stdin: `libraries` (names to try). JSON on stdout: `opened` (the name that opened, or null), `errors` (why each
other did not), `files` (libcuda files in the process), `version` (cuDriverGetVersion, 0 when not told), `call` and
`code` (the first that failed, CUresult), `devices` (an attribute that the driver does not tell is -1). Nothing of
ssmtool is imported, so that a driver which crashes or hangs takes only this process with it. Numbers of attributes are
those of CUdevice_attribute in cuda.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

_ATTRIBUTES = {
    "major": 75,
    "minor": 76,
    "compute_mode": 20,
    "ecc": 32,
    "bus": 33,
    "slot": 34,
    "domain": 50,
    "multiprocessors": 16,
}
_NEEDED = ("major", "minor")


def main() -> int:
    """Read the question, write the answer."""
    # A driver may print: that goes to stderr, so that stdout holds the answer alone.
    stdout = os.dup(1)
    os.dup2(2, 1)
    answer: dict[str, Any] = {"opened": None, "errors": [], "files": [], "version": 0, "call": "", "code": 0}
    answer["devices"] = []
    library = None
    for name in json.load(sys.stdin)["libraries"]:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            answer["errors"].append(str(error))
            continue
        answer["opened"] = name
        break
    if library is not None:
        answer["files"] = _files()
        try:
            answer["call"], answer["code"] = _ask(library, answer)
        except AttributeError as error:
            answer["call"], answer["code"] = str(error), -1
    with os.fdopen(stdout, "w", encoding="utf-8") as out:
        json.dump(answer, out)
    return 0


def _files() -> list[str]:
    """Which libcuda this process really has: the search path may have led anywhere."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
            lines = maps.read().splitlines()
    except OSError:
        return []
    return sorted({line.split(maxsplit=5)[-1] for line in lines if "libcuda.so" in line})


def _ask(library: ctypes.CDLL, answer: dict[str, Any]) -> tuple[str, int]:
    """Fill `version` and `devices`; the first call that failed and its code, or ("", 0)."""
    value = ctypes.c_int()
    # Works before cuInit, and when cuInit fails.
    if library.cuDriverGetVersion(ctypes.byref(value)) == 0:
        answer["version"] = value.value
    if code := library.cuInit(0):
        return "cuInit", code
    if code := library.cuDeviceGetCount(ctypes.byref(value)):
        return "cuDeviceGetCount", code
    for index in range(value.value):
        device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        if code := library.cuDeviceGet(ctypes.byref(device), index):
            return "cuDeviceGet", code
        library.cuDeviceGetName(name, 256, device)
        library.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        row: dict[str, Any] = {"name": name.value.decode(errors="replace"), "memory": size.value}
        for key, number in _ATTRIBUTES.items():
            code = library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
            if code and key in _NEEDED:
                return "cuDeviceGetAttribute", code
            row[key] = -1 if code else value.value
        answer["devices"].append(row)
    return "", 0


if __name__ == "__main__":
    sys.exit(main())
