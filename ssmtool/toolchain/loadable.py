"""Will the driver of the target machine load this PTX? R470, the last driver for Kepler, stops at PTX ISA 7.4."""

from __future__ import annotations

import re

from ssmtool.errors import ProductError
from ssmtool.project import Project
from ssmtool.settings_form import table
from ssmtool.toolchain.model import ToolchainError
from ssmtool.toolchain.ptxas import PtxasError, assemble, select_ptxas

# .version 7.8
_VERSION = re.compile(r"^(\s*\.version\s+)(\d+)\.(\d+)", re.MULTILINE)
# .target sm_37, debug
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)


def make_loadable(ptx: str, project: Project) -> tuple[str, str | None]:
    """PTX that the target's driver loads, and a note when its `.version` had to be lowered for that.

    A newer compiler writes a newer `.version` even when it uses nothing of it. The lower label is honest only if the
    text is valid under it, and only a ptxas can say so: it refuses what the labelled ISA does not have. Raises
    ProductError when `.target` is not the project's or when ptxas refuses the lower label; ToolchainError when there is
    no ptxas to ask.
    """
    settings = project.settings
    version, target = _VERSION.search(ptx), _TARGET.search(ptx)
    if not version or not target:
        raise ProductError("the compiler's output has no .version or no .target, so it is not PTX")
    if target[1] != settings.target:
        raise ProductError(
            f"the PTX is made for {target[1]}, the project's target is {settings.target}",
            hint=f"take flags such as -arch out of {table()} flags; target decides",
        )
    newest = _isa(settings.max_ptx_isa)
    found = (int(version[2]), int(version[3]))
    if found <= newest:
        return ptx, None
    lower = settings.max_ptx_isa
    label = f"PTX ISA {found[0]}.{found[1]}"
    relabelled = f"{ptx[: version.start()]}{version[1]}{lower}{ptx[version.end() :]}"
    consequence = f"a driver that stops at PTX {lower} fails with error 222 (unsupported PTX version)"
    try:
        ptxas = select_ptxas(settings.target, found)
    except ToolchainError as error:
        raise ToolchainError(
            f"the PTX is {label}, and {consequence}; whether it holds as {lower} cannot be checked: {error.message}",
            hint=error.hint,
        ) from None
    try:
        assemble(relabelled, settings.target, ptxas=ptxas, timeout_s=settings.compile_timeout)
    except PtxasError as error:
        raise ProductError(
            f"the PTX is {label}, and {consequence}; it does not hold as {lower} either: "
            f"line {error.line}: {error.message}",
            hint=f"compile with CUDA {settings.cuda_release}",
        ) from None
    return relabelled, f"{label} relabelled {lower}; {ptxas.title} accepts it as {lower} for {settings.target}"


def _isa(text: str) -> tuple[int, int]:
    """(7, 4) of `7.4`."""
    major, minor = text.split(".")
    return int(major), int(minor)
