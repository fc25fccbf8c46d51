"""From the arguments of a launch to the parameter bytes a kernel reads, and the buffers it may touch."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute.errors import ArgumentError
from ssmtool.execute.layout import Param
from ssmtool.execute.memory import Buffer, Uninitialised
from ssmtool.execute.scalars import scalar_bytes
from ssmtool.execute.variables import aligned_zeros
from ssmtool.ptx import TYPE_BITS

Arguments = Sequence[Any] | Mapping[str, Any]
Shape = str | Sequence[str] | Sequence[int] | Mapping[str, int]

_POINTERS = ("u64", "b64", "s64")


@dataclass(frozen=True)
class Bound:
    """Parameter bytes as an array, and the buffers among the arguments; `names[i]` is how parameter i is called."""

    data: NDArray[np.uint8]
    buffers: tuple[Buffer, ...]
    names: tuple[str, ...]


def parameter_names(entry: str, params: Sequence[str], source: Sequence[str] = ()) -> tuple[str, ...]:
    """What to call the parameters: by their names in the C source, else in the PTX without the kernel's own name."""
    if source and len(source) != len(params):
        raise ArgumentError(f"{entry} has {len(params)} parameters, but {len(source)} names were given for them")
    return tuple(source) or tuple(name.removeprefix(f"{entry}_") for name in params)


def bind(
    entry: str,
    params: Sequence[Param],
    args: Arguments,
    *,
    source_names: Sequence[str] = (),
    uninitialised: Collection[str | int] = (),
    shapes: Mapping[str, Shape] | None = None,
) -> Bound:
    """Fit `args`, in order or by name, to the parameters.

    Raises ArgumentError for one missing, unknown or of the wrong kind.
    """
    names = parameter_names(entry, [param.name for param in params], source_names)
    values = _in_order(entry, params, names, args)
    if isinstance(uninitialised, str):
        uninitialised = (uninitialised,)  # not its letters
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ArgumentError(f"{entry}: shapes is a dict by the parameters' names")
    fresh = {_index(entry, params, names, each) for each in uninitialised}
    shown = {_index(entry, params, names, name): shape for name, shape in (shapes or {}).items()}
    size = max((param.offset + param.bytes for param in params), default=0)
    data = aligned_zeros(max(size, 1), 16)
    buffers = []
    for index, (param, name, value) in enumerate(zip(params, names, values, strict=True)):
        called = f"{entry}: parameter {name} (.{param.type or 'b8'}{_struct(param)})"
        place = slice(param.offset, param.offset + param.bytes)
        array = value.array if isinstance(value, Uninitialised) else value
        if isinstance(array, np.ndarray) and not _by_value(param, array):
            if param.type not in _POINTERS or param.bytes != 8:
                hint = f"{name}.item()" if array.ndim == 0 else None
                raise ArgumentError(f"{called} takes no buffer, and an array was given", hint=hint)
            buffer = make_buffer(called, name, value, fresh=index in fresh, shape=shown.get(index))
            buffers.append(buffer)
            word = buffer.base.to_bytes(8, "little")
        elif index in fresh or index in shown:
            raise ArgumentError(f"{called} was given no array, so it has no shape and cannot be uninitialised")
        elif value is None:
            if param.type not in _POINTERS or param.bytes != 8:
                raise ArgumentError(f"{called} is no pointer, so it cannot be None")
            word = bytes(8)
        else:
            try:
                given = value.tobytes() if isinstance(value, np.ndarray) else value
                word = scalar_bytes(given, param.type, param.bytes)
            except ValueError as error:
                raise ArgumentError(f"{called}: {error}") from None
        data[place] = np.frombuffer(word, np.uint8)
    return Bound(data, tuple(buffers), names)


