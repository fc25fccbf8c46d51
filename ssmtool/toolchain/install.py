"""`ssmtool toolchain install`: bring CUDA 11.4's NVRTC in, by pinned version and hash, whole or not at all."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.toolchain import store
from ssmtool.toolchain.process import run_tool
from ssmtool.toolchain.workers import signals_as_exits

_PIN = f"{store.WHEEL_PROJECT}=={store.WHEEL_VERSION}"
# Without the version of Python, pip takes the wheel of its own, which is another file.
_FETCH = f"pip download --no-deps --only-binary=:all: --python-version 3.11 {_PIN}"
_OFFLINE = f"on a host with network `{_FETCH}`, and bring the file along: ssmtool toolchain install --wheel FILE"
_NOTICE = f"""\
{store.LIBRARY} and {store.BUILTINS} are NVRTC {store.VERSION} of the CUDA Toolkit,
Copyright (c) NVIDIA Corporation, redistributable under the CUDA Toolkit End User License
Agreement (Attachment A). They were taken unchanged, under plain names, from the wheel
{store.WHEEL_NAME}
(sha256 {store.WHEEL_SHA256}), whose METADATA and LICENSE lie beside this file.
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """Where the embedded compiler lies, and whether this call put it there."""

    folder: Path
    changed: bool


def install(*, wheel: Path | None = None, say: Callable[[str], None] = lambda _: None) -> Installed:
    """Install the embedded compiler, or find that it is installed and whole.

    `wheel` is a local copy of the pinned wheel; without it pip downloads one. `say` receives progress lines. Two runs
    at once are safe: each works in a folder of its own and the first rename wins. Raises SsmtoolError, and then nothing
    of the old installation has changed.
    """
    _check_host()
    folder = store.nvrtc_dir()
    if not folder.is_absolute():
        raise SsmtoolError(
            "there is no home folder to install to: HOME is not set, and this user has no other",
            hint="SSMTOOL_TOOLCHAIN_DIR=/some/folder ssmtool toolchain install, and the same for ssmtool build",
        )
    fault = store.full_fault(folder) if folder.exists() else "not installed"
    if fault is None:
        return Installed(folder, changed=False)
    if folder.exists():
        say(f"the installed compiler is not whole ({fault}); installing it again")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{folder.name}."
        with signals_as_exits(), tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as scratch:
            source = wheel or _download(Path(scratch), say)
            _check_wheel(source)
            fresh = Path(scratch) / folder.name
            _extract(source, fresh)
            _swap_in(fresh, folder, Path(scratch) / "old")
    except OSError as error:
        in_the_way = isinstance(error, (FileExistsError, NotADirectoryError))
        reason = "a file is where a folder has to be" if in_the_way else error.strerror or error
        raise SsmtoolError(
            f"cannot be written: {reason}; nothing was changed",
            path=folder.parent,
            hint="make the folder writable, free some space, or set SSMTOOL_TOOLCHAIN_DIR to another folder",
        ) from None
    return Installed(folder, changed=True)


def _check_host() -> None:
    """The libraries are x86-64 Linux code."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise SsmtoolError(
            f"the embedded compiler exists for x86-64 Linux only, this is {platform.machine()} {sys.platform}",
            hint=f"build on x86-64 Linux, or use nvcc {store.RELEASE}; `ssmtool build --check` works everywhere",
        )


def _download(scratch: Path, say: Callable[[str], None]) -> Path:
    """The pinned wheel, fetched by pip, which checks the hash before it keeps the file."""
    if importlib.util.find_spec("pip") is None:
        raise SsmtoolError(
            f"{sys.executable} has no pip to download the compiler with (uv makes environments without it)",
            hint="uv pip install pip, or python -m ensurepip, and run again; or ssmtool toolchain install --wheel FILE",
        )
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{_PIN} --hash=sha256:{store.WHEEL_SHA256}\n", encoding="utf-8")
    target = scratch / "wheel"
    say(f"downloading {_PIN} (24 MB, CUDA {store.VERSION} NVRTC)")
    finished = run_tool(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
            *("--no-deps", "--only-binary=:all:", "--require-hashes"),
            *("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"),
            *("--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_17_x86_64"),
            *("--dest", str(target), "--requirement", str(requirements)),
        ],
        name="pip",
        timeout_s=1200,
        cwd=scratch,
    )
    found = sorted(target.glob("*.whl")) if target.is_dir() else []
    if finished.code != 0 or not found:
        raise SsmtoolError(
            f"pip could not download {_PIN}: {_reason(finished.stderr or finished.stdout)}", hint=_OFFLINE
        )
    return found[0]


def _reason(said: str) -> str:
    """The line of pip's output that says why: its last ERROR that is not a follow-up, or its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return "the file offered does not have the pinned hash"
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    warnings = [line for line in lines if "connection" in line.lower() or "resolve" in line.lower()]
    if errors and "No matching distribution" in errors[-1] and warnings:
        return f"no connection to a package index ({errors[-1]})"
    return errors[-1] if errors else (lines[-1] if lines else "it said nothing")


def _check_wheel(wheel: Path) -> None:
    """The wheel is the pinned one, whoever brought it."""
    try:
        found = store.file_sha256(wheel)
    except OSError as error:
        raise SsmtoolError(f"cannot be read: {error.strerror or error}", path=wheel) from None
    if found != store.WHEEL_SHA256:
        raise SsmtoolError(
            f"is not the pinned wheel: its sha256 is {found}, not {store.WHEEL_SHA256}; nothing was installed",
            path=wheel,
            hint=f"{_FETCH} gives {store.WHEEL_NAME}",
        )


def _extract(wheel: Path, folder: Path) -> None:
    """The two libraries under their plain names, the notices, and nothing else."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for member, (name, _, _) in store.FILES.items():
            _copy(archive, member, folder / name)
        metadata = f"{store.WHEEL_PROJECT.replace('-', '_')}-{store.WHEEL_VERSION}.dist-info"
        _copy(archive, f"{metadata}/METADATA", folder / "METADATA")
        _copy(archive, f"{metadata}/licenses/LICENSE", folder / "LICENSE")
    (folder / "NOTICE").write_text(_NOTICE, encoding="utf-8")
    fault = store.full_fault(folder)
    if fault:
        raise SsmtoolError(f"after unpacking, {fault}", path=wheel, hint="check the disk, and run the command again")


def _copy(archive: zipfile.ZipFile, member: str, path: Path) -> None:
    """One member to one file, on disk before the folder gets its name."""
    with archive.open(member) as source, path.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())


def _swap_in(fresh: Path, folder: Path, aside: Path) -> None:
    """Give `fresh` its name; a damaged folder of that name goes aside first, a whole one of another run stays."""
    try:
        fresh.rename(folder)
    except OSError:
        # A folder with files in it cannot be renamed over: another run was first, or the old one is damaged.
        if store.full_fault(folder) is None:
            return
        folder.rename(aside)
        fresh.rename(folder)
