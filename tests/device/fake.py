"""The fake driver of `fake_driver.c` with kernels that really run: on the executor, over the "card's" memory."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from ssmtool import ptx
from ssmtool.device.memory import GUARD
from ssmtool.errors import SsmtoolError
from ssmtool.execute import Module

SCALE = """
.version 7.4
.target sm_37
.address_size 64
.visible .entry scale(
    .param .u64 scale_param_0, .param .u64 scale_param_1, .param .f32 scale_param_2, .param .u32 scale_param_3)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %d<6>;
    .reg .f32 %f<4>;
    ld.param.u64 %d0, [scale_param_0];
    ld.param.u64 %d1, [scale_param_1];
    ld.param.f32 %f0, [scale_param_2];
    ld.param.u32 %r0, [scale_param_3];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p ret;
    mul.wide.u32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    ld.global.f32 %f1, [%d4];
    mul.rn.f32 %f2, %f1, %f0;
    st.global.f32 [%d3], %f2;
    ret;
}
"""
CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
)
_CTYPES = {"u32": ctypes.c_uint32, "s32": ctypes.c_int32, "f32": ctypes.c_float, "b32": ctypes.c_uint32}


class FakeDriver:
    """The library, opened; `flips` are (buffer number, byte) whose lowest bit each launch turns afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.flips: list[tuple[int, int]] = []
        self.outside: int | None = None
        self.answers: list[int] = []
        self._library = ctypes.CDLL(str(path))
        self._library.fake_room.argtypes = [ctypes.c_uint64]
        self._library.fake_room.restype = ctypes.c_uint64
        self._callback = CALLBACK(self._launch)
        self._library.fake_on_launch(self._callback)
        self._before = self._count()

    def left(self) -> tuple[int, ...]:
        """Contexts, modules and allocations that were not given back since; a lost card's never are."""
        return tuple(now - before for now, before in zip(self._count(), self._before, strict=True))

    def _count(self) -> tuple[int, ...]:
        words = (ctypes.c_int * 3)()
        self._library.fake_left(words)
        return tuple(words)

    def _launch(self, text: bytes, name: bytes, sizes: Any, arguments: Any) -> int:
        """One launch: 0, or the error that the card would give for a fault."""
        module = ptx.parse(text.decode())
        function = module.function(name.decode())
        assert function is not None
        buffers: list[np.ndarray[Any, Any]] = []
        values: list[Any] = []
        for number, param in enumerate(function.params):
            kind = param.type or ""
            if kind == "u64":
                address = ctypes.cast(arguments[number], ctypes.POINTER(ctypes.c_uint64))[0]
                room = self._library.fake_room(address)
                if not room:
                    values.append(None if address == 0 else address)
                    continue
                pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))
                buffers.append(np.ctypeslib.as_array(pointer, (room - GUARD,)))
                values.append(buffers[-1])
            else:
                values.append(ctypes.cast(arguments[number], ctypes.POINTER(_CTYPES[kind]))[0])
        try:
            Module(module).launch(name.decode(), list(sizes[0:3]), list(sizes[3:6]), values, sizes[6])
        except SsmtoolError:
            return 700
        for number, byte in self.flips:
            buffers[number][byte] ^= 1
        if self.outside is not None:
            after = ctypes.cast(buffers[0].ctypes.data + buffers[0].nbytes, ctypes.POINTER(ctypes.c_uint8))
            after[self.outside] ^= 1
        return self.answers.pop(0) if self.answers else 0
