"""The shape of a launch, and what sm_37 and the kernel's own directives allow."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from ssmtool.execute.errors import LaunchError
from ssmtool.execute.layout import KernelFacts
from ssmtool.ptx import Function

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 3.x.
MOST_GRID = ((1 << 31) - 1, 65535, 65535)
MOST_BLOCK = (1024, 1024, 64)
MOST_THREADS = 1024
MOST_SHARED = 48 << 10
MOST_LOCAL = 512 << 10
"""Bytes of a thread."""

Triple = tuple[int, int, int]


def grid_shape(grid: int | Sequence[int]) -> Triple:
    """The grid's three extents. Raises LaunchError for one that a launch cannot have."""
    return _checked("grid", grid, MOST_GRID)


def block_shape(function: Function, block: int | Sequence[int]) -> Triple:
    """The block's three extents. Raises LaunchError for one that sm_37 or the kernel does not allow."""
    shape = _checked("block", block, MOST_BLOCK)
    threads = shape[0] * shape[1] * shape[2]
    if threads > MOST_THREADS:
        raise LaunchError(f"a block of {_times(shape)} has {threads} threads; sm_37 allows {MOST_THREADS}")
    required = function.directive("reqntid")
    if required is not None:
        needed = _three(required.numbers)
        if shape != needed:
            raise LaunchError(
                f"{function.name} is compiled for blocks of {_times(needed)} (.reqntid), not of {_times(shape)}"
            )
    largest = function.directive("maxntid")
    if largest is not None:
        x, y, z = _three(largest.numbers)
        if threads > x * y * z:
            raise LaunchError(
                f"{function.name} allows {x * y * z} threads a block (.maxntid), the block of {_times(shape)} has"
                f" {threads}"
            )
    return shape


def check_local(facts: KernelFacts) -> None:
    """Raise LaunchError for a kernel whose threads have more local memory than sm_37 gives them."""
    if facts.local_bytes > MOST_LOCAL:
        raise LaunchError(
            f"{facts.entry} uses {facts.local_bytes} bytes of local memory a thread; sm_37 allows {MOST_LOCAL}"
        )


def check_shared(facts: KernelFacts, dynamic: int) -> int:
    """Bytes of shared memory of one block. Raises LaunchError for more than sm_37 has."""
    try:
        size = operator.index(dynamic)
    except TypeError:
        raise LaunchError(f"shared_bytes is {dynamic!r}; it is a number of bytes") from None
    if size < 0:
        raise LaunchError(f"shared_bytes is {size}; it is at least 0")
    total = max(facts.static_shared, facts.dynamic_offset + size) if size else facts.static_shared
    if total > MOST_SHARED:
        raise LaunchError(
            f"{facts.entry} would use {total} bytes of shared memory a block, {facts.static_shared} static and {size}"
            f" dynamic; sm_37 allows {MOST_SHARED}"
        )
    return total


def count_of(what: str, number: int) -> int:
    """A number of threads or rounds, at least 1; as good as endless from 2^62 on. Raises LaunchError."""
    try:
        count = 0 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        count = 0
    if count < 1:
        raise LaunchError(f"{what} is {number!r}; it is a whole number, at least 1")
    return min(count, 1 << 62)


def _checked(what: str, extents: int | Sequence[int], most: Triple) -> Triple:
    try:
        given: list[int] = list(extents)  # type: ignore[arg-type]
    except TypeError:  # a single number, of Python or NumPy
        given = [extents]  # type: ignore[list-item]
    if isinstance(extents, (str, bytes)) or not 1 <= len(given) <= 3:
        raise LaunchError(f"{what} is {extents!r}; it is one to three numbers")
    try:
        shape = _three([operator.index(each) for each in given])
    except TypeError:
        raise LaunchError(f"{what} is {extents!r}; its extents are whole numbers") from None
    for axis, extent, limit in zip("xyz", shape, most, strict=True):
        if extent < 1:
            raise LaunchError(f"{what} {axis} is {extent}; it is at least 1")
        if extent > limit:
            raise LaunchError(f"{what} {axis} is {extent}; sm_37 allows {limit}")
    return shape


def _three(numbers: Sequence[int]) -> Triple:
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z


def _times(shape: Triple) -> str:
    return " x ".join(map(str, shape))
