"""The command line that nvcc and NVRTC share: names counted from the project's folder, and one C++ dialect."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ssmtool.toolchain.model import CompileRequest

# Left to themselves, NVRTC 11.4 takes C++03 (no static_assert, no nullptr) and nvcc whatever its host compiler takes,
# so one source would mean different things. C++17 is the newest that every CUDA 11 compiler knows.
DIALECT = "-std=c++17"

# nvcc:	.file	1 "/home/me/project/kernels/ssm_gated_delta.cu"
# old nvcc adds the time stamp and the size:	.file	1 "/home/me/project/kernels/a.cu", 1669790000, 512
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)".*$', re.MULTILINE)


def from_root(root: Path, path: Path) -> str:
    """`path` counted from the project's folder, with forward slashes.

    Compilers run in that folder and write the names they were given into the PTX (`.file` of -lineinfo, `__FILE__` in
    assert), so an absolute name would make the PTX differ from one checkout to the next.
    """
    return os.path.relpath(path, root).replace(os.sep, "/")


def shared_flags(request: CompileRequest) -> list[str]:
    """Include folders, dialect and the user's flags, in the spelling that both compilers take."""
    # A folder that was given by an absolute path, a toolkit's say, is called so in the PTX too, where relative_files()
    # knows it; counted from the project its name would depend on where the project lies.
    folders = [
        f"-I{from_root(request.root, folder) if folder.is_relative_to(request.root) else folder.as_posix()}"
        for folder in request.include_dirs
    ]
    dialect = [] if any(flag.lstrip("-").startswith("std") for flag in request.flags) else [DIALECT]
    return [*folders, *dialect, *request.flags]


def relative_files(ptx: str, root: Path) -> str:
    """The PTX with every `.file` of -lineinfo counted from `root`, without time stamps.

    nvcc writes absolute names whatever it was given. A system header has no name relative to the project that would be
    the same elsewhere, so only what follows its last `include/` is kept.
    """

    def rename(match: re.Match[str]) -> str:
        path = match[2]
        if Path(path).is_absolute():
            name = os.path.relpath(os.path.realpath(path), os.path.realpath(root)).replace(os.sep, "/")
            path = (
                re.split(r"(?:^|/)include/", os.path.normpath(path))[-1].lstrip("/") if name.startswith("..") else name
            )
        return f'{match[1]}"{path}"'

    return _FILE.sub(rename, ptx)
