"""A function of a program beside the package, such as one of `tools/`: workers find it under the same path."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ssmtool.cluster.job import Job, Opened
from ssmtool.errors import SsmtoolError


class Program(Job):
    """Each piece is a tuple of arguments of `function` in `module`, a file of `folder`.

    `needs` are files and folders that it reads; all of them have to be there, as here: on this machine, or on a file
    system that it shares.
    """

    def __init__(self, folder: Path, module: str, function: str, needs: Sequence[Path] = ()) -> None:
        self._folder = folder.resolve()
        self._module = module
        self._function = function
        self._needs = tuple(each.resolve() for each in (folder, *needs))
        self._digest = _digest(self._needs)
        self._call: Callable[..., Any] | None = None

    def open(self, resource: str) -> Opened:
        """Import it. Raises SsmtoolError where the files are not those of who asks."""
        if missing := [each for each in self._needs if not each.exists()]:
            raise SsmtoolError("is not there; workers need it under this path", path=missing[0])
        if _digest(self._needs) != self._digest:
            raise SsmtoolError("holds other files than where the work comes from", path=self._folder)
        if str(self._folder) not in sys.path:
            sys.path.insert(0, str(self._folder))
        self._call = getattr(importlib.import_module(self._module), self._function)
        return Opened()

    def perform(self, resource: str, piece: Any) -> Any:
        """The function's value."""
        assert self._call is not None
        return self._call(*piece)


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                data = file.read_bytes()
                digest.update(f"{file} {len(data)}\n".encode())
                digest.update(data)
    return digest.hexdigest()
