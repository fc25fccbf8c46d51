"""Choose the compiler: the pinned release, unless another is asked for by name."""

from __future__ import annotations

import re

from ssmtool.errors import SsmtoolError
from ssmtool.project import Project
from ssmtool.settings_form import table
from ssmtool.toolchain.find import find_compilers, places_looked
from ssmtool.toolchain.model import Compiler, Found, ToolchainError, cannot_target
from ssmtool.toolchain.nvcc import Nvcc
from ssmtool.toolchain.nvrtc import Nvrtc

_ASKED = re.compile(r"(?:(?P<kind>auto|nvcc|nvrtc)(?:-(?=\d)|$))?(?P<release>\d+\.\d+)?(?:\.\d+)?")
_INSTALL = "ssmtool toolchain install"


def select_compiler(project: Project, *, asked: str | None = None) -> Compiler:
    """The compiler for this project.

    `asked` is `nvcc`, `nvrtc`, `nvcc-11.8`, `nvrtc-11.8` or `11.8`; None takes the setting `compiler`. A release that
    is not the pinned one is taken only when `asked` names it. Raises ToolchainError, naming what was found and what
    was wanted, when no compiler fits; SsmtoolError when `asked` cannot be understood.
    """
    kind, release = _understand(asked, project)
    found = find_compilers(project)
    if project.settings.nvcc and kind != "nvrtc":
        named = next((item for item in found if item.kind == "nvcc"), None)
        if named is not None and named.info is None:
            # Falling back on another compiler would hide that the one the user chose is never run.
            raise ToolchainError(f"the setting `nvcc` names no working nvcc: {named.why}", path=named.path)
    working = [item for item in found if item.info and (kind == "auto" or item.kind == kind)]
    for item in working:
        if item.info and item.info.release == release:
            reason = cannot_target(release, project.settings.target)
            if reason:
                raise ToolchainError(reason, path=item.path, hint=_hint(release))
            return _make(item)
    raise _none_fits(kind, release, found, project)


def _understand(asked: str | None, project: Project) -> tuple[str, str]:
    """(kind or `auto`, release) from the user's words and the settings."""
    settings = project.settings
    if asked is None:
        return settings.compiler, settings.cuda_release
    match = _ASKED.fullmatch(asked.strip().lower())
    if not match or not (match["kind"] or match["release"]):
        raise SsmtoolError(
            f'"{asked}" does not name a compiler', hint="one of nvcc, nvrtc, nvcc-11.8, nvrtc-11.8, 11.8"
        )
    return match["kind"] or "auto", match["release"] or settings.cuda_release


def _make(found: Found) -> Compiler:
    """The compiler object of a working find."""
    assert found.info is not None
    if found.kind == "nvcc":
        return Nvcc(found.info)
    assert found.companion is not None
    return Nvrtc(found.info, found.companion)


def _none_fits(kind: str, release: str, found: list[Found], project: Project) -> ToolchainError:
    """Say what was found and what was wanted; with nothing found, where it was looked for."""
    wanted = f"{'nvcc or NVRTC' if kind == 'auto' else {'nvcc': 'nvcc', 'nvrtc': 'NVRTC'}[kind]} of CUDA {release}"
    if found:
        lines = [f"  {item.title} at {project.show(item.path)}{'' if item.info else f': {item.why}'}" for item in found]
        message = f"no compiler of the wanted release: wanted {wanted}, found\n" + "\n".join(lines)
    else:
        lines = [f"  {place}" for place in places_looked(project)]
        message = f"no compiler: wanted {wanted}, and looked for\n" + "\n".join(lines)
    return ToolchainError(message, hint=_hint(release))


def _hint(release: str) -> str:
    """The embedded compiler mends it only when its release is the one wanted."""
    if release == "11.4":
        return _INSTALL
    if release in ("11.7", "11.8"):
        return f"pip install 'nvidia-cuda-nvrtc-cu11=={release}.*'"
    return f"install CUDA {release} and name its nvcc in {table()} nvcc, or ask for another release"
