"""From the text of an instruction's operands to the dataclasses of `operands`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ssmtool.ptx.expressions import Cursor
from ssmtool.ptx.operands import (
    Address,
    Group,
    Label,
    Negated,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
    is_special,
)
from ssmtool.ptx.registers import Scope
from ssmtool.ptx.source import SourceText

_SINK = Sink()
_PLAIN_NAME = re.compile(r"%?[A-Za-z_$][\w$]*")
_NOT_NAMES = frozenset(("_", "WARP_SZ"))


class OperandParser:
    """Parses the operands of one function; equal texts in one scope are parsed once and give the same object."""

    __slots__ = ("_cache", "_scopes", "_source")

    def __init__(self, source: SourceText, scopes: Sequence[Scope]) -> None:
        self._source = source
        self._scopes = scopes
        self._cache: dict[int, dict[str, Operand]] = {}

    def parse(self, start: int, end: int, scope: int, is_call: bool) -> tuple[Operand, ...]:
        """The operands in `code[start:end]`; PtxSyntaxError, with line and column, when they cannot be read."""
        text = self._source.code[start:end]
        if "{" not in text and "(" not in text:
            simple = self._simple(text, start, scope, is_call)
            if simple is not None:
                return simple
        cursor = Cursor(self._source, start, end)
        if cursor.kind == "end":
            return ()
        result = [self._operand(cursor, scope, is_call, 0)]
        while cursor.kind != "end":
            cursor.expect(",")
            result.append(self._operand(cursor, scope, is_call, 0))
        return tuple(result)

    def _simple(self, text: str, start: int, scope: int, is_call: bool) -> tuple[Operand, ...] | None:
        """Operands that commas alone part, each looked up by its text first; None where that is not so."""
        cache = self._cache.setdefault(scope, {})
        result: list[Operand] = []
        for piece in text.split(","):
            word = piece.strip()
            operand = cache.get(word)
            if operand is None:
                if not word or ("[" in word) != ("]" in word):
                    return None  # no operands, a fault to be placed, or a comma inside an address
                if _PLAIN_NAME.fullmatch(word) and word not in _NOT_NAMES:
                    operand = self.resolve(word, scope)
                else:
                    cursor = Cursor(self._source, start, start + len(piece))
                    operand = self._operand(cursor, scope, is_call, 0)
                    if cursor.kind != "end":
                        raise cursor.unexpected("','")
                cache[word] = operand
            result.append(operand)
            start += len(piece) + 1
        return tuple(result)

    def resolve(self, name: str, scope: int) -> Register | Symbol | Label:
        """What a name means in a scope: the innermost register, variable or label of that name."""
        stem, _, selector = name.partition(".")
        at = scope
        while at >= 0:
            table = self._scopes[at]
            if table.register(stem) is not None:
                return Register(stem, at, selector or None)
            if not selector and name in table.variables:
                return Symbol(name, at)
            if not selector and name in table.labels:
                return Label(name, table.labels[name])
            at = table.parent
        if name[0] == "%":
            # Not declared: a special register (whose `.x` is part of its name), or a slip that a check reports.
            return Register(name) if is_special(name) else Register(stem, 0, selector or None)
        return Symbol(name)

    def _operand(self, cursor: Cursor, scope: int, is_call: bool, depth: int) -> Operand:
        first = self._single(cursor, scope, is_call, depth)
        if isinstance(first, (Register, Sink, Not)) and cursor.take("|"):
            return Pair(first, self._single(cursor, scope, is_call, depth))
        return first

    def _single(self, cursor: Cursor, scope: int, is_call: bool, depth: int) -> Operand:
        if depth > 20:
            raise cursor.unexpected("fewer nested brackets")
        if cursor.kind == "name":
            return self._named(cursor, scope)
        if cursor.kind == "mark":
            if cursor.text == "{":
                return Vector(self._list(cursor, "}", scope, is_call, depth))
            if cursor.text == "(" and is_call:
                return Group(self._list(cursor, ")", scope, is_call, depth))
            if cursor.text == "[":
                return self._address(cursor, scope, depth)
            if cursor.text in "!-":
                mark, back = cursor.text, cursor.offset
                cursor.advance()
                if cursor.kind == "name" and cursor.text != "WARP_SZ":
                    inner = self._named(cursor, scope)
                    return Not(inner) if mark == "!" else Negated(inner)
                cursor.rewind(back)
        return cursor.constant()

    def _named(self, cursor: Cursor, scope: int) -> Operand:
        name = cursor.text
        if name == "WARP_SZ":
            return cursor.constant()
        cursor.advance()
        if name == "_":
            return _SINK
        found = self.resolve(name, scope)
        if isinstance(found, Symbol) and (cursor.at("+") or cursor.at("-")):
            return Symbol(found.name, found.scope, self._offset(cursor))
        return found

    def _list(self, cursor: Cursor, close: str, scope: int, is_call: bool, depth: int) -> tuple[Operand, ...]:
        cursor.advance()
        if cursor.take(close):
            return ()
        elements = [self._operand(cursor, scope, is_call, depth + 1)]
        while cursor.take(","):
            elements.append(self._operand(cursor, scope, is_call, depth + 1))
        cursor.expect(close)
        return tuple(elements)

    def _address(self, cursor: Cursor, scope: int, depth: int) -> Address:
        cursor.advance()
        base: Register | Symbol | None = None
        offset = 0
        if cursor.kind == "name" and cursor.text != "WARP_SZ":
            where, name = cursor.offset, cursor.text
            cursor.advance()
            found = self.resolve(name, scope)
            if isinstance(found, Label):
                raise self._source.error(where, f"{name!r} is a label, not an address")
            base = found
            if cursor.at("+") or cursor.at("-"):
                offset = self._offset(cursor)
        else:
            offset = self._integer(cursor)
        extra: list[Operand] = []
        while cursor.take(","):
            extra.append(self._operand(cursor, scope, False, depth + 1))
        cursor.expect("]")
        if cursor.kind == "suffix" and cursor.text == ".unified":
            cursor.advance()  # a promise about the address, with no effect on what is loaded
        return Address(base, offset, tuple(extra))

    def _offset(self, cursor: Cursor) -> int:
        """`+4`, `-4`, `+-4`, `+4+8`: what is added to a base."""
        total = 0
        while cursor.at("+") or cursor.at("-"):
            sign = -1 if cursor.at("-") else 1
            cursor.advance()
            total += sign * self._integer(cursor, 10)
        return total

    def _integer(self, cursor: Cursor, level: int = 0) -> int:
        where = cursor.offset
        value = cursor.constant(level)
        if value.kind != "int":
            raise self._source.error(where, "an address must be an integer")
        return value.value
