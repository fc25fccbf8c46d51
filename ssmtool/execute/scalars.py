"""Scalars of Python and NumPy as the bytes of a kernel's parameter."""

from __future__ import annotations

import operator
import struct
from typing import Any

import numpy as np

from ssmtool.ptx import TYPE_BITS

_PACK = {"f16": "<e", "f32": "<f", "f64": "<d"}


def scalar_bytes(value: Any, kind: str | None, size: int) -> bytes:
    """`value` as the `size` bytes of a parameter of PTX type `kind`. Raises ValueError, saying what is wrong.

    bytes, and NumPy values whose type is exactly the parameter's, are taken bit by bit, NaNs included. An integer
    fits when it fits the width as signed or as unsigned: compilers declare C's `int` as `.u32`. A float is rounded
    to the parameter's precision, and never becomes an integer.
    """
    bits = TYPE_BITS.get(kind or "b8", 8)
    if isinstance(value, (bytes, bytearray, memoryview, np.void)):
        data = bytes(value) if not isinstance(value, np.void) else value.tobytes()
        if len(data) != size:
            raise ValueError(f"{len(data)} bytes were given, the parameter has {size}")
        return data
    if size * 8 != bits:
        raise ValueError(f"the parameter is a struct of {size} bytes: give bytes or a NumPy array of that size")
    assert kind is not None
    if isinstance(value, np.floating) and value.dtype.itemsize == size and kind[0] in "fb":
        return bytes(value.tobytes())
    if kind in _PACK:
        return _float_bytes(value, kind)
    return _integer_bytes(value, kind, bits)


def _float_bytes(value: Any, kind: str) -> bytes:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{_shown(value)} is no number for .{kind}")
    try:
        return struct.pack(_PACK[kind], float(value))
    except OverflowError:
        raise ValueError(f"{_shown(value)} is beyond the range of .{kind}") from None


def _integer_bytes(value: Any, kind: str, bits: int) -> bytes:
    if isinstance(value, (float, np.floating)):
        hint = f"; np.float{bits}(...) gives its bits" if kind[0] == "b" and bits in (16, 32, 64) else ""
        raise ValueError(f"{_shown(value)} is a float, the parameter is an integer (.{kind}){hint}")
    try:
        number = operator.index(value.item() if isinstance(value, np.bool_) else value)
    except TypeError:
        raise ValueError(f"{_shown(value)} is no integer for .{kind}") from None
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise ValueError(f"{number} does not fit the {bits} bits of .{kind}")
    return (number % (1 << bits)).to_bytes(bits // 8, "little")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"
