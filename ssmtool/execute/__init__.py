"""Runs PTX for sm_37 on the CPU, bit for bit, and catches what a GPU hides.

    from ssmtool.execute import Module
    result = Module(ptx_text).launch("scale", grid=4, block=128, args=[y, x, 2.5, y.size])

NumPy and LLVM are imported when the first of these names is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ssmtool.lazy import lazy_names

if TYPE_CHECKING:
    from ssmtool.execute.counters import Counters
    from ssmtool.execute.errors import ArgumentError, CompileError, KernelFaultError, LaunchError
    from ssmtool.execute.faults import KernelFault
    from ssmtool.execute.layout import Fault
    from ssmtool.execute.memory import Uninitialised
    from ssmtool.execute.module import Module
    from ssmtool.execute.numerics.evidence import Evidence, Level
    from ssmtool.execute.numerics.form import UnsupportedError
    from ssmtool.execute.result import LaunchResult

_HOMES = {
    "ArgumentError": "errors",
    "CompileError": "errors",
    "KernelFaultError": "errors",
    "LaunchError": "errors",
    "KernelFault": "faults",
    "Fault": "layout",
    "Uninitialised": "memory",
    "Module": "module",
    "Evidence": "numerics.evidence",
    "Level": "numerics.evidence",
    "UnsupportedError": "numerics.form",
    "Counters": "counters",
    "LaunchResult": "result",
}

__all__ = [
    "ArgumentError",
    "CompileError",
    "Counters",
    "Evidence",
    "Fault",
    "KernelFault",
    "KernelFaultError",
    "LaunchError",
    "LaunchResult",
    "Level",
    "Module",
    "Uninitialised",
    "UnsupportedError",
    "require_libraries",
]


def require_libraries() -> None:
    """Raise SsmtoolError where NumPy or llvmlite is not installed: they come with an extra."""
    try:
        importlib.import_module("numpy")
        importlib.import_module("llvmlite")
    except ModuleNotFoundError as error:
        from ssmtool.errors import SsmtoolError

        raise SsmtoolError(
            f"running kernels needs {error.name}, which is not installed", hint="pip install 'ssmtool[executor]'"
        ) from None


__getattr__ = lazy_names(__name__, _HOMES, require_libraries)
