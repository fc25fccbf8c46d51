"""A launch as the reference sees it: arguments by the contract's names, buffers as arrays of the contract's shapes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import Argument, CaseError, Launch

Array = NDArray[Any]


class Bound:
    """One launch on `memory` (buffer name to flat array), its arguments named by `parameters`, in order."""

    def __init__(self, launch: Launch, parameters: tuple[str, ...], memory: dict[str, Array]) -> None:
        self.where = launch.entry
        if len(launch.args) != len(parameters):
            raise CaseError(
                f"{launch.entry} has {len(parameters)} parameters ({', '.join(parameters)}), "
                f"the launch gives {len(launch.args)} arguments"
            )
        self.grid, self.block = launch.grid, launch.block
        self._arguments: dict[str, Argument] = dict(zip(parameters, launch.args, strict=True))
        self._memory = memory

    def array(self, name: str, *shape: int) -> Array:
        """The buffer from where the argument points to, in this shape; a view: what is stored in it stays."""
        found = self.room(name)
        if prod(shape) > found.size:
            raise CaseError(
                f"{self.where}: {name} needs {' x '.join(map(str, shape))} elements, its buffer has {found.size} left"
            )
        return found[: prod(shape)].reshape(shape)

    def room(self, name: str) -> Array:
        """All elements from where the argument points to the buffer's end."""
        argument = self._arguments[name]
        if argument.buffer is None:
            raise CaseError(f"{self.where}: {name} is no buffer")
        return self._memory[argument.buffer][argument.offset :]

    def is_null(self, name: str) -> bool:
        """Whether a null pointer was given."""
        return self._arguments[name].type == "null"

    def int(self, name: str) -> int:
        """An integer argument."""
        value = self._arguments[name].value
        if not isinstance(value, int):
            raise CaseError(f"{self.where}: {name} is no integer")
        return value

    def float(self, name: str) -> Any:
        """A floating-point argument, as fp32 has it, in the type of the arithmetic."""
        value = self._arguments[name].value
        if value is None or self._arguments[name].type != "float32":
            raise CaseError(f"{self.where}: {name} is no float32")
        kind = next(iter(self._memory.values())).dtype
        return kind.type(np.float32(value))
