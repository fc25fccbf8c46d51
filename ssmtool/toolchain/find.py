"""Look for compilers on this machine: nvcc in its usual places, NVRTC where ssmtool or pip put it."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.project import Project
from ssmtool.toolchain import store
from ssmtool.toolchain.model import CompilerInfo, Found, Kind, cannot_target
from ssmtool.toolchain.process import run_tool

PINNED_RELEASE = "11.4"
USUAL_PLACE = Path("/usr/local")

# Cuda compilation tools, release 11.8, V11.8.89
_NVCC_RELEASE = re.compile(r"release (\d+\.\d+), V(\d+\.\d+\.\d+)")
# cumm_cu114.libs/libnvrtc-f0492a2f.so.11.4.152
_MANGLED = re.compile(r"libnvrtc(?P<builtins>-builtins)?-[0-9a-f]{8}\.so\.(?P<version>\d+\.\d+\.\d+)$")
# nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.11.8
_BUILTINS = re.compile(r"libnvrtc-builtins\.so\.(\d+\.\d+)$")
_WHEELS = ("cumm-cu114", "nvidia-cuda-nvrtc-cu11")


def find_compilers(project: Project | None = None) -> list[Found]:
    """Every compiler in reach, in the order in which they would be taken; broken ones carry their reason in `why`.

    With a project, one that works but is not of its pinned release, or cannot make its target, says so in `why`.
    """
    found = _without_doubles([*_find_nvcc(project), *_find_nvrtc()])
    return [_judge(item, project) for item in found] if project else found


def places_looked(project: Project | None) -> list[str]:
    """In words, where `find_compilers` looks, for the message that nothing was found."""
    release = project.settings.cuda_release if project else PINNED_RELEASE
    if project and project.settings.nvcc:
        nvcc = [f"nvcc: {project.settings.nvcc} (setting nvcc)"]
    else:
        nvcc = [f"nvcc: {place} ({origin})" for origin, place in _nvcc_places(release)]
    return [
        *nvcc,
        f"NVRTC: {store.nvrtc_dir()} (ssmtool toolchain install)",
        *(f"NVRTC: package {name} in {sysconfig.get_path('purelib')}" for name in _WHEELS),
    ]


def _nvcc_places(release: str) -> list[tuple[str, Path | str]]:
    """(origin, path) of each place for nvcc; a str where the place itself is not set."""
    places: list[tuple[str, Path | str]] = [("PATH", shutil.which("nvcc") or "none")]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        folder = os.environ.get(variable)
        places.append((variable, Path(folder) / "bin" / "nvcc" if folder else "not set"))
    usual = USUAL_PLACE / f"cuda-{release}" / "bin" / "nvcc"
    places.append(("the usual place", usual))
    return [(origin, Path(place) if origin == "PATH" and place != "none" else place) for origin, place in places]


def _find_nvcc(project: Project | None) -> Iterator[Found]:
    """By the setting alone when it is set; otherwise PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda-<release>."""
    setting = project.settings.nvcc if project else None
    if project and setting:
        named = shutil.which(setting) if os.sep not in setting else str(project.root / Path(setting).expanduser())
        path = Path(named or setting)
        if named and path.is_file():
            yield _ask_nvcc(path, "setting nvcc")
        else:
            yield Found("nvcc", path, "setting nvcc", why="no such file")
        return
    release = project.settings.cuda_release if project else PINNED_RELEASE
    for origin, place in _nvcc_places(release):
        if isinstance(place, Path) and place.is_file():
            yield _ask_nvcc(place, origin)


def _ask_nvcc(path: Path, origin: str) -> Found:
    """What `nvcc --version` says."""
    try:
        finished = run_tool([path, "--version"], name="nvcc --version", timeout_s=30)
    except SsmtoolError as error:
        return Found("nvcc", path, origin, why=error.message)
    match = _NVCC_RELEASE.search(finished.stdout)
    if finished.code != 0 or not match:
        words = (finished.stderr or finished.stdout).strip().splitlines() or ["nothing"]
        return Found("nvcc", path, origin, why=f"`nvcc --version` does not name a release; it says: {words[-1]}")
    return _found("nvcc", match[2], path, origin)


def _find_nvrtc() -> Iterator[Found]:
    """NVRTC that ssmtool installed, then that of wheels in the running environment."""
    folder = store.nvrtc_dir()
    if folder.is_dir():
        origin = "installed by ssmtool"
        library = folder / store.LIBRARY
        fault = store.quick_fault(folder)
        if fault:
            yield Found("nvrtc", library, origin, why=fault)
        else:
            yield _found("nvrtc", store.VERSION, library, origin, folder / store.BUILTINS)
    for name in _WHEELS:
        yield from _in_wheel(name)


def _in_wheel(name: str) -> Iterator[Found]:
    """NVRTC in an installed wheel, found by its list of files: importing cumm would need all its dependencies."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return
    origin = f"package {name} {distribution.version}"
    library = builtins = None
    version = distribution.version
    for file in distribution.files or ():
        mangled = _MANGLED.match(file.name)
        path = Path(str(distribution.locate_file(file)))
        if mangled and mangled["builtins"]:
            builtins = path
        elif mangled:
            library, version = path, mangled["version"]
        elif _BUILTINS.match(file.name):
            builtins = path
        elif re.match(r"libnvrtc\.so\.\d", file.name):
            library = path
    if library is None or builtins is None or not library.is_file() or not builtins.is_file():
        place = Path(str(distribution.locate_file("")))
        yield Found("nvrtc", place, origin, why="the package lacks libnvrtc or libnvrtc-builtins")
        return
    yield _found("nvrtc", version, library, origin, builtins)


def _found(kind: Kind, version: str, path: Path, origin: str, companion: Path | None = None) -> Found:
    """A compiler that works as far as can be told without running it."""
    release = ".".join(version.split(".")[:2])
    name = "NVRTC" if kind == "nvrtc" else "nvcc"
    info = CompilerInfo(kind, release, version, path, f"{name} {version} ({origin})")
    return Found(kind, path, origin, info=info, companion=companion)


def _judge(found: Found, project: Project) -> Found:
    """The same, with the reason for which this project does not take it."""
    if found.info is None:
        return found
    settings = project.settings
    why = cannot_target(found.info.release, settings.target)
    if found.info.release != settings.cuda_release:
        why = (
            why
            or f"release {found.info.release} is not the pinned {settings.cuda_release}; ask for it by name to use it"
        )
    return Found(found.kind, found.path, found.origin, found.info, why, found.companion)


def _without_doubles(found: list[Found]) -> list[Found]:
    """Each file once, under its first origin: PATH and CUDA_HOME mostly name the same nvcc."""
    first: dict[Path, Found] = {}
    for item in found:
        first.setdefault(item.path.resolve(), item)
    return list(first.values())
