"""A golden vector as a group: each of its runs is a case, over the vector's own buffers, held to what it expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ssmtool.bench.cases import Call, Case, Group, Part
from ssmtool.errors import SsmtoolError
from ssmtool.golden.case import DTYPES, is_poison
from ssmtool.golden.compare import compare
from ssmtool.verify.loaded import Memory, scalar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ssmtool.golden import Argument, GoldenCase, Run

VECTOR = "vector"
"""The kind of such a group."""


def vector_group(case: GoldenCase, parameters: Mapping[str, Sequence[str]]) -> Group:
    """Each run of `case` whose kernels are all in `parameters` (kernel -> its parameters' names, in order).

    Buffers that a run may change are put back before each. Raises SsmtoolError where no run can be launched, or one
    has not as many arguments as its kernel has parameters.
    """
    meta = case.meta
    group = Group(
        f"{meta.name}: {meta.title}",
        lambda: Memory(case).arrays,
        tuple(name for name, buffer in meta.buffers.items() if buffer.after != "unchanged"),
        VECTOR, 1, 1, 1, unit="element of the outputs", vector=case,
    )  # fmt: skip
    outputs = tuple(name for name, buffer in meta.buffers.items() if buffer.after == "expected")
    rows = max(1, sum(_elements(case, name) for name in outputs))
    for run in meta.runs:
        if all(entry in parameters for entry in run.entries):
            calls = tuple(_call(case, launch, parameters[launch.entry]) for launch in run.launches)
            group.cases.append(Case(_title(run), group.title, calls, outputs, rows, _bytes(case, run)))
    if not group.cases:
        missing = next(entry for entry in case.kernels if entry not in parameters)
        raise SsmtoolError(f"its kernel {missing} is not in this PTX", hint="ssmtool build, or --ptx FILE")
    return group


def right(group: Group, buffers: Mapping[str, NDArray[Any]]) -> bool | None:
    """Whether what a run left is within the vector's tolerances; None for a group that is no vector."""
    return None if group.vector is None else all(result.ok for result in compare(group.vector, buffers))


def judged(group: Group) -> tuple[str, ...]:
    """The buffers that `right` looks at."""
    if group.vector is None:
        return ()
    return tuple(name for name, buffer in group.vector.meta.buffers.items() if buffer.after != "any")


def _title(run: Run) -> str:
    """The run's name, and its kernels where that does not say them."""
    unnamed = [entry for entry in run.entries if entry not in run.name]
    return f"{run.name} ({', '.join(unnamed)})" if unnamed else run.name


def _call(case: GoldenCase, launch: Any, names: Sequence[str]) -> Call:
    if len(names) != len(launch.args):
        raise SsmtoolError(f"it gives {launch.entry} {len(launch.args)} arguments, the kernel has {len(names)}")
    # By position, as verify gives them: a vector's names need not be those of this PTX.
    args = {name: _value(case, argument) for name, argument in zip(names, launch.args, strict=True)}
    return Call(launch.entry, launch.grid, launch.block, launch.shared_bytes, args)


def _value(case: GoldenCase, argument: Argument) -> Any:
    if argument.buffer is None:
        return None if argument.type == "null" else scalar(argument)
    if argument.offset == 0:
        return argument.buffer
    return Part(argument.buffer, argument.offset, np.dtype(DTYPES[case.meta.buffers[argument.buffer].dtype]).itemsize)


def _elements(case: GoldenCase, name: str) -> int:
    """Elements of an output that are written: what must stay poison is none."""
    expected = case.expected(name)
    if expected is None:
        return 0
    stay = is_poison(expected).sum() if case.meta.buffers[name].before == "poison" and expected.size else 0
    return int(expected.size - stay)


def _bytes(case: GoldenCase, run: Run) -> int:
    """What the run must move at most: each buffer of its launches once in, and once out where the vector expects it.

    A buffer that nothing wrote before (poison) is not read; one that may hold anything after is scratch, and counts
    nothing. Of a buffer that is in the file by rows, these rows.
    """
    total = 0
    for name in {argument.buffer for launch in run.launches for argument in launch.args if argument.buffer is not None}:
        buffer = case.meta.buffers[name]
        if buffer.after == "any":
            continue
        size = np.dtype(DTYPES[buffer.dtype]).itemsize
        if buffer.before != "poison":
            total += prod(buffer.stored_shape) * size
        if buffer.after == "expected":
            total += _elements(case, name) * size
    return total
