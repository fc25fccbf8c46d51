"""A golden case in memory: the launches, the buffers before and after, and how closely they must agree.

`Meta` is the JSON of a file, field by field (docs/vectors.md is its manual); `GoldenCase` joins it to the arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError

FORMAT: Final = "ssmtool-golden-1"

# Bits of every 32-bit element of a poisoned buffer: a quiet NaN that no arithmetic makes (CUDA's is 0x7fffffff, x86's
# 0xffc00000). Elements of other widths repeat or cut its bytes.
POISON = 0x7FC5A5A5

# name in a file -> NumPy's type. Little-endian, whatever the machine.
DTYPES: dict[str, str] = {
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "int8": "|i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
}


class CaseError(SsmtoolError):
    """A file that is no golden case, or one that contradicts itself."""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How far a result may be from what is expected. A limit that is None is no limit; all others must hold.

    `nmse`: sum of squared errors over sum of squared expectations, in each group; `max_rms`: largest error over the
    root mean square of the expectation, in each group; `max_ulp`: largest distance in units in the last place, element
    by element; `atol`: errors up to this are none at all. `exact`: the bits (any NaN equals any NaN).
    """

    nmse: float | None = None
    max_rms: float | None = None
    max_ulp: int | None = None
    atol: float = 0.0
    exact: bool = False

    def __str__(self) -> str:
        if self.exact:
            return "equal bits"
        limits = {"NMSE": self.nmse, "max-abs/RMS": self.max_rms, "ulp": self.max_ulp}
        words = [f"{name} <= {limit:g}" for name, limit in limits.items() if limit is not None]
        return ", ".join(words) + (f" (errors up to {self.atol:.1e} are none)" if self.atol else "")


class Buffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One allocation of device memory.

    `axes` name the dimensions of `shape`. `before`: "given" (array `before.NAME` of the file), "zero", or "poison"
    (never written: every element has the bits POISON). `after`: "expected" (array `after.NAME`), "unchanged", or "any".
    `group`: axes whose every index is compared apart. `nan` and `inf`: how many elements of the expectation are.
    `rows`: only these indices of the first axis are in the file; the others are zero before and not compared after.
    """

    dtype: str = "float32"
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    before: Literal["given", "zero", "poison"]
    after: Literal["expected", "unchanged", "any"]
    policy: str | None = None
    group: tuple[str, ...] = ()
    nan: int = 0
    inf: int = 0
    rows: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        # A default is left out of the file if it is the same object, which it is not in what was unpickled.
        msgspec.structs.force_setattr(self, "dtype", sys.intern(self.dtype))

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of the file's arrays: that of the buffer unless only some rows are in the file."""
        return self.shape if self.rows is None else (len(self.rows), *self.shape[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return prod(self.shape) * np.dtype(DTYPES[self.dtype]).itemsize


class Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One argument of a kernel, `name` as in the C source.

    A buffer (the address of its element number `offset`), a scalar (`type` and `value`), or null (`type` "null").
    """

    name: str
    buffer: str | None = None
    offset: int = 0
    type: str | None = None
    value: int | float | None = None


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One launch: sizes are x, y, z; `shared_bytes` is dynamic shared memory."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    args: tuple[Argument, ...]


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Launches that turn the buffers before into those after. Every run of a case starts from the same buffers."""

    name: str
    launches: tuple[Launch, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """Kernels of this run, each once."""
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Where the numbers come from. `reference` is a hash of the program that computed what is expected."""

    generator: str = ""
    generator_version: int = 0
    seed: str = ""
    reference: str = ""
    note: str = ""


class Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """All of a case but its arrays. `exposes` names the mistakes that must fail it."""

    format: Literal["ssmtool-golden-1"]
    name: str
    title: str
    contract: str
    conventions: dict[str, str | int | float] = {}
    buffers: dict[str, Buffer]
    runs: tuple[Run, ...]
    policies: dict[str, Policy] = {}
    exposes: tuple[str, ...] = ()
    provenance: Provenance = Provenance()


@dataclass(frozen=True)
class GoldenCase:
    """A case with its arrays: `before` of the buffers that are "given", `after` of those that are "expected"."""

    meta: Meta
    before: Mapping[str, NDArray[Any]]
    after: Mapping[str, NDArray[Any]]
    path: Path | None = field(default=None, compare=False)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Every entry that some run launches, each once, in the order of the runs."""
        return tuple(dict.fromkeys(entry for run in self.meta.runs for entry in run.entries))

    @property
    def device_bytes(self) -> int:
        """Device memory that all buffers need together."""
        return sum(buffer.nbytes for buffer in self.meta.buffers.values())

    def policy(self, name: str) -> Policy:
        """The tolerance of the buffer `name`; the bits must be equal where none is asked for."""
        from ssmtool.golden.policies import POLICIES

        chosen = self.meta.buffers[name].policy
        return Policy(exact=True) if chosen is None else {**POLICIES, **self.meta.policies}[chosen]

    def image(self, name: str) -> NDArray[Any]:
        """The buffer `name` before a run: a new array, all rows of it."""
        buffer = self.meta.buffers[name]
        if buffer.before == "poison":
            return poisoned(buffer.shape, buffer.dtype)
        if buffer.before == "given" and buffer.rows is None:
            return self.before[name].copy()
        full = np.zeros(buffer.shape, DTYPES[buffer.dtype])
        if buffer.before == "given":
            full[list(buffer.rows or ())] = self.before[name]
        return full

    def stored_image(self, name: str) -> NDArray[Any]:
        """The buffer `name` before a run, only the rows that the file speaks of: what `expected` is compared with."""
        buffer = self.meta.buffers[name]
        if buffer.before == "given":
            return self.before[name].copy()
        if buffer.before == "zero":
            return np.zeros(buffer.stored_shape, DTYPES[buffer.dtype])
        return poisoned(buffer.stored_shape, buffer.dtype)

    def expected(self, name: str) -> NDArray[Any] | None:
        """The buffer `name` after a run, the rows that the file speaks of; None if anything may be there.

        Elements of an expectation with the bits of POISON must still be poison, where the buffer was before.
        """
        buffer = self.meta.buffers[name]
        if buffer.after == "any":
            return None
        return self.after[name] if buffer.after == "expected" else self.stored_image(name)


def poisoned(shape: tuple[int, ...], dtype: str = "float32") -> NDArray[Any]:
    """A new array whose every element has the poison's bits."""
    kind = np.dtype(DTYPES[dtype])
    one = np.frombuffer((POISON.to_bytes(4, "little") * 2)[: kind.itemsize], kind)
    return np.tile(one, prod(shape)).reshape(shape)


def is_poison(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements have the poison's bits."""
    unsigned = f"<u{array.dtype.itemsize}"
    one = np.frombuffer((POISON.to_bytes(4, "little") * 2)[: array.dtype.itemsize], unsigned)[0]
    found: NDArray[np.bool_] = np.ascontiguousarray(array).view(unsigned) == one
    return found
