"""What a compiler is to the rest of ssmtool: one request, one result, two ways to fail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ssmtool.errors import ProductError, SsmtoolError
from ssmtool.settings_form import table

Kind = Literal["nvcc", "nvrtc"]

# PTX ISA of each CUDA release, from the release notes in the PTX ISA manual. Up to 12.5 it is `major-4.minor`; 12.6
# added nothing to PTX, so every later 12.x lags by one.
_PTX_ISA = {
    "8.0": (5, 0),
    "9.0": (6, 0),
    "9.1": (6, 1),
    "9.2": (6, 2),
    "10.0": (6, 3),
    "10.1": (6, 4),
    "10.2": (6, 5),
    "12.6": (8, 5),
    "12.7": (8, 6),
    "12.8": (8, 7),
    "12.9": (8, 8),
}

# Lowest architecture that the compiler of a CUDA major release can target.
_LOWEST_TARGET = {8: 20, 9: 30, 10: 30, 11: 35, 12: 50, 13: 75}


class ToolchainError(SsmtoolError):
    """The compiler could not be found or started, was killed, or ran out of time; exit code 2."""


class TargetError(ToolchainError):
    """The compiler works, and makes no code for the target; exit code 2. The setting is at fault, not the tool."""


class CompileError(ProductError):
    """The compiler refused the source; exit code 1.

    `path` and `line` are those of the first error, the message holds the compiler's own words, and `diagnostics` is
    everything it printed.
    """

    diagnostics: str = ""


@dataclass(frozen=True, slots=True)
class CompilerInfo:
    """Which compiler it is. `release` is `11.4`, `version` `11.4.152`, `ptx_isa` the newest `.version` it writes."""

    kind: Kind
    release: str
    version: str
    path: Path
    label: str

    @property
    def ptx_isa(self) -> tuple[int, int]:
        """The `.version` of its PTX, as in `(7, 4)`."""
        return ptx_isa_of(self.release)

    @property
    def title(self) -> str:
        """`NVRTC 11.4.152` or `nvcc 11.8.89`."""
        return f"{'NVRTC' if self.kind == 'nvrtc' else 'nvcc'} {self.version}"


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One `.cu` file to compile to PTX.

    `text` is the source, already decoded; `root` the project's folder, from which every name in the PTX and in the
    diagnostics is counted; `target` an architecture such as `sm_37`; `flags` extra compiler flags.
    """

    source: Path
    text: str
    root: Path
    target: str
    include_dirs: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The compiler's PTX as it wrote it, its warnings as `path:line: ...` lines, and the seconds it took.

    `flags` are those that shaped the code, in order: the request's, and around them what the compiler took from its
    environment. `note` tells what else of the environment a reader of the PTX should know.
    """

    ptx: str
    diagnostics: str
    seconds: float
    compiler: CompilerInfo
    flags: tuple[str, ...] = ()
    note: str | None = None


class Compiler(Protocol):
    """nvcc and NVRTC behind one call."""

    @property
    def info(self) -> CompilerInfo:
        """Which compiler this is."""

    @property
    def environment(self) -> str | None:
        """In one line, the flags that it takes from the environment, or None. Raises ToolchainError."""

    def compile(self, request: CompileRequest) -> CompileResult:
        """Compile to PTX. Raises CompileError (the source is wrong) or ToolchainError (the compiler failed)."""


@dataclass(frozen=True, slots=True)
class Found:
    """A compiler, or the place of one, seen on this machine.

    `origin` says how it was found (`PATH`, `CUDA_HOME`, `installed by ssmtool`, ...). Without `info` it does not work
    at all, and `why` says so; with both, it works but the project does not take it unless asked for by name.
    `companion` is NVRTC's second library, its builtins.
    """

    kind: Kind
    path: Path
    origin: str
    info: CompilerInfo | None = None
    why: str | None = None
    companion: Path | None = None

    @property
    def title(self) -> str:
        """`NVRTC 11.4.152 (installed by ssmtool)`, or the kind alone when it does not run."""
        name = self.info.title if self.info else self.kind
        return f"{name} ({self.origin})"


def ptx_isa_of(release: str) -> tuple[int, int]:
    """PTX ISA of a CUDA release such as `11.4`."""
    if release in _PTX_ISA:
        return _PTX_ISA[release]
    major, minor = (int(part) for part in release.split("."))
    return major - 4, minor


def cannot_target(release: str, target: str) -> str | None:
    """Why a compiler of this release cannot make code for `target`, or None when it can (or it is not known)."""
    match = re.match(r"sm_(\d+)", target)
    lowest = _LOWEST_TARGET.get(int(release.split(".")[0]))
    if match and lowest and int(match[1]) < lowest:
        return f"CUDA {release} cannot target {target} (its lowest is sm_{lowest})"
    return None


def no_such_target(info: CompilerInfo, target: str, numbers: Iterable[int]) -> ToolchainError:
    """The error for an architecture that the compiler refused; `numbers` are those it says it takes."""
    if target.removeprefix("sm_") in {str(number) for number in numbers}:
        return ToolchainError(
            f"{info.title} refuses the architecture, and takes {target}: the flags name another one",
            hint=f"take flags such as -arch out of flags in {table()} and of the environment; target decides",
        )
    takes = ", ".join(f"sm_{number}" for number in sorted(set(numbers)))
    return TargetError(
        f'setting `target`: {info.title} makes no code for "{target}"' + (f"; it takes {takes}" if takes else ""),
        hint=f"set target in {table()} to one of those, or pin a release that knows it" if takes else None,
    )


def virtual_architecture(target: str) -> str:
    """`compute_37` for `sm_37`: PTX is made for the virtual architecture."""
    return target.replace("sm_", "compute_", 1)
