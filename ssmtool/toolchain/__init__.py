"""Find and run nvcc, NVRTC and ptxas; each says what it is and fails with the compiler's own words."""

from __future__ import annotations

from ssmtool.toolchain.find import find_compilers
from ssmtool.toolchain.model import (
    CompileError,
    Compiler,
    CompileRequest,
    CompileResult,
    CompilerInfo,
    Found,
    ToolchainError,
)
from ssmtool.toolchain.selection import select_compiler

__all__ = [
    "CompileError",
    "CompileRequest",
    "CompileResult",
    "Compiler",
    "CompilerInfo",
    "Found",
    "ToolchainError",
    "find_compilers",
    "select_compiler",
]
