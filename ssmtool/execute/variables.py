"""The `.global` and `.const` variables of a module: placed once, as a GPU does when it loads the module."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute.errors import LaunchError
from ssmtool.execute.memory import Buffer
from ssmtool.ptx import Module, Variable
from ssmtool.ptx.initialisers import Relocation, initial_value

# Places are as far apart, and as aligned, as an allocation of the driver; a small overrun ends in no variable.
_APART = 256

_TYPES = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def aligned_zeros(size: int, alignment: int) -> NDArray[np.uint8]:
    """`size` zero bytes whose address is a multiple of `alignment`."""
    room = np.zeros(size + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size]


class Variables:
    """Memory of a module's variables.

    Raises PtxSyntaxError for an initialiser that is malformed, LaunchError when there is no room for them.
    """

    def __init__(self, module: Module) -> None:
        placed = [each for each in module.variables if each.space in ("global", "const")]
        offsets: dict[str, int] = {}
        total = 0
        for each in placed:
            total = -(-total // (apart := max(_APART, each.alignment))) * apart
            offsets[each.name] = total
            total += each.size + _APART
        try:
            memory = aligned_zeros(max(total, 1), max([_APART, *(each.alignment for each in placed)]))
        except (MemoryError, ValueError):
            raise LaunchError(f"there is no memory for the {total} bytes of the module's variables") from None
        self._base = memory.ctypes.data
        self._offsets = offsets
        outside = "it is .extern, and this PTX does not define it"
        self._missing = {each.name: outside for each in placed if each.linkage == "extern"}
        self.buffers: dict[str, Buffer] = {}
        for each in placed:
            start = offsets[each.name]
            relocations: tuple[Relocation, ...] = ()
            if each.initial is not None:  # zeros are there already, and take no memory until they are touched
                initial = initial_value(module.source, each)
                memory[start : start + each.size] = np.frombuffer(initial.data, np.uint8)
                relocations = initial.relocations
            for relocation in relocations:
                if relocation.symbol not in offsets:
                    self._missing[each.name] = f"it holds the address of {relocation.symbol}, which has none here"
                    continue
                value = self._base + offsets[relocation.symbol] + relocation.addend >> relocation.shift
                at = start + relocation.offset
                word = (value % (1 << 8 * relocation.width)).to_bytes(relocation.width, "little")
                memory[at : at + relocation.width] = np.frombuffer(word, np.uint8)
            array = _typed(memory[start : start + each.size], each)
            self.buffers[each.name] = Buffer(
                each.name, array, self._base + start, array.shape, read_only=each.space == "const"
            )

    def address(self, name: str) -> int:
        """Where a variable lies. Raises LaunchError for one that this module only names."""
        if name in self._missing:
            raise LaunchError(f"the kernel uses the variable {name}, but {self._missing[name]}")
        if name not in self._offsets:
            raise LaunchError(f"the kernel uses {name}, which is no .global or .const variable of this PTX")
        return self._base + self._offsets[name]

    def view(self, name: str) -> NDArray[Any] | None:
        """The variable as an array of its own type and shape; None when there is none of that name."""
        buffer = self.buffers.get(name)
        return None if buffer is None else buffer.array


def _typed(memory: NDArray[np.uint8], variable: Variable) -> NDArray[Any]:
    """Bytes as elements of the variable's type; types that NumPy lacks stay bytes."""
    dtype = _TYPES.get(variable.type or "b8")
    if dtype is None or variable.size == 0:
        return memory
    shape = [length or 0 for length in variable.dims]
    if variable.vector > 1:
        shape.append(variable.vector)
    return memory.view(dtype).reshape(shape or [1])