def make_buffer(
    called: str, name: str, value: NDArray[Any] | Uninitialised, *, fresh: bool = False, shape: Shape | None = None
) -> Buffer:
    """An array as a buffer. Raises ArgumentError for one that a kernel cannot be given as it lies."""
    unwritten = value if isinstance(value, Uninitialised) else None
    array = value.array if isinstance(value, Uninitialised) else value
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{called}: a {type(array).__name__} is no NumPy array")
    if array.dtype.hasobject or array.dtype.kind in "SUMm":
        raise ArgumentError(f"{called}: an array of {array.dtype} cannot be given to a kernel")
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(f"{called}: a masked array cannot be given to a kernel", hint=f"{name}.filled(0)")
    if not array.dtype.isnative:
        raise ArgumentError(
            f"{called}: the array's byte order is not this machine's",
            hint=f'{name}.astype({name}.dtype.newbyteorder("="))',
        )
    if not array.flags.c_contiguous:
        raise ArgumentError(
            f"{called}: the array's elements do not lie one after the other in C order (strides {array.strides})",
            hint=f"{name} = np.ascontiguousarray({name}), and copy the result back",
        )
    if fresh and unwritten is None:
        unwritten = Uninitialised(array)
    extents, axes = _shape(called, array, shape)
    # What has no bytes may lie anywhere but at null, which kernels take for an argument that was left out.
    base = int(array.ctypes.data) or 256
    return Buffer(name, array, base, extents, axes, not array.flags.writeable, unwritten)


def _shape(called: str, array: NDArray[Any], shape: Shape | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Extents and names of the axes that an array's places are told in."""
    if shape is None:
        return array.shape or (1,), ()
    unfit = ArgumentError(f"{called}: the shape {shape!r} does not fit an array of shape {array.shape}")
    axes: tuple[str, ...] = ()
    extents = array.shape
    try:
        if isinstance(shape, Mapping):
            axes, extents = tuple(map(str, shape)), tuple(int(extent) for extent in shape.values())
        elif all(isinstance(each, str) for each in shape):
            axes = (shape,) if isinstance(shape, str) else tuple(map(str, shape))
        else:
            extents = tuple(int(extent) for extent in shape)
    except (TypeError, ValueError):
        raise unfit from None
    if (axes and len(axes) != len(extents)) or math.prod(extents) != array.size:
        raise unfit
    return extents, axes


def _by_value(param: Param, array: NDArray[Any]) -> bool:
    """Whether an array is a struct passed by value: the parameter is an array of bytes of just its size."""
    return param.type not in _POINTERS and param.bytes == array.nbytes and _struct(param) != ""


def _struct(param: Param) -> str:
    """`[16]` for an array parameter."""
    size = max(1, TYPE_BITS.get(param.type or "b8", 8) // 8)
    return f"[{param.bytes // size}]" if param.bytes != size else ""


def _in_order(entry: str, params: Sequence[Param], names: Sequence[str], args: Arguments) -> list[Any]:
    """The arguments in the order of the parameters."""
    if not isinstance(args, Mapping):
        if isinstance(args, (str, bytes, np.ndarray)) or not isinstance(args, Sequence):
            raise ArgumentError(f"{entry}: the arguments are a list in the parameters' order, or a dict by name")
        if len(args) < len(params):
            missing = ", ".join(names[len(args) :])
            raise ArgumentError(f"{entry} takes {len(params)} arguments, {len(args)} were given; missing: {missing}")
        if len(args) > len(params):
            raise ArgumentError(f"{entry} takes {len(params)} arguments, {len(args)} were given: {', '.join(names)}")
        return list(args)
    values: dict[int, Any] = {}
    for name, value in args.items():
        index = _index(entry, params, names, name)
        if index in values:
            raise ArgumentError(f"{entry}: parameter {names[index]} is given twice")
        values[index] = value
    missing = ", ".join(name for index, name in enumerate(names) if index not in values)
    if missing:
        raise ArgumentError(f"{entry} takes {len(params)} arguments, {len(values)} were given; missing: {missing}")
    return [values[index] for index in range(len(params))]


def _index(entry: str, params: Sequence[Param], names: Sequence[str], name: str | int) -> int:
    """The parameter of a name (in C, in the PTX, or `param_3`) or number."""
    if isinstance(name, int):
        if not 0 <= name < len(params):
            raise ArgumentError(f"{entry} has no parameter number {name}: it takes {len(params)}")
        return name
    if not isinstance(name, str):
        raise ArgumentError(f"{entry}: {name!r} is neither a parameter's name nor its number")
    spellings: dict[str, int] = {}
    for index, param in enumerate(params):
        spellings.setdefault(param.name.removeprefix(f"{entry}_"), index)
        spellings[param.name] = index
    # A name of the C source wins over all others.
    spellings.update({each: index for index, each in enumerate(names)})
    if name in spellings:
        return spellings[name]
    close = difflib.get_close_matches(name, spellings, 1)
    meant = f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(names) or 'none'}"
    raise ArgumentError(f"{entry} has no parameter {name!r}{meant}")
