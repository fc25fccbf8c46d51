"""The words after `--arg` as arguments of a launch: numbers, fills, files."""

from __future__ import annotations

import os
import re
import stat
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.execute.variables import aligned_zeros
from ssmtool.ptx import Variable

# What the driver aligns an allocation to; kernels may count on it.
_ALIGN = 256
_NAMED = re.compile(r"([A-Za-z_$%][\w$]*)=(.*)", re.DOTALL)
_FORMS = (
    "a number, null, @FILE.npy, @FILE.npz:KEY, zeros:SHAPE, ones:SHAPE, full:SHAPE:VALUE, arange:SHAPE, random:SHAPE"
)
_DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
}  # fmt: skip
_LONGEST = 100
"""Characters of an argument that a message repeats."""
_POISON = 0xFF
"""What fills `uninit` buffers: NaN in every float, so that a use of it shows even without the checks."""


@dataclass(frozen=True)
class Value:
    """One argument: what the launch takes, the file it came from, and whether it counts as never written."""

    value: Any
    file: Path | None = None
    uninitialised: bool = False


def parse_values(params: Sequence[Variable], names: Sequence[str], words: Sequence[str]) -> dict[str, Value]:
    """`NAME=VALUE`, or `VALUE` for the first parameter that has none yet, by the parameters' names.

    Raises SsmtoolError for a value that cannot be read. A name that is no parameter's is left for the launch to tell.
    """
    types: dict[str, Variable] = {}
    for param, name in zip(params, names, strict=True):
        types[param.name] = types[name] = param
    found: dict[str, Value] = {}
    for word in words:
        match = _NAMED.fullmatch(word)
        name, text = (match[1], match[2]) if match else (next((each for each in names if each not in found), ""), word)
        if not name:
            raise SsmtoolError(f"--arg {word[:_LONGEST]}: every one of the {len(names)} parameters has a value already")
        if name in found:
            raise SsmtoolError(f"--arg {word[:_LONGEST]}: {name} is given twice")
        found[name] = _value(
            f"--arg {word if len(word) <= _LONGEST else word[:_LONGEST] + '...'}", text, types.get(name), found
        )
    return found


def _value(called: str, text: str, param: Variable | None, before: dict[str, Value]) -> Value:
    if text == "null":
        return Value(None)
    if text.startswith("@"):
        path, array = _from_file(called, text[1:])
        return Value(_placed(called, array), path)
    kind, *fields = text.split(":")
    if fields and kind in ("zeros", "ones", "full", "arange", "random", "uninit"):
        return Value(_filled(called, kind, fields), uninitialised=kind == "uninit")
    if fields and kind == "same":
        if fields[0] not in before:
            raise SsmtoolError(f"{called}: no buffer {fields[0]!r} was given before")
        return Value(before[fields[0]].value)
    if fields and kind == "bytes":
        try:
            return Value(bytes.fromhex(fields[0]))
        except ValueError:
            raise SsmtoolError(f"{called}: {fields[0]!r} is not bytes in hexadecimal") from None
    return Value(_number(called, text, param))


def _number(called: str, text: str, param: Variable | None) -> int | float:
    """A number for a parameter: whole where that is an integer."""
    floating = param is not None and (param.type or "").startswith("f")
    try:
        return float(text) if floating and not text.lower().startswith("0x") else int(text, 0)
    except ValueError:
        pass
    if floating:
        raise SsmtoolError(f"{called}: {text!r} is no number")
    try:
        float(text)
    except ValueError:
        raise SsmtoolError(f"{called}: {text!r} is no value: {_FORMS}") from None
    if param is not None and param.type:
        raise SsmtoolError(f"{called}: {param.name} is an integer (.{param.type}), {text[:_LONGEST]} is none")
    return float(text)


