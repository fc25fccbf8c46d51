"""Which gcc and clang an nvcc takes, and which of them are here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

# Newest (gcc, clang) of a CUDA release: CUDA Installation Guide for Linux of each release, "System Requirements". Only
# for an nvcc whose own header cannot be read. 11.4.0 stopped at gcc 10, so 11.4 stands here with what all of it takes.
LIMITS: dict[str, tuple[int, int]] = {
    "11.0": (9, 9),
    "11.1": (10, 10),
    "11.2": (10, 11),
    "11.3": (10, 11),
    "11.4": (10, 12),
    "11.5": (11, 12),
    "11.6": (11, 13),
    "11.7": (11, 13),
    "11.8": (11, 14),
}
# Where crt/host_config.h lies, counted from nvcc's folder: the toolkit's own installer, its packages, Debian's.
HEADERS = ("../include/crt/host_config.h", "../targets/x86_64-linux/include/crt/host_config.h")
VERSIONED = tuple(f"gcc-{number}" for number in range(11, 6, -1))

# gcc (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0    gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)
_PACKAGER = re.compile(r"\([^)]*\)")
_GCC = re.compile(r"\b(?:gcc|g\+\+|cc|c\+\+)\S*\s+(\d+)(?:\.\d+)*", re.IGNORECASE)
# Debian clang version 14.0.6
_CLANG = re.compile(r"clang version (\d+)\.")
# #if __GNUC__ > 11
_GCC_LIMIT = re.compile(r"^#if\s+__GNUC__\s*>\s*(\d+)", re.MULTILINE)
# #if (__clang_major__ >= 15) || (__clang_major__ < 3) ...
_CLANG_LIMIT = re.compile(r"^#if\s+\(__clang_major__\s*>=\s*(\d+)\)", re.MULTILINE)


@dataclass(frozen=True)
class HostCompiler:
    """`gcc` or `clang`, its major version, and the word by which it was called."""

    kind: str
    major: int
    word: str

    def __str__(self) -> str:
        """`gcc 12 (gcc)`."""
        return f"{self.kind} {self.major} ({self.word})"


def parse_version(word: str, said: str) -> HostCompiler | None:
    """What `<word> --version` says, or None."""
    if match := _CLANG.search(said):
        return HostCompiler("clang", int(match[1]), word)
    match = _GCC.search(_PACKAGER.sub("", said.lstrip().partition("\n")[0]))
    return HostCompiler("gcc", int(match[1]), word) if match else None


def limits_of(header: str | None, release: str) -> tuple[int, int] | None:
    """(newest gcc, newest clang) by the nvcc's own crt/host_config.h, else by the release; None when neither tells."""
    gcc, clang = (_GCC_LIMIT.search(header), _CLANG_LIMIT.search(header)) if header else (None, None)
    known = LIMITS.get(release)
    if gcc:
        return int(gcc[1]), int(clang[1]) - 1 if clang else (known[1] if known else 99)
    return known


def chosen_word(environ: Mapping[str, str]) -> str:
    """The host compiler that nvcc would start: `-ccbin` in its variables, NVCC_CCBIN, else `gcc`."""
    word = environ.get("NVCC_CCBIN") or "gcc"
    for variable in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"):
        try:
            words = shlex.split(environ.get(variable, ""))
        except ValueError:
            continue
        for index, each in enumerate(words):
            name, equals, value = each.partition("=")
            if name in ("-ccbin", "--compiler-bindir"):
                word = value if equals else (words[index + 1] if index + 1 < len(words) else word)
    return word


def allows_any(environ: Mapping[str, str]) -> bool:
    """Whether nvcc was told not to look at the host compiler's version."""
    flags = f"{environ.get('NVCC_PREPEND_FLAGS', '')} {environ.get('NVCC_APPEND_FLAGS', '')}"
    return "-allow-unsupported-compiler" in flags


def headers_of(nvcc: str) -> list[str]:
    """Paths of the header that says what this nvcc takes."""
    import os.path

    return [os.path.normpath(PurePath(nvcc).parent / each) for each in HEADERS]
