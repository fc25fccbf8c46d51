"""The project's settings and paths: `[tool.ssmtool]` in pyproject.toml, or ssmtool.toml.

Every other room takes its paths and names from here, so a project with another layout needs settings, not code.
Paths in settings are relative to the folder of the settings file, and reports show them that way.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec

from ssmtool.errors import SsmtoolError
from ssmtool.files import read_source
from ssmtool.settings_check import check_settings, line_of
from ssmtool.settings_form import PYPROJECT, use

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS_FILES = ("ssmtool.toml", PYPROJECT)


def _says(description: str, *examples: Any) -> msgspec.Meta:
    """What docs/settings.md says of a key, and values to show; tools/settings_page.py writes the page from these."""
    return msgspec.Meta(description=description, examples=list(examples))


class LoaderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the C loader keeps the kernel names of one module."""

    path: Annotated[str, _says("The C file or header with the name array.", "host/loader.c")]
    array: Annotated[
        str, _says("The `const char *` array of kernel names, or the table of structs that begin with one.", "my_names")
    ]
    function: Annotated[
        str | None, _says("The function that is called with the array and an explicit count.", "load_functions")
    ] = None
    count_argument: Annotated[
        int | None,
        _says("0-based position of the count in that call; without it, the argument after the array.", 2),
    ] = None


class ModuleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `.cu` file, the string constant that carries its PTX, and the loader that assigns its kernels."""

    source: Annotated[str, _says("The `.cu` file.", "kernels/my_kernels.cu")]
    constant: Annotated[
        str | None,
        _says("The C identifier of its string constant; without it `FC_PTX_` and the source's stem.", "MY_PTX"),
    ] = None
    loader: Annotated[
        LoaderSettings | None,
        _says("The loader. Without one the registry rule is skipped for this module, and says so."),
    ] = None

    @property
    def name(self) -> str:
        """The source's stem, as in `ssm_gated_delta`."""
        return PurePosixPath(self.source).stem

    @property
    def constant_name(self) -> str:
        """The C identifier of the PTX string; `FC_PTX_<STEM>` unless the settings name it."""
        return self.constant or "FC_PTX_" + re.sub(r"\W", "_", self.name).upper()


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of `ssmtool audit-ptx` for some kernels; None is no limit."""

    kernel: Annotated[
        str,
        _says("Shell pattern of kernel names. One that fits no kernel is an error: it would check nothing.", "my_*"),
    ]
    local_bytes: Annotated[int | None, _says("Bytes declared by `.local`.", 0)] = None
    local_instructions: Annotated[int | None, _says("Local loads and stores in the text.", 0)] = None
    executed_local: Annotated[
        int | None, _says("Local loads and stores on the paths that the assumptions leave.", 0)
    ] = None
    registers: Annotated[int | None, _says("Registers a thread, by ptxas.", 64)] = None
    frame_bytes: Annotated[int | None, _says("Bytes of stack frame, by ptxas.", 0)] = None
    spill_bytes: Annotated[int | None, _says("Bytes of spill stores and loads, by ptxas.", 0)] = None
    shared_bytes: Annotated[int | None, _says("Bytes of static shared memory, by ptxas.", 16384)] = None
    contractible: Annotated[int | None, _says("Products that ptxas may fuse into an add.", 0)] = None


class LaunchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How some kernels are launched: what `audit-ptx --cost`, `--resources` and `--explain` go by."""

    kernel: Annotated[str, _says("Shell pattern of kernel names.", "my_*")]
    grid: Annotated[int | tuple[int, ...], _says("Blocks: a number, or up to three.", [128, 32])]
    block: Annotated[
        int | tuple[int, ...], _says("Threads of a block: a number, or up to three; 1024 at most in all.", 256)
    ]
    shared: Annotated[int, _says("Bytes of dynamic shared memory, 48 KB at most.", 1024)] = 0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[tool.ssmtool]` table."""

    module: Annotated[
        tuple[ModuleSettings, ...], _says("The `.cu` files, in the order of their constants in the header.")
    ] = ()
    header: Annotated[str, _says("The generated C header that carries the PTX.", "generated/my_ptx.h")] = (
        "generated/fc_cuda_ptx.h"
    )
    target: Annotated[str, _says("Architecture the PTX is made for.", "sm_37")] = "sm_37"
    cuda_release: Annotated[
        str,
        _says("The compiler release the product is made for; another is refused unless asked for by name.", "11.4"),
    ] = "11.4"
    compiler: Annotated[
        str,
        _says(
            '`"nvcc"`, `"nvrtc"` (the embedded compiler), or `"auto"`: nvcc of the release if the host has it, else '
            "the embedded one.",
            "nvrtc",
        ),
    ] = "auto"
    nvcc: Annotated[
        str | None,
        _says(
            "nvcc to use instead of the one found on `PATH`, in `CUDA_HOME` or in `/usr/local/cuda-<release>`.",
            "/opt/cuda-11.4/bin/nvcc",
        ),
    ] = None
    flags: Annotated[tuple[str, ...], _says("Extra compiler flags, given to nvcc and NVRTC alike.", ["-lineinfo"])] = ()
    include_dirs: Annotated[
        tuple[str, ...],
        _says("Folders searched for `#include`, besides the folder of the source.", ["kernels/include"]),
    ] = ()
    compile_timeout: Annotated[float, _says("Seconds one compiler run may take.", 600.0)] = 300.0
    max_ptx_isa: Annotated[
        str,
        _says(
            "Newest PTX ISA the driver of the target machine loads. R470, the last driver for Kepler, stops at 7.4.",
            "7.4",
        ),
    ] = "7.4"
    assume: Annotated[
        dict[str, int],
        _says(
            'What `audit-ptx` takes parameters to be: `"KERNEL.PARAMETER" = integer`, KERNEL a shell pattern, '
            "PARAMETER the name in C.",
            {"my_convolution*.taps": 4},
        ),
    ] = {}
    budget: Annotated[tuple[BudgetSettings, ...], _says("Limits that fail `audit-ptx`.")] = ()
    launch: Annotated[tuple[LaunchSettings, ...], _says("Launch shapes of kernels.")] = ()
    baseline: Annotated[
        str,
        _says(
            "Each kernel's numbers when last accepted: worse fails, `audit-ptx --update-baseline` writes it.",
            "generated/audit-baseline.json",
        ),
    ] = "generated/audit-baseline.json"
    golden: Annotated[str, _says("Folder of the golden vectors, for `golden` and `verify`.", "golden")] = "golden"


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
    if path.name == PYPROJECT:
        tools = document.get("tool", {})
        if not isinstance(tools, dict) or "ssmtool" not in tools:
            return None
        table = tools["ssmtool"]
    elif "tool" in document:
        match = re.search(r"(?m)^[ \t]*\[*[ \t]*tool\b", text)
        raise SsmtoolError(
            "unknown setting `tool`",
            path=path,
            line=text.count("\n", 0, match.start()) + 1 if match else None,
            hint=f"in {path.name} leave out `tool.ssmtool.`: that form is pyproject.toml's",
        )
    use(path)
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
