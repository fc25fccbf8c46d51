"""Reading and writing the user's files: text with clear errors, writes that are whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from ssmtool.errors import SsmtoolError

_BYTE_ORDER_MARKS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\xef\xbb\xbf": "UTF-8 with a byte-order mark",
}


def read_bytes(path: Path) -> bytes:
    """The file's bytes. Raises SsmtoolError when it is missing, a folder, a pipe or device, or not readable."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise SsmtoolError("is a pipe or a device, not a file", path=path)  # reading one may never end
        return path.read_bytes()
    except FileNotFoundError:
        raise SsmtoolError("no such file", path=path) from None
    except IsADirectoryError:
        raise SsmtoolError("is a folder, not a file", path=path) from None
    except OSError as error:
        raise SsmtoolError(f"cannot be read: {error.strerror or error}", path=path) from None


def decode_source(data: bytes, path: Path) -> str:
    """C, CUDA, PTX or TOML text as a str. Raises SsmtoolError for UTF-16, NUL bytes and bytes that are not UTF-8.

    A compiler would answer UTF-16 with thousands of lines about stray characters; this says it in one.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark) and encoding == "UTF-16":
            from shlex import quote

            name = quote(str(path))
            raise SsmtoolError(
                "is UTF-16 text; it has to be UTF-8",
                path=path,
                hint=f"iconv -f UTF-16 -t UTF-8 {name} > {name}.utf8 && mv {name}.utf8 {name}",
            )
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise SsmtoolError("holds a NUL byte, so it is binary or UTF-16, not text", path=path, line=line)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SsmtoolError(f"is not UTF-8 text (byte 0x{data[error.start]:02x})", path=path, line=line) from None


def read_source(path: Path) -> str:
    """`decode_source` of the file's bytes."""
    return decode_source(read_bytes(path), path)


def write_atomic(path: Path, data: bytes) -> bool:
    """Write `data` to `path` whole or not at all; True if the file changed.

    Temporary file in the same folder, fsync, rename: an interrupted run or a full disk leaves the old file.
    A file that already holds `data` is not touched, so its time stamp does not send `make` round again. A link is
    followed, and the old file's permission bits are kept. Raises SsmtoolError when the folder or disk refuses.
    """
    # Imported here: with all that it pulls in it would cost every command 5 ms, and `build --check` writes nothing.
    import tempfile

    path = Path(os.path.realpath(path))
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            # To read one may never end, and a rename would put a file in its place.
            raise SsmtoolError("is a pipe or a device: nothing is written over it", path=path)
        if path.read_bytes() == data:
            return False
    except OSError:
        pass
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = _mode_for(path)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise SsmtoolError(
            f"cannot be written: {error.strerror or error}; nothing was changed",
            path=path,
            hint="make the folder writable, or free some space, and run the command again",
        ) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
    return True


def _mode_for(path: Path) -> int:
    """The old file's permission bits, or what a plain open() would give a new one."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
