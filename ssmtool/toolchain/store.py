"""Where `ssmtool toolchain install` keeps the embedded compiler, and how its files are known to be whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

RELEASE = "11.4"
VERSION = "11.4.152"

LIBRARY = "libnvrtc.so.11.2"
BUILTINS = "libnvrtc-builtins.so.11.4"

# The wheel that carries the two libraries, pinned. Any CPython can use the cp311 build, since nothing of it is
# imported: only the two files are taken.
WHEEL_PROJECT = "cumm-cu114"
WHEEL_VERSION = "0.8.2"
WHEEL_NAME = "cumm_cu114-0.8.2-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
WHEEL_SHA256 = "89e3f4f2e82f0498b8f650dfa72a90d3a102f65be39e2fe0bbbeaf72e21eccae"

# member of the wheel -> (plain name, size in bytes, sha256)
FILES = {
    "cumm_cu114.libs/libnvrtc-f0492a2f.so.11.4.152": (
        LIBRARY,
        44705377,
        "8c27dd8296cbdec048a5bc2de82671264f4eeb5512ae982661f88d3344197a06",
    ),
    "cumm_cu114.libs/libnvrtc-builtins-8fb1c221.so.11.4.152": (
        BUILTINS,
        6886481,
        "9cd5301d5aed3af797760d12e61833cafb6ee61549452495bc235caa2429289f",
    ),
}


def store_dir() -> Path:
    """`$SSMTOOL_TOOLCHAIN_DIR`, or `toolchain` in the user's data folder; it need not exist."""
    override = os.environ.get("SSMTOOL_TOOLCHAIN_DIR")
    return Path(override).absolute() if override else Path(platformdirs.user_data_dir("ssmtool")) / "toolchain"


def nvrtc_dir() -> Path:
    """The folder of the embedded compiler; it need not exist."""
    return store_dir() / f"nvrtc-{VERSION}"


def quick_fault(folder: Path) -> str | None:
    """What is plainly wrong with an installed compiler (a file missing or of the wrong size), or None."""
    for name, size, _ in FILES.values():
        try:
            found = (folder / name).stat().st_size
        except OSError as error:
            return f"{name}: {error.strerror or error}"
        if found != size:
            return f"{name} is damaged: {found} bytes, not {size}"
    return None


def full_fault(folder: Path) -> str | None:
    """`quick_fault`, and the hashes of both files; about 0.1 s."""
    fault = quick_fault(folder)
    if fault:
        return fault
    for name, _, sha256 in FILES.values():
        try:
            found = file_sha256(folder / name)
        except OSError as error:
            return f"{name}: {error.strerror or error}"
        if found != sha256:
            return f"{name} is damaged: sha256 {found[:12]}..., not {sha256[:12]}..."
    return None


def file_sha256(path: Path) -> str:
    """The file's sha256 in hex. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
