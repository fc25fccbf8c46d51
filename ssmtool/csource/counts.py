"""Integer expressions of a loader: the count handed to the loading call, the declared size of an array.

An expression is valued as C does, over the macros, enumerators and constants of the file and of the project's headers
that it includes. One that changes with the length of the array, `sizeof names / sizeof *names` or a counting macro,
follows the array by itself and needs no edit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ssmtool.csource.conditions import Reader, Value, parse_integer
from ssmtool.csource.macros import UndecidableError, expand, is_word, tokens_of
from ssmtool.csource.scope import Scope

if TYPE_CHECKING:
    from tree_sitter import Node

# Macros and functions that mean "number of elements" wherever they are met, if neither file nor headers define them.
_LENGTH_CALLS = re.compile(
    r"(?i)_*(array_?(size|len|length|count|elems)|count_?of|n_?elem(s|ents)?|g_n_elements|std::s?size|dim_?of)"
)
_DECIMAL = re.compile(r"[1-9][0-9]*|0")
# Integer types, by the words they are made of -> bits, None where platforms differ.
_SIGNED = {"int", "signed", "long", "short", "int64_t", "int32_t", "ssize_t", "ptrdiff_t", "intptr_t"}
_UNSIGNED = {"unsigned", "size_t", "uint", "uint32_t", "uint64_t", "uintptr_t", "CUdeviceptr"}
_NARROW = {"char": 7, "int8_t": 7, "uint8_t": 8, "short": 15, "int16_t": 15, "uint16_t": 16}
_WORDS = _SIGNED | _UNSIGNED | _NARROW.keys() | {"const", "volatile", "std", "::", "bool", "_Bool", "auto"}
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_STARTS_OPERAND = re.compile(r"[\w(~!'\"]")


class Count(msgspec.Struct, frozen=True):
    """One integer expression.

    `kind`: `literal` (a decimal number, `start`:`end` its digits in bytes), `length` (follows the array: `sizeof` and
    the like), `macro` (a name with a fixed value, defined on `defined_line`, of `defined_path` if that is another
    file), `expression` (another fixed value), `unknown` (cannot be told). `value` is the number, for `length` as the
    array now stands.
    """

    kind: Literal["literal", "length", "macro", "expression", "unknown"]
    text: str
    value: int | None
    line: int
    start: int
    end: int
    defined_line: int | None = None
    defined_path: str | None = None


class Shape(msgspec.Struct, frozen=True):
    """The array that `sizeof` may be asked of: `length` with its terminator; `pointers`: elements are pointers."""

    name: str
    length: int
    pointers: bool


def read_count(node: Node, *, shape: Shape, scope: Scope) -> Count:
    """The value of an expression in the file of `scope`."""
    code = scope.view.code
    whole = code[node.start_byte : node.end_byte]
    text = re.sub(r"\s+", " ", whole)
    line = scope.view.masked.line(node.start_byte)
    span = node.start_byte, node.end_byte
    value = value_of(whole, node.start_byte, shape, scope)
    if value is None:
        return Count("unknown", text, None, line, *span)
    core = _bare(node)
    written = code[core.start_byte : core.end_byte]
    if core.type == "number_literal":
        digits = _DECIMAL.match(written)
        if digits and parse_integer(written) == int(digits[0]) == value:
            return Count("literal", text, value, line, core.start_byte, core.start_byte + len(digits[0]))
    defined = scope.definition(written, node.start_byte) if core.type == "identifier" else None
    place = defined or (None, None)
    longer = msgspec.structs.replace(shape, length=shape.length + 1)
    if value_of(whole, node.start_byte, longer, scope) != value:
        return Count("length", text, value, line, *span, *place)
    return Count("expression" if defined is None else "macro", text, value, line, *span, *place)


def value_of(text: str, before: int, shape: Shape, scope: Scope) -> int | None:
    """The value of an expression that stands at offset `before`; None when it cannot be told."""
    try:
        value = _Expression(text, before, shape, scope, 0).whole()
    except (UndecidableError, RecursionError):
        return None
    return None if value is None or value.sizes else value.number


def _bare(node: Node) -> Node:
    """The expression without parentheses and casts."""
    while True:
        if node.type == "parenthesized_expression" and len(node.named_children) == 1:
            node = node.named_children[0]
        elif node.type == "cast_expression" and (value := node.child_by_field_name("value")) is not None:
            node = value
        else:
            return node


class _Expression(Reader):
    """C's integer expressions. Every number is one that an `int` of any platform holds."""

    bits = 31

    def __init__(self, text: str, before: int, shape: Shape, scope: Scope, depth: int) -> None:
        if depth > 20:
            raise UndecidableError
        super().__init__(expand(tokens_of(text), lambda name: scope.macro(name, before)))
        self._before = before
        self._shape = shape
        self._scope = scope
        self._depth_of_names = depth

    def primary(self) -> Value | None:
        if self.peek() == "(" and (inside := self._type_in_parentheses()) is not None:
            self.at += len(inside) + 2
            return _cast(inside, self.unary())
        return self.name(self.next()) if self.peek() == "sizeof" else super().primary()

    def name(self, token: str) -> Value | None:
        if not is_word(token):
            raise UndecidableError
        if token == "sizeof":
            return self._sizeof()
        if token in _CASTS:
            self.expect("<")
            kind = self._until(">")
            self.expect("(")
            return _cast(kind, self._closed())
        while self.peek() == "::" and is_word(self.peek(1)):
            token += self.next() + self.next()
        if token.removeprefix("std::") in _WORDS and self.peek() in ("(", "{"):
            return _cast([token.removeprefix("std::")], self._closed(self.next()))
        if token == self._shape.name and self.peek() == "." and self.peek(1) in ("size", "max_size"):
            for expected in (".", self.peek(1), "(", ")"):
                self.expect(expected)
            return Value(self._shape.length, unsigned=True)
        if self.peek() == "(":
            self.next()
            argument = self._until(")")
            known = self._scope.is_macro(token)
            if not known and _unwrapped(argument) == [self._shape.name] and _LENGTH_CALLS.fullmatch(token):
                return Value(self._shape.length, unsigned=True)
            raise UndecidableError
        return self._named(token)

    def _closed(self, opening: str = "(") -> Value | None:
        value = self.ternary()
        self.expect(")" if opening == "(" else "}")
        return value

    def _named(self, token: str) -> Value | None:
        """An enumerator or a constant."""
        found = self._scope.constant(token)
        if found is None:
            return None
        value: Value | None = Value(0)
        if found.initial is not None:
            depth = self._depth_of_names + 1
            value = _Expression(found.initial, found.before, self._shape, self._scope, depth).whole()
        if value is None:
            return None
        value = self.checked(value.number + found.step, value.unsigned, value.sizes)
        return _cast(found.type, value) if found.type else value

    def _type_in_parentheses(self) -> list[str] | None:
        """The tokens of a cast's type, when the parenthesis ahead is one."""
        depth, at = 0, self.at
        while at < len(self.tokens):
            depth += (self.tokens[at] == "(") - (self.tokens[at] == ")")
            at += 1
            if depth == 0:
                break
        inside = list(self.tokens[self.at + 1 : at - 1])
        if not inside or "(" in inside or not all(is_word(token) or token == "::" for token in inside):
            return None
        if all(token in _WORDS or token.endswith("_t") for token in inside) or len(inside) > 1:
            return inside
        # `(x) y` is no expression, so `(T) 3` is a cast; `(T) - 3` may be either.
        follows = self.tokens[at] if at < len(self.tokens) else ""
        return inside if _STARTS_OPERAND.match(follows) and not self._scope.is_value(inside[0]) else None

    def _until(self, closing: str) -> list[str]:
        """The tokens up to a closing token, which is taken too."""
        depth = 0
        taken: list[str] = []
        while True:
            token = self.next()
            if token == closing and depth == 0:
                return taken
            depth += (token in "([{") - (token in ")]}")
            taken.append(token)

    def _sizeof(self) -> Value:
        """`sizeof` of the array, of its element, or of a pointer where its elements are pointers."""
        operand: list[str] = []
        if self.peek() == "(":
            self.next()
            operand = self._until(")")
            if not _is_pointer_type(operand):
                # The brackets bind first: `sizeof(names)[0]` is the size of an element.
                operand = ["(", *operand, ")"]
                while self.peek() == "[":
                    operand += [self.next(), *self._until("]"), "]"]
        else:
            while self.peek() in ("*", "&"):
                operand.append(self.next())
            operand += [self.next()]
            if operand[-1] == "(":
                operand += [*self._until(")"), ")"]
            while self.peek() == "[":
                operand += [self.next(), *self._until("]"), "]"]
        operand = _unwrapped(operand)
        name = self._shape.name
        if operand == [name]:
            return Value(self._shape.length, unsigned=True, sizes=1)
        flat = "".join(operand).replace(f"({name})", name)
        if re.fullmatch(rf"{re.escape(name)}\[[0-9]+\]|\*{re.escape(name)}|[0-9]+\[{re.escape(name)}\]", flat):
            return Value(1, unsigned=True, sizes=1)
        if self._shape.pointers and _is_pointer_type(operand):
            return Value(1, unsigned=True, sizes=1)
        if operand in (["char"], ["signed", "char"], ["unsigned", "char"]):
            return Value(1, unsigned=True)
        raise UndecidableError


