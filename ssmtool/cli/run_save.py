"""Where `ssmtool run --save` puts a launch's buffers: whole files or none, and none of those that were read."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.files import write_atomic

# The earliest time a zip can tell: the same buffers make the same file.
_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class SavePlan:
    """(buffer's name, file) in order; the name is None where all go into one file."""

    targets: tuple[tuple[str | None, Path], ...]

    def check(self, buffers: Mapping[str, NDArray[Any]]) -> None:
        """Raise SsmtoolError for a name that is no buffer's."""
        for name, _ in self.targets:
            if name is not None and name not in buffers:
                raise SsmtoolError(f"--save {name}=: no buffer {name}; there are: {', '.join(buffers) or 'none'}")

    def write(self, buffers: Mapping[str, NDArray[Any]]) -> list[Path]:
        """Write; the files written. Raises SsmtoolError when one cannot be."""
        for name, path in self.targets:
            write_atomic(path, _npz(buffers) if name is None else _npy(buffers[name]))
        return [path for _, path in self.targets]


def save_plan(words: Sequence[str], read: Sequence[Path], *, force: bool) -> SavePlan:
    """Read `FILE.npz` and `NAME=FILE.npy`. Raises SsmtoolError before anything has run for one that cannot be done."""
    targets: list[tuple[str | None, Path]] = []
    for word in words:
        name, equals, file = word.partition("=")
        path = Path(file if equals else word)
        if path.suffix != (".npy" if equals else ".npz"):
            raise SsmtoolError(f"--save {word}: expected FILE.npz for all buffers, or NAME=FILE.npy for one")
        if not force and any(_same(path, each) for each in read):
            raise SsmtoolError(f"--save {word}: {path} was read by this command", hint="--force replaces it")
        if any(os.path.realpath(path) == os.path.realpath(each) for _, each in targets):
            raise SsmtoolError(f"--save {word}: {path} is named twice")
        _check_place(word, path)
        targets.append((name if equals else None, path))
    return SavePlan(tuple(targets))


def _check_place(word: str, path: Path) -> None:
    """Refuse what is known to fail before a launch that may take long: a folder's name, a folder that is closed."""
    try:
        if path.is_dir():
            raise SsmtoolError(f"--save {word}: {path} is a folder, not a file")
        folder = next(each for each in path.absolute().parents if each.exists())
    except OSError as error:
        raise SsmtoolError(f"--save {word}: {error.strerror or error}") from None
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise SsmtoolError(f"--save {word}: nothing can be written in {folder}")


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _npy(array: NDArray[Any]) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, allow_pickle=False)
    return data.getvalue()


def _npz(buffers: Mapping[str, NDArray[Any]]) -> bytes:
    """As np.savez, whose arrays cannot have the name of its own parameter, `file`."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", allowZip64=True) as archive:
        for name, array in buffers.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _TIME), _npy(array))
    return data.getvalue()
