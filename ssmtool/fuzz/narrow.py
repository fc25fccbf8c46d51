"""A failing case cut down to the one head, user, channel, element or position that is wrong.

Axes have names, so that the same cut goes through every buffer, the scalars that count the axis, and the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.judge import same
from ssmtool.golden import Argument, Buffer, GoldenCase, Launch

Array = NDArray[Any]

# Family of kernels by a part of its name -> axis -> (scalars that count it, which of the grid's sizes does, x is 0).
# A grid that covers elements by blocks is cut to one block.
_BLOCKS = "blocks"
_AXES: dict[str, dict[str, tuple[tuple[str, ...], int | str | None]]] = {
    "fc_ssm_recurrence": {"h": (("n_v_heads",), 1), "user": ((), 2), "t": ((), None)},
    "fc_ssm_conv1d_silu": {"c": (("conv_dim",), _BLOCKS), "user": ((), 1), "t": ((), None)},
    "fc_ssm_gated_norm": {"h": ((), 0)},
    "fc_sigmoid": {"i": (("n",), _BLOCKS)},
    "fc_ssm_decay_gate_nx": {"h": (("n_heads",), _BLOCKS), "t": ((), _BLOCKS)},
    "fc_ssm_decay_gate": {"h": (("n",), _BLOCKS)},
    "fc_ssm_qknorm_gqa_nx": {"t": ((), 1)},
}


def narrowed(failure: Failure) -> Iterator[GoldenCase]:
    """Cases of the failing run with one index of one axis, that of a wrong element. None after a fault."""
    case, run = failure.case, failure.run
    if case is None or run is None or not failure.after or len(run.launches) != 1:
        return
    launch = run.launches[0]
    table = next((axes for name, axes in _AXES.items() if launch.entry.startswith(name)), {})
    name = failure.kind.where
    if name not in failure.want:
        return
    buffer = case.meta.buffers[name]
    for element in _wrong(failure.after[name], failure.want[name]):
        index = dict(zip(buffer.axes, element, strict=True))
        for axis, (scalars, extent) in table.items():
            at = index.get(axis)
            length = max((b.shape[b.axes.index(axis)] for b in case.meta.buffers.values() if axis in b.axes), default=1)
            if at is not None and length > 1:
                yield _cut(case, launch, axis, at, scalars, extent)


def _wrong(got: Array, want: Array) -> list[list[int]]:
    """The first and the last wrong element, and of those that are not finite the first."""
    wrong = ~same(got, want)
    found = np.argwhere(wrong).tolist()
    odd = np.argwhere(wrong & ~(np.isfinite(got) & np.isfinite(want))).tolist() if got.dtype.kind == "f" else []
    chosen: list[list[int]] = []
    for each in (*odd[:1], *found[:1], *found[-1:]):
        if each not in chosen:
            chosen.append(each)
    return chosen


def _cut(
    case: GoldenCase, launch: Launch, axis: str, at: int, scalars: tuple[str, ...], extent: int | str | None
) -> GoldenCase:
    buffers, before = {}, {}
    for name, buffer in case.meta.buffers.items():
        place = buffer.axes.index(axis) if axis in buffer.axes else None
        held = case.before.get(name)
        if place is None:
            buffers[name] = buffer
        else:
            at_here = min(at, buffer.shape[place] - 1)
            shape = tuple(1 if number == place else size for number, size in enumerate(buffer.shape))
            buffers[name] = msgspec.structs.replace(buffer, shape=shape)
            held = None if held is None else np.ascontiguousarray(np.take(held, [at_here], axis=place))
        if held is not None:
            before[name] = held
    args = tuple(_argument(each, case.meta.buffers, buffers, scalars) for each in launch.args)
    args = tuple(_counted(each, launch, buffers) for each in args)
    grid = list(launch.grid)
    if extent == _BLOCKS:
        grid[0] = 1
    elif isinstance(extent, int):
        grid[extent] = 1
    cut = msgspec.structs.replace(launch, grid=tuple(grid), args=args)
    sizes = {axis: size for buffer in buffers.values() for axis, size in zip(buffer.axes, buffer.shape, strict=True)}
    words = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
    run = msgspec.structs.replace(case.meta.runs[0], launches=(cut,))
    return replace(
        case, meta=msgspec.structs.replace(case.meta, title=words, buffers=buffers, runs=(run,)), before=before
    )


def _argument(argument: Argument, old: dict[str, Buffer], new: dict[str, Buffer], scalars: tuple[str, ...]) -> Argument:
    """The argument with its count, or with its buffer's offset in the shape that is left."""
    if argument.name in scalars:
        return msgspec.structs.replace(argument, value=1)
    if argument.buffer is None or argument.offset == 0:
        return argument
    index = np.unravel_index(argument.offset, old[argument.buffer].shape)
    shape = new[argument.buffer].shape
    inside = [min(int(at), size - 1) for at, size in zip(index, shape, strict=True)]
    offset = int(np.ravel_multi_index(inside, shape)) if prod(shape) > 1 else 0
    return msgspec.structs.replace(argument, offset=offset)


def _counted(argument: Argument, launch: Launch, buffers: dict[str, Buffer]) -> Argument:
    """Counts that follow from shapes: the total of kernel 14, and n of the kernels over positions."""
    if argument.name == "total" and argument.value:
        return msgspec.structs.replace(argument, value=prod(buffers["alpha"].shape))
    if argument.name == "n" and launch.entry.startswith("fc_ssm") and "seq" in launch.entry and argument.value:
        source = "q" if "q" in buffers else "qkv"
        return msgspec.structs.replace(argument, value=min(int(argument.value), buffers[source].shape[0]))
    return argument
