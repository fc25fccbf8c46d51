"""The project's settings and paths: `[tool.ssmtool]` in pyproject.toml, or ssmtool.toml.

Every other room takes its paths and names from here, so a project with another layout needs settings, not code.
Paths in settings are relative to the folder of the settings file, and reports show them that way.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from ssmtool.errors import SsmtoolError
from ssmtool.files import read_source
from ssmtool.settings_check import check_settings, line_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS_FILES = ("ssmtool.toml", "pyproject.toml")


class LoaderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the C loader keeps the kernel names of one module.

    `array` is the `const char *` array of names; `function` is the call that receives it together with an explicit
    count. `count_argument` is the 0-based position of the count in that call; without it, the argument after the array.
    """

    path: str
    array: str
    function: str | None = None
    count_argument: int | None = None


class ModuleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `.cu` file, the string constant that carries its PTX, and the loader that assigns its kernels."""

    source: str
    constant: str | None = None
    loader: LoaderSettings | None = None

    @property
    def name(self) -> str:
        """The source's stem, as in `ssm_gated_delta`."""
        return PurePosixPath(self.source).stem

    @property
    def constant_name(self) -> str:
        """The C identifier of the PTX string; `FC_PTX_<STEM>` unless the settings name it."""
        return self.constant or "FC_PTX_" + re.sub(r"\W", "_", self.name).upper()


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of `ssmtool audit-ptx` for the kernels whose names fit the shell pattern `kernel`; None is no limit.

    `local_bytes`: declared by `.local`; `local_instructions`: loads and stores of local memory in the text;
    `executed_local`: those on paths that the assumptions leave; `registers`, `frame_bytes`, `spill_bytes` and
    `shared_bytes` (static): what ptxas gives the kernel; `contractible`: products that ptxas may fuse into an add.
    """

    kernel: str
    local_bytes: int | None = None
    local_instructions: int | None = None
    executed_local: int | None = None
    registers: int | None = None
    frame_bytes: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    contractible: int | None = None


class LaunchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How kernels whose names fit the shell pattern `kernel` are launched: what `--cost` and `--resources` go by.

    `grid` in blocks and `block` in threads, one number or up to three (x, y, z); `shared` is dynamic shared memory.
    """

    kernel: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    shared: int = 0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[tool.ssmtool]` table. Field comments are the settings reference."""

    # The `.cu` files, in the order of their constants in the header.
    module: tuple[ModuleSettings, ...] = ()
    # The generated C header that carries the PTX.
    header: str = "generated/fc_cuda_ptx.h"
    # Architecture the PTX is made for.
    target: str = "sm_37"
    # The compiler release the product is made for, `major.minor`; any other is refused unless asked for by name.
    cuda_release: str = "11.4"
    # `nvcc`, `nvrtc` (the embedded compiler), or `auto`: nvcc of the release if the host has it, else the embedded one.
    compiler: str = "auto"
    # nvcc to use instead of the one found on PATH, in CUDA_HOME or in /usr/local/cuda-<release>.
    nvcc: str | None = None
    # Extra compiler flags, given to nvcc and NVRTC alike.
    flags: tuple[str, ...] = ()
    # Folders searched for `#include`, besides the folder of the source.
    include_dirs: tuple[str, ...] = ()
    # Seconds one compiler run may take.
    compile_timeout: float = 300.0
    # Newest PTX ISA the driver of the target machine loads. R470, the last driver for Kepler, stops at 7.4.
    max_ptx_isa: str = "7.4"
    # What `ssmtool audit-ptx` takes parameters to be: "KERNEL.PARAMETER" = integer, KERNEL a shell pattern.
    assume: dict[str, int] = {}
    # Limits that fail `ssmtool audit-ptx`, by kernel.
    budget: tuple[BudgetSettings, ...] = ()
    # Launch shapes of kernels, for `ssmtool audit-ptx --cost` and `--resources`.
    launch: tuple[LaunchSettings, ...] = ()
    # What each kernel's numbers were when last accepted; worse fails, `--update-baseline` writes it.
    baseline: str = "generated/audit-baseline.json"
    # Folder of the golden vectors, for `ssmtool verify` and `ssmtool golden`.
    golden: str = "golden"


class Project(msgspec.Struct, frozen=True):
    """Settings with the folder they are relative to."""

    root: Path
    settings: Settings
    settings_file: Path | None = None

    def path(self, relative: str) -> Path:
        """The absolute path of a path written in the settings."""
        return self.root / relative

    def show(self, path: Path) -> str:
        """`path` as reports print it: relative to the project's folder when it lies inside, with forward slashes."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)

    @property
    def header_path(self) -> Path:
        """The generated header."""
        return self.path(self.settings.header)


def find_project(start: Path) -> Project:
    """The project whose settings file lies in `start` or the nearest folder above it.

    Raises SsmtoolError when there is none, or when the settings are wrong.
    """
    start = start.absolute()
    if not start.is_dir():
        raise SsmtoolError("is no folder" if os.path.lexists(start) else "no such folder", path=start)
    for folder in (start, *start.parents):
        for name in SETTINGS_FILES:
            path = folder / name
            if path.is_file():
                project = read_project(path)
                if project is not None:
                    return project
    raise SsmtoolError(
        f"no [tool.ssmtool] table in a pyproject.toml, and no ssmtool.toml, in {start} or above it",
        hint="ssmtool init",
    )


def read_project(path: Path) -> Project | None:
    """The project of one settings file; None for a pyproject.toml without a `[tool.ssmtool]` table."""
    text = read_source(path)
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+), column (\d+)", str(error))
        line, column = (int(match[1]), int(match[2])) if match else (None, None)
        raise SsmtoolError(f"is not valid TOML: {error}", path=path, line=line, column=column) from None
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or arrays in arrays: valid TOML, and no settings of anybody.
        raise SsmtoolError("holds a number or a nesting beyond all measure: Python cannot read it", path=path) from None
    table = document
    if path.name == "pyproject.toml":
        tools = document.get("tool", {})
        if not isinstance(tools, dict) or "ssmtool" not in tools:
            return None
        table = tools["ssmtool"]
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise SsmtoolError(
            _advice(str(error)),
            path=path,
            line=_line_of_error(text, str(error)),
            hint="docs/settings.md lists every key",
        ) from None
    check_settings(settings, path, text)
    return Project(root=path.parent, settings=settings, settings_file=path)


def _advice(message: str) -> str:
    """The message of msgspec, with the known key that an unknown one looks like."""
    match = re.search(r"unknown field `(\w+)`", message)
    if match is None:
        return f"wrong setting: {message}"
    place: type[msgspec.Struct] = ModuleSettings if "$.module" in message else Settings
    place = LoaderSettings if ".loader" in message else place
    place = BudgetSettings if "$.budget" in message else LaunchSettings if "$.launch" in message else place
    import difflib

    close = difflib.get_close_matches(match[1], place.__struct_fields__, 1)
    known = f"did you mean `{close[0]}`?" if close else f"known there: {', '.join(place.__struct_fields__)}"
    return f"unknown setting `{match[1]}`; {known}"


def _line_of_error(text: str, message: str) -> int | None:
    """The line of the key that a validation message quotes or points at, when it can be told."""
    keys = re.findall(r"field `(\w+)`", message) + re.findall(r"\.(\w+)(?:\[|`|$)", message)
    return next(filter(None, (line_of(text, key) for key in keys)), None)
