"""Compiler diagnostics as people and editors read them: `path:line: error: ...`, paths relative to the project."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ssmtool.settings_form import table
from ssmtool.toolchain.model import CompileError, CompilerInfo

# nvcc (cudafe++, cicc) and NVRTC: kernels/a.cu(4): error: identifier "INFINITY" is undefined
#                                  kernels/a.cu(1): catastrophic error: cannot open source file "nope.cuh"
# nvcc >= 11.2:                    kernels/a.cu(2): warning #177-D: variable "q" was declared but never referenced
_EDG = re.compile(
    r"^(?P<path>[^\s(][^(\n]*)\((?P<line>\d+)\): (?P<what>(?:catastrophic |internal )?(?:error|warning|remark)\b.*)$"
)
# The host compiler, which nvcc runs as preprocessor:
# kernels/a.cu:1:10: fatal error: nope.cuh: No such file or directory
_HOST = re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?P<what>(?:fatal )?(?:error|warning): .*)$")
# What `tidy` makes of either: kernels/a.cu:4: error: identifier "INFINITY" is undefined
_FAILED = re.compile(
    r"^(?P<path>[^:\n]+):(?P<line>\d+): (?:catastrophic |internal |fatal )?error(?: #[\w-]+)?: (?P<what>.*)$",
    re.MULTILINE,
)
# cannot open source file "nope.cuh" | could not open source file "nope.cuh" (no directories in search list)
# gcc: nope.cuh: No such file or directory | clang: 'nope.cuh' file not found
_MISSING = re.compile(
    r"""(?:cannot|could not) open source file "([^"]+)"|"""
    r"""^([^\s:]+): No such file or directory|'([^']+)' file not found"""
)
# Headers of the toolkit, and names as only the C and C++ libraries have them.
_TOOLKIT = re.compile(r"cu[A-Z_]|cuda|cub/|curand|cublas|cufft|cooperative_groups|mma\.h|thrust/|nv/|sm_\d+_|texture_")
_STANDARD = re.compile(r"[a-z_]+|(?:signal|unistd|errno|fcntl|pthread|ctype|wchar|setjmp|locale|sys/\w+)\.h")
# 2 errors detected in the compilation of "kernels/a.cu".
_SUMMARY = re.compile(
    r"^\d+ (?:catastrophic )?errors? (?:detected|generated).*$|^Compilation terminated\.$|^compilation terminated\.$"
)


def tidy(text: str, root: Path) -> str:
    """The compiler's output with `path(line):` written `path:line:` and paths below `root` made relative."""
    lines = []
    for line in text.replace("\r\n", "\n").splitlines():
        match = _EDG.match(line) or _HOST.match(line)
        lines.append(f"{_relative(match['path'], root)}:{match['line']}: {match['what']}" if match else line.rstrip())
    return "\n".join(lines).strip()


def compile_error(text: str, *, info: CompilerInfo, source: str, root: Path) -> CompileError:
    """The error to raise for a refused source: at the first error's place, with everything the compiler said."""
    tidied = tidy(text, root)
    first = _FAILED.search(tidied)
    if first is None:
        error = CompileError(f"{info.title} refused it: {tidied or 'it gave no reason'}", path=source)
    else:
        others = [
            line for line in tidied.splitlines() if line.strip() and line != first[0] and not _SUMMARY.match(line)
        ]
        message = f"{first['what']} ({info.title})" + (f"\n{tidied}" if others else "")
        error = CompileError(message, path=first["path"], line=int(first["line"]), hint=_hint(first["what"], info))
    error.diagnostics = tidied
    return error


def _relative(path: str, root: Path) -> str:
    """`path` counted from `root` with forward slashes, when it lies below it."""
    if Path(path).is_absolute():
        bases = [base for base in (root, root.resolve()) if Path(path).is_relative_to(base)]
        return Path(path).relative_to(bases[0]).as_posix() if bases else path
    return os.path.normpath(path).replace(os.sep, "/")


def _hint(what: str, info: CompilerInfo) -> str | None:
    """How to mend a missing include, and host code where there can be none; other errors are for the author."""
    if info.kind == "nvrtc" and "host functions are not allowed" in what:
        return "mark the function __device__, or keep host code apart with #ifndef __CUDACC_RTC__"
    match = _MISSING.search(what)
    if not match:
        return None
    header = match[1] or match[2] or match[3]
    if info.kind == "nvrtc" and _TOOLKIT.match(header):
        return f"{header} is of the CUDA toolkit: add the toolkit's include folder to include_dirs, or build with nvcc"
    if info.kind == "nvrtc" and _STANDARD.fullmatch(header):
        return f"the embedded compiler has no <{header}>; keep host code apart with #ifndef __CUDACC_RTC__"
    return f"add the folder of {header} to include_dirs in {table()}"
