"""Compiled kernels on disk: found again by what they were made from, and never believed when damaged."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ssmtool import __version__
from ssmtool.execute.layout import KernelFacts

MOST_BYTES = 256 << 20
_MAGIC = b"ssmtool kernel 1\n"
_SUFFIX = ".kernel"
_ABANDONED = 3600.0
"""Seconds after which a temporary file is that of a process that was killed."""


class _Entry(msgspec.Struct):
    facts: KernelFacts
    code: bytes


def cache_dir() -> Path:
    """`$SSMTOOL_CACHE_DIR/execute`, or `execute` in the user's cache folder; it need not exist."""
    override = os.environ.get("SSMTOOL_CACHE_DIR")
    if override:
        return Path(override).absolute() / "execute"
    import platformdirs

    return Path(platformdirs.user_cache_dir("ssmtool")) / "execute"


@functools.cache
def sources_hash() -> str:
    """Hash of the rooms that make code, so that no code of another state of them is ever run.

    Raises OSError when the package's files cannot be read.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(__version__.encode())
    for room in ("execute", "ptx"):
        for path in sorted((package / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                data = path.read_bytes()
                digest.update(f"{path.relative_to(package)} {len(data)}\n".encode())
                digest.update(data)
    return digest.hexdigest()


def key_of(parts: Iterable[str]) -> str:
    """The key of a kernel made from these texts and this state of ssmtool. Raises OSError as `sources_hash`."""
    digest = hashlib.sha256(sources_hash().encode())
    for part in parts:
        data = part.encode("utf-8", errors="surrogatepass")
        digest.update(b"%d\n" % len(data))
        digest.update(data)
    return digest.hexdigest()


class Cache:
    """A folder of compiled kernels, shared by all processes of one user.

    Every entry is written whole and carries its own checksum. `problem` says why the last entry could not be kept
    (a folder without permission, a full disk), or is None; nothing here raises for such a cause.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self.problem: str | None = None

    def load(self, key: str) -> tuple[KernelFacts, bytes] | None:
        """Facts and object code; None when there is no such entry, or only a damaged or a foreign one."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                state = os.fstat(file.fileno())
                if not _is_ours(state):
                    return None  # machine code that somebody else may have written is not run
                if state.st_size > MOST_BYTES:
                    raise ValueError("more than any kernel, and perhaps more than there is memory")
                data = file.read()
            entry = _decode(data)
            os.utime(path)  # the least recently used goes first
        except OSError:
            return None
        except (ValueError, msgspec.MsgspecError):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return entry.facts, entry.code

    def store(self, key: str, facts: KernelFacts, code: bytes) -> None:
        """Keep an entry, and remove the least recently used ones beyond `most_bytes`."""
        body = msgspec.msgpack.encode(_Entry(facts, code))
        data = _MAGIC + hashlib.sha256(body).digest() + body
        temporary: str | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, temporary = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(temporary).replace(self._path(key))
            temporary = None
            self._trim()
        except OSError as error:
            self.problem = f"compiled kernels are not kept: {self.folder}: {error.strerror or error}"
        finally:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _trim(self) -> None:
        entries = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another process was faster
                state = path.stat()
                if path.suffix == _SUFFIX or time.time() - state.st_mtime > _ABANDONED:
                    entries.append((state.st_mtime_ns, state.st_size, path))
        excess = sum(size for _, size, _ in entries) - self.most_bytes
        # The newest stays whatever its size: it is the one just made.
        for _, size, path in sorted(entries)[:-1]:
            if excess <= 0:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            excess -= size


def _is_ours(state: os.stat_result) -> bool:
    """Whether only this user (or root) can have written a file."""
    if not hasattr(os, "getuid"):
        return True
    writable = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return state.st_uid in (os.getuid(), 0) and not writable


def _decode(data: bytes) -> _Entry:
    """The entry in a file's bytes. Raises ValueError or MsgspecError when they are not the ones that were written."""
    start = len(_MAGIC) + 32
    body = memoryview(data)[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        raise ValueError("damaged")
    return msgspec.msgpack.decode(body, type=_Entry)
