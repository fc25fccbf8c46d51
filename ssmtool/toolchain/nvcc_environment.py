"""Flags that nvcc takes from its environment: they shape the PTX, so a header has to say which they were.

nvcc puts the words of `NVCC_PREPEND_FLAGS` before its command line and those of `NVCC_APPEND_FLAGS` after it. They are
not taken away: a machine whose own compiler is too new for nvcc names another there (`-ccbin clang-14`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ssmtool.toolchain.model import ToolchainError

PREPEND, APPEND = "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"
# Flags that say how this machine runs nvcc and not what is compiled; some take a value, as `-ccbin X` or `-ccbin=X`.
_HOST_COMPILER = ("-ccbin", "--compiler-bindir")
_RUNNING_VALUED = ("-t", "--threads")
_RUNNING = ("-allow-unsupported-compiler", "--allow-unsupported-compiler")


@dataclass(frozen=True, slots=True)
class EnvironmentFlags:
    """What the environment gives nvcc.

    `prepend` and `append` are the flags that shape the code. `host_compiler` is the name of the host compiler without
    its folder, which is the machine's own. `told` is one line for people, None when the environment is silent.
    """

    prepend: tuple[str, ...] = ()
    append: tuple[str, ...] = ()
    host_compiler: str | None = None
    told: str | None = None


def environment_flags(environment: Mapping[str, str] | None = None) -> EnvironmentFlags:
    """The flags in `environment` (os.environ). Raises ToolchainError when a quote in them is not closed."""
    values = os.environ if environment is None else environment
    shaping: dict[str, tuple[str, ...]] = {}
    host: str | None = None
    told = []
    for variable in (PREPEND, APPEND):
        words = _words(variable, values.get(variable, ""))
        kept = []
        for flag, value in _pairs(words):
            if flag in _HOST_COMPILER and value:
                host = PurePosixPath(value).name
            elif flag not in _RUNNING and flag not in _RUNNING_VALUED:
                kept.append(flag)
        shaping[variable] = tuple(kept)
        if words:
            told.append(f"{variable} gives nvcc {shlex.join(words)}")
    return EnvironmentFlags(shaping[PREPEND], shaping[APPEND], host, "; ".join(told) or None)


def _words(variable: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ToolchainError(
            f"{variable} in the environment cannot be read: {error}", hint=f"correct it, or unset {variable}"
        ) from None


def _pairs(words: list[str]) -> Iterator[tuple[str, str | None]]:
    """(flag, value) for the flags known here, (word, None) for every other word."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in (*_HOST_COMPILER, *_RUNNING_VALUED):
            yield word, None
        else:
            yield name, value if equals else next(rest, None)
