"""What a worker has to have in common with who asks: else its numbers are those of another program."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path

from ssmtool import __version__

# Compared up to the second number; the others whole. distributed's releases do not promise to understand each other.
_MINOR = ("Python", "numpy", "llvmlite", "msgspec")
_PACKAGES = ("numpy", "llvmlite", "msgspec", "distributed")
_NONE = "none"
_SHOWN = 12

Identity = Mapping[str, str]


@functools.cache
def identity() -> dict[str, str]:
    """Versions by name, and under `files` a hash of the package's sources; of this process, as it first asked.

    Cached, since a process runs what it has imported: one that was started before an edit must not seem to have it.
    """
    found = {"ssmtool": __version__, "files": sources_hash(), "Python": platform.python_version()}
    return found | {name: _version(name) for name in _PACKAGES}


def sources_hash() -> str:
    """SHA-256 of every file of the package: people run from checkouts, whose version number says little."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(package).as_posix()} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()


def difference(here: Identity, there: Identity, names: tuple[str, ...] | None = None) -> str | None:
    """What of `there` is not as `here`, with both versions; None when they fit. `names` limits what is compared."""
    for name in names or tuple(here):
        ours, theirs = here.get(name, _NONE), there.get(name, _NONE)
        if name == "files":
            if ours != theirs:
                version = here["ssmtool"]
                return (
                    f"its ssmtool {version} is not this ssmtool {version}: its files have the hash {theirs[:_SHOWN]}, "
                    f"here it is {ours[:_SHOWN]}"
                )
        elif _fits(name, ours) != _fits(name, theirs):
            return f"its {name} is {theirs}, here it is {ours}"
    return None


def _fits(name: str, version: str) -> str:
    return ".".join(version.split(".")[:2]) if name in _MINOR else version


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return _NONE
