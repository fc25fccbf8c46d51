"""The .npz container: written with the same bytes by every machine, read without trusting a byte of it.

An .npz is a zip of .npy files. NumPy's own writer leaves the zip's bytes to the versions of NumPy, Python and zlib, so
files are made here: no compression (deflate differs between zlib and its successors), fixed time stamps, given order.
Reading takes what `numpy.savez` and `savez_compressed` write. Nothing is unpickled, and nothing larger than announced
is read: a file of 1 KB may claim to hold a terabyte.
"""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import DTYPES, CaseError

# A file, and all of its arrays together. The largest of the product's own cases has 6 MB.
MAX_FILE_BYTES = 256 << 20
MAX_ARRAY_BYTES = 512 << 20
MAX_MEMBERS = 256

_MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64
_MAX_HEADER = 4096
_EPOCH = (1980, 1, 1, 0, 0, 0)


def npy_bytes(array: NDArray[Any]) -> bytes:
    """The array as an .npy of format 1.0, in C order."""
    shape = "(" + "".join(f"{size}, " for size in array.shape).rstrip() + ")"
    if array.ndim > 1:
        shape = shape.replace(",)", ")")
    header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    length = -(-(len(_MAGIC) + 4 + len(header) + 1) // _ALIGNMENT) * _ALIGNMENT
    header = header.ljust(length - len(_MAGIC) - 5) + "\n"
    return _MAGIC + b"\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


def npz_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays, in their order, as an uncompressed .npz."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            info.create_system = 3  # else Windows writes another byte
            info.external_attr = 0o644 << 16
            archive.writestr(info, npy_bytes(array))
    return stream.getvalue()


def read_npz(data: bytes, path: Path | None = None) -> dict[str, NDArray[Any]]:
    """Every array of the .npz, by name, read-only. Raises CaseError for anything damaged, hostile or too large."""
    if len(data) > MAX_FILE_BYTES:
        raise CaseError(f"has {len(data)} bytes; a case has at most {MAX_FILE_BYTES}", path=path)
    if not data.startswith(b"PK"):
        raise CaseError("is not an .npz file (no zip archive)", path=path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read_members(archive, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, OSError, ValueError) as error:
        raise CaseError(f"is damaged: {str(error) or type(error).__name__}", path=path) from None
    except RuntimeError as error:  # an encrypted member
        raise CaseError(f"cannot be read: {error}", path=path) from None


def _read_members(archive: zipfile.ZipFile, path: Path | None) -> dict[str, NDArray[Any]]:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise CaseError(f"holds {len(members)} arrays; a case has at most {MAX_MEMBERS}", path=path)
    if (total := sum(member.file_size for member in members)) > MAX_ARRAY_BYTES:
        raise CaseError(f"unpacks to {total} bytes; a case has at most {MAX_ARRAY_BYTES}", path=path)
    arrays: dict[str, NDArray[Any]] = {}
    for member in members:
        if not member.filename.endswith(".npy"):
            raise CaseError(f"holds {member.filename!r}, which is no .npy array", path=path)
        name = member.filename[: -len(".npy")]
        if name in arrays:
            raise CaseError(f"holds two arrays named {name!r}", path=path)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CaseError(f"array {name!r} is packed by method {member.compress_type}; use numpy.savez", path=path)
        with archive.open(member) as stream:
            # One byte more than announced: the sum above was of what the archive says, not of what it holds.
            content = stream.read(member.file_size + 1)
        if len(content) != member.file_size:
            raise CaseError(f"array {name!r} has not the size that the archive announces", path=path)
        arrays[name] = _parse_npy(content, name, path)
    return arrays


def _parse_npy(content: bytes, name: str, path: Path | None) -> NDArray[Any]:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise CaseError(f"array {name!r} has .npy format {version[0]}.{version[1]}", path=path)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # headers written by Python 2
            shape, fortran, dtype = read(stream, max_header_size=_MAX_HEADER)
    except (ValueError, UserWarning) as error:
        raise CaseError(f"array {name!r} has no readable header: {_first_line(error)}", path=path) from None
    if dtype.hasobject:
        raise CaseError(f"array {name!r} holds Python objects; they are never read", path=path)
    if dtype.str not in DTYPES.values():
        kinds = ", ".join(DTYPES)
        raise CaseError(f"array {name!r} is of type {dtype.str}; a case has {kinds}, little-endian", path=path)
    if fortran:
        raise CaseError(f"array {name!r} is in Fortran order; save numpy.ascontiguousarray of it", path=path)
    # Python's integers: a product in NumPy's could wrap round to the size that is there.
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize != len(content) - stream.tell():
        held = len(content) - stream.tell()
        raise CaseError(f"array {name!r} of shape {shape} needs {count * dtype.itemsize} bytes, has {held}", path=path)
    found: NDArray[Any] = np.frombuffer(content, dtype, count, stream.tell()).reshape(shape)
    return found


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