def _filled(called: str, kind: str, fields: list[str]) -> NDArray[Any]:
    """`SHAPE[:VALUE or SEED][:TYPE]` as an array."""
    shape = _shape(called, fields.pop(0))
    dtype = np.dtype("float32")
    if fields and (name := _DTYPES.get(fields[-1], fields[-1])) in _DTYPES.values():
        dtype = np.dtype(name)
        fields.pop()
    array = _room(called, shape, dtype)
    try:
        if kind == "ones":
            array[...] = 1
        elif kind == "full":
            word = fields.pop(0)
            array[...] = dtype.type(int(word, 0) if dtype.kind in "iu" else float(word))
        elif kind == "arange":
            array.reshape(-1)[...] = np.arange(array.size)
        elif kind == "random":
            if dtype.kind != "f":
                raise ValueError("random numbers are normally distributed floats")
            generator = np.random.default_rng(int(fields.pop(0), 0) if fields else 0)
            array[...] = generator.standard_normal(shape)
        elif kind == "uninit":
            array.view(np.uint8)[...] = _POISON
    except IndexError:
        raise SsmtoolError(f"{called}: full:SHAPE:VALUE needs its value") from None
    except (ValueError, OverflowError) as error:
        raise SsmtoolError(f"{called}: {error}") from None
    if fields:
        raise SsmtoolError(f"{called}: {fields[0]!r} is no type; there are: {', '.join(_DTYPES.values())}")
    return array


def _shape(called: str, text: str) -> tuple[int, ...]:
    parts = re.split(r"[x,]", text)
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise SsmtoolError(f"{called}: {text!r} is no shape; write 32x128")
    return tuple(int(part) for part in parts)


def _room(called: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros that lies as the driver's allocations do."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    _affordable(called, size)
    try:
        return aligned_zeros(size, _ALIGN).view(dtype).reshape(shape)
    except (MemoryError, ValueError):
        raise SsmtoolError(f"{called}: there is no memory for {size} bytes") from None


def _affordable(called: str, size: int) -> None:
    """Refuse what this machine cannot hold: the kernel would end it otherwise, not the allocation."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 40
    if size > memory:
        raise SsmtoolError(f"{called}: {size} bytes are more than this machine's memory ({memory})")


def _placed(called: str, array: NDArray[Any]) -> NDArray[Any]:
    """A copy in C order and this machine's byte order, aligned."""
    if array.dtype.hasobject or array.dtype.kind not in "biufcV":
        raise SsmtoolError(f"{called}: an array of {array.dtype} cannot be given to a kernel")
    copy = _room(called, array.shape, array.dtype.newbyteorder("="))
    copy[...] = array
    return copy


def _from_file(called: str, text: str) -> tuple[Path, NDArray[Any]]:
    """The array in FILE.npy, or of a key in FILE.npz."""
    name, colon, key = text.rpartition(":") if not Path(text).exists() else (text, "", "")
    path = Path(name if colon else text)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SsmtoolError("is no file", path=path)
        if zipfile.is_zipfile(path):
            return path, _member(called, path, key)
        if colon:
            raise SsmtoolError(f"is a single array, without a key {key!r}", path=path)
        with path.open("rb") as file:
            return path, _array(file, path.stat().st_size)
    except OSError as error:
        raise SsmtoolError(f"cannot be read: {error.strerror or error}", path=path) from None
    except SsmtoolError:
        raise
    except (Exception, MemoryError) as error:
        # zipfile, zlib and NumPy raise whatever comes for a damaged file.
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise SsmtoolError(f"holds no array that can be read: {said}", path=path) from None


def _member(called: str, path: Path, key: str) -> NDArray[Any]:
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if not key and len(members) == 1:
            key = next(iter(members))
        if key not in members:
            listed = ", ".join(list(members)[:16])
            asked = f"has no array {key!r}" if key else "holds several arrays"
            raise SsmtoolError(f"{asked}; there are: {listed}", path=path, hint=f"@{path}:KEY")
        size = members[key].file_size
        _affordable(called, size)
        with archive.open(members[key]) as file:
            return _array(file, size)


def _array(file: Any, size: int) -> NDArray[Any]:
    """The array of an open .npy. Its header is not believed: an array larger than its file is refused unread."""
    read = np.lib.format
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers that Python 2 wrote
        version = read.read_magic(file)
        header = {(1, 0): read.read_array_header_1_0, (2, 0): read.read_array_header_2_0}.get(version)
        if header is None:
            raise ValueError(f"version {version} of the format is not known")
        shape, _, dtype = header(file)
        declared = dtype.itemsize
        for extent in shape:
            declared *= extent
        if declared > size:
            raise ValueError(f"it should have {declared} bytes, the file has {size}")
        file.seek(0)
        return np.asarray(read.read_array(file, allow_pickle=False))
