"""The child process that loads NVRTC: one JSON request on stdin, one JSON answer on stdout.

Run as `python -I nvrtc_child.py`, so it imports the standard library only and works whatever environment ssmtool is
in. A compiler that crashes, or never ends, takes this process with it and not the caller.

Request: library, name, source, headers {name: text}, options [...].
Answer: {"load_error": text}, or {"version": [major, minor], "result": nvrtcResult, "error": its name, "log", "ptx",
"targets": [37, ...] when an option was refused}.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

INVALID_OPTION = 5


def main() -> int:
    """Answer one request; exit code 0 whenever an answer was written."""
    request = json.load(sys.stdin)
    # NVRTC may print; keep stdout for the answer alone.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    try:
        library = ctypes.CDLL(request["library"])
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        answer: dict[str, Any] = {"load_error": str(error)}
    else:
        answer = compile_program(library, request)
    with os.fdopen(answer_to, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    return 0


def compile_program(library: ctypes.CDLL, request: dict[str, Any]) -> dict[str, Any]:
    """Compile the request's program with a loaded NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    headers = request["headers"]
    program = ctypes.c_void_p()
    result = library.nvrtcCreateProgram(
        ctypes.byref(program),
        request["source"].encode(),
        request["name"].encode(),
        len(headers),
        strings(list(headers.values())),
        strings(list(headers)),
    )
    log = ptx = ""
    if result == 0:
        options = request["options"]
        result = library.nvrtcCompileProgram(program, len(options), strings(options))
        log = text(library, program, "ProgramLog")
        if result == 0:
            ptx = text(library, program, "PTX")
    return {
        "version": [major.value, minor.value],
        "result": result,
        "error": library.nvrtcGetErrorString(result).decode(),
        "log": log,
        "ptx": ptx,
        "targets": targets(library) if result == INVALID_OPTION else [],
    }


def targets(library: ctypes.CDLL) -> list[int]:
    """The architectures that this NVRTC takes; none from one older than 11.2, which cannot be asked."""
    count = ctypes.c_int()
    try:
        if library.nvrtcGetNumSupportedArchs(ctypes.byref(count)) != 0:
            return []
        numbers = (ctypes.c_int * count.value)()
        return list(numbers) if library.nvrtcGetSupportedArchs(numbers) == 0 else []
    except AttributeError:
        return []


def strings(items: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    """A `const char *const *` argument."""
    return (ctypes.c_char_p * len(items))(*(item.encode() for item in items))


def text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    """The program's log or PTX, without the closing NUL that NVRTC counts in."""
    size = ctypes.c_size_t()
    if getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) != 0:
        return ""
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    if getattr(library, f"nvrtcGet{what}")(program, buffer) != 0:
        return ""
    return buffer.value.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
