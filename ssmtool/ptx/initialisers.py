"""The bytes a `.global` or `.const` variable starts with, and the addresses to be filled in when it is placed."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ssmtool.ptx.declarations import Variable
from ssmtool.ptx.expressions import Cursor
from ssmtool.ptx.operands import Immediate
from ssmtool.ptx.source import SourceText


@dataclass(frozen=True, slots=True)
class Relocation:
    """`width` bytes at `offset` hold the address of `symbol` plus `addend`, shifted right by `shift` bits.

    `generic` says that the generic address is meant, not the one within the symbol's own space. Shifts other than 0
    come from `mask()` operands such as `0xFF00(symbol)`, which spell an address byte by byte.
    """

    offset: int
    width: int
    symbol: str
    addend: int
    generic: bool
    shift: int


@dataclass(frozen=True, slots=True)
class Initial:
    """`data` is `Variable.size` bytes, zero where nothing was written."""

    data: bytes
    relocations: tuple[Relocation, ...]


def initial_value(source: SourceText, variable: Variable) -> Initial:
    """What a variable starts with: all zero without an initialiser; PtxSyntaxError when it is malformed."""
    data = bytearray(variable.size)
    if variable.initial is None:
        return Initial(bytes(data), ())
    reader = _Reader(source, variable, data)
    reader.read()
    return Initial(bytes(data), tuple(reader.relocations))


class _Reader:
    def __init__(self, source: SourceText, variable: Variable, data: bytearray) -> None:
        assert variable.initial is not None
        self.source = source
        self.variable = variable
        self.data = data
        self.relocations: list[Relocation] = []
        self.width = max(1, variable.element_size // variable.vector)
        self.cursor = Cursor(source, *variable.initial)

    def read(self) -> None:
        shape = [length or 0 for length in self.variable.dims]
        if self.variable.vector > 1:
            shape.append(self.variable.vector)
        if self.cursor.at("{"):
            self._list(shape, 0, len(self.data))
        else:
            self._value(0)
        if self.cursor.kind != "end":
            raise self.cursor.unexpected("the end of the initialiser")

    def _list(self, shape: list[int], start: int, end: int) -> None:
        """A braced list that fills [start, end); a nested list starts at the next whole row."""
        self.cursor.expect("{")
        row = self.width
        for length in shape[1:]:
            row *= length
        at = start
        while not self.cursor.at("}"):
            if self.cursor.at("{"):
                if len(shape) < 2:
                    raise self.cursor.unexpected("a value: the variable has fewer dimensions")
                at = start + -(-(at - start) // row) * row if row else at
                if at + row > end:
                    raise self.cursor.unexpected("'}': the initialiser has too many rows")
                self._list(shape[1:], at, at + row)
                at += row
            else:
                if at + self.width > end:
                    raise self.cursor.unexpected("'}': the initialiser has too many values")
                self._value(at)
                at += self.width
            if not self.cursor.take(","):
                break
        self.cursor.expect("}")

    def _value(self, at: int) -> None:
        cursor = self.cursor
        if cursor.kind == "name" and cursor.text != "WARP_SZ":
            self._address(at, 0, self.width)
            return
        value = cursor.constant()
        if cursor.at("("):  # 0xFF00(symbol): the byte of the address that the mask covers
            mask = value.value
            shift = (mask & -mask).bit_length() - 1
            if value.kind != "int" or mask <= 0 or mask >> shift != 0xFF or shift % 8:
                raise cursor.unexpected("',': only masks of one byte are known here")
            cursor.advance()
            self._address(at, shift, 1)
            cursor.expect(")")
            return
        self.data[at : at + self.width] = self._encode(value)

    def _address(self, at: int, shift: int, width: int) -> None:
        cursor = self.cursor
        generic = cursor.text == "generic"
        if generic:
            cursor.advance()
            cursor.expect("(")
        if cursor.kind != "name":
            raise cursor.unexpected("the name of a variable or function")
        symbol = cursor.text
        cursor.advance()
        addend = self._addend()
        if generic:
            cursor.expect(")")
            addend += self._addend()
        self.relocations.append(Relocation(at, width, symbol, addend, generic, shift))

    def _addend(self) -> int:
        total = 0
        while self.cursor.at("+") or self.cursor.at("-"):
            sign = -1 if self.cursor.at("-") else 1
            self.cursor.advance()
            total += sign * self.cursor.constant(10).value
        return total

    def _encode(self, value: Immediate) -> bytes:
        kind = self.variable.type or "b8"
        if kind in ("f32", "f64") or value.kind != "int":
            size = self.width
            if value.kind == "f32" and size == 4:
                return value.value.to_bytes(4, "little")
            if value.kind == "f64" and size == 8:
                return value.value.to_bytes(8, "little")
            try:
                return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], float(value.number))
            except (KeyError, OverflowError):
                raise self.cursor.unexpected(f"a value that fits .{kind}, before this") from None
        return (value.value % (1 << (8 * self.width))).to_bytes(self.width, "little")
