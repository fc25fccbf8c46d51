"""Functions and variables that PTX leaves to another module: a driver refuses to load it, whatever the loader does.

nvcc refuses most of these itself; NVRTC does not, since its PTX may be meant for the linker. The PTX of a header is
loaded alone.
"""

from __future__ import annotations

import re

from ssmtool.errors import ProductError

#   .extern .func  (.param .b32 func_retval0) vprintf            .extern .global .align 4 .u32 counter;
_EXTERN = re.compile(r"^\.extern\s+\.(?P<kind>func|global|const)\b\s*(?P<rest>[^;{]*)", re.MULTILINE)
# What the driver itself provides (CUDA C++ Programming Guide: printf, assert, malloc and free in device code).
_PROVIDED = frozenset({"vprintf", "__assertfail", "malloc", "free"})
_LAUNCH = re.compile(r"cuda(?:CDP2)?(?:LaunchDevice|GetParameterBuffer)\w*")


def refuse_unresolved(ptx: str, source: str) -> None:
    """Raise ProductError when the PTX cannot be loaded by itself; `source` is the `.cu` file as reports show it."""
    names = []
    for match in _EXTERN.finditer(ptx):
        rest = re.sub(r"\([^()]*\)|\[[^\]]*\]", " ", match["rest"])
        words = re.findall(r"(?<!\.)\b[A-Za-z_$%][\w$]*", rest)
        if words and words[-1] not in _PROVIDED:
            names.append(words[-1])
    if not names:
        return
    if any(_LAUNCH.fullmatch(name) for name in names):
        raise ProductError(
            "a kernel launches a kernel (dynamic parallelism), which needs the device runtime linked in; "
            "PTX that is loaded by itself cannot",
            path=source,
            hint="launch the kernel from the host",
        )
    raise ProductError(
        f"declares and uses, but nowhere defines: {', '.join(dict.fromkeys(names))}; a driver refuses to load such PTX",
        path=source,
        hint="define it in this file or in one that it includes; every .cu file is loaded by itself",
    )
