"""Compiler diagnostics as people and editors read them: `path:line: error: ...`, paths relative to the project."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ssmtool.toolchain.model import CompileError, CompilerInfo

# nvcc (cudafe++, cicc) and NVRTC: kernels/a.cu(4): error: identifier "INFINITY" is undefined
#                                  kernels/a.cu(1): catastrophic error: cannot open source file "nope.cuh"
# nvcc >= 12:                      kernels/a.cu(2): warning #177-D: variable "q" was declared but never referenced
_EDG = re.compile(
    r"^(?P<path>[^\s(][^(\n]*)\((?P<line>\d+)\): (?P<what>(?:catastrophic |internal )?(?:error|warning|remark)\b.*)$"
)
# The host compiler, which nvcc runs as preprocessor:
# kernels/a.cu:1:10: fatal error: nope.cuh: No such file or directory
_HOST = re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?P<what>(?:fatal )?(?:error|warning): .*)$")
_ERROR = re.compile(r"(?:catastrophic |internal |fatal )?error(?: #[\w-]+)?: ")
_MISSING = re.compile(r'cannot open source file "([^"]+)"|error: ([^\s:]+): No such file or directory')


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
    for line in tidied.splitlines():
        match = _HOST.match(line)
        if match and _ERROR.match(match["what"]):
            first = _ERROR.sub("", match["what"], count=1)
            rest = "" if tidied.count(": ") <= 2 and tidied == line else f"\n{tidied}"
            error = CompileError(
                f"{first} ({info.title}){rest}",
                path=match["path"],
                line=int(match["line"]),
                hint=_hint(first, match["what"], info),
            )
            break
    else:
        error = CompileError(
            f"{info.title} refused it: {tidied or 'it gave no reason'}",
            path=source,
        )
    error.diagnostics = tidied
    return error


def _relative(path: str, root: Path) -> str:
    """`path` counted from `root` with forward slashes, when it lies below it."""
    if Path(path).is_absolute():
        bases = [base for base in (root, root.resolve()) if Path(path).is_relative_to(base)]
        return Path(path).relative_to(bases[0]).as_posix() if bases else path
    return os.path.normpath(path).replace(os.sep, "/")


def _hint(first: str, what: str, info: CompilerInfo) -> str | None:
    """How to mend a missing include; other errors are for the author of the source."""
    match = _MISSING.search(what) or _MISSING.search(first)
    if not match:
        return None
    header = match[1] or match[2]
    if info.kind == "nvrtc":
        return (
            f"add the folder of {header} to include_dirs in [tool.ssmtool]; the embedded compiler has no system "
            "headers beyond the few that device code needs"
        )
    return f"add the folder of {header} to include_dirs in [tool.ssmtool]"