def _is_pointer_type(tokens: Sequence[str]) -> bool:
    rest = [token for token in tokens if token not in ("const", "volatile")]
    return len(rest) > 1 and rest[-1] == "*" and all(is_word(token) or token in ("*", "::") for token in rest)


def _unwrapped(tokens: list[str]) -> list[str]:
    """Tokens without the parentheses around all of them."""
    while len(tokens) > 2 and tokens[0] == "(" and tokens[-1] == ")":
        depth = 0
        for index, token in enumerate(tokens):
            depth += (token == "(") - (token == ")")
            if depth == 0 and index < len(tokens) - 1:
                return tokens
        tokens = tokens[1:-1]
    return tokens


def _cast(words: Sequence[str], value: Value | None) -> Value | None:
    """A value as another type, where that type holds it. Raises UndecidableError where it may not."""
    if value is None:
        return None
    kinds = [word for word in words if word not in ("const", "volatile", "static", "constexpr", "inline", "std", "::")]
    if value.sizes and not set(kinds) <= _SIGNED | _UNSIGNED:
        raise UndecidableError
    if kinds in (["bool"], ["_Bool"]):
        return Value(int(bool(value.number)))
    if kinds == ["auto"]:
        return value
    bits = min((_NARROW.get(word, 31) for word in kinds), default=31)
    unsigned = any(word in _UNSIGNED for word in kinds)
    if not all(word in _WORDS for word in kinds):
        # A type of another header: every integer type holds these, and as the strictest of them it is unsigned.
        bits, unsigned = 7, True
    if value.number < 0 and (unsigned or bits in (7, 8, 16)):
        raise UndecidableError
    if abs(value.number) >= 1 << bits:
        raise UndecidableError
    return Value(value.number, unsigned, value.sizes)
