"""Integer expressions of a loader: the count handed to the loading call, the declared size of an array.

An expression is a number, or `length of the array * scale + offset` when it is written with `sizeof` or a counting
macro: such a count follows the array by itself and needs no edit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from ssmtool.csource.conditions import parse_integer
from ssmtool.csource.grammar import Tree, parse
from ssmtool.csource.preprocess import View

if TYPE_CHECKING:
    from tree_sitter import Node

# Macros and functions that mean "number of elements" wherever they are met, defined in this file or not.
_LENGTH_CALLS = re.compile(
    r"(?i)_*(array_?(size|len|length|count|elems)|count_?of|n_?elem(s|ents)?|g_n_elements|std::size|dim_?of)"
)
_DECIMAL = re.compile(r"[1-9][0-9]*|0")


class Count(msgspec.Struct, frozen=True):
    """One integer expression.

    `kind`: `literal` (a decimal number, `start`:`end` its digits in bytes), `length` (follows the array: `sizeof` and
    the like), `macro` (a name with a fixed value, defined on `defined_line`), `expression` (another fixed value),
    `unknown` (cannot be told). `value` is the number, for `length` as the array now stands.
    """

    kind: Literal["literal", "length", "macro", "expression", "unknown"]
    text: str
    value: int | None
    line: int
    start: int
    end: int
    defined_line: int | None = None


class _Value(msgspec.Struct, frozen=True):
    """scale * length + offset."""

    scale: int
    offset: int


class _UnknownError(Exception):
    """The expression cannot be told from this file."""


def read_count(node: Node, *, array: str, length: int, view: View, tree: Tree) -> Count:
    """The value of an expression; `length` is the true length of `array`, terminator included."""
    code = view.code
    text = re.sub(r"\s+", " ", code[node.start_byte : node.end_byte])
    line = view.masked.line(node.start_byte)
    core = _bare(node)
    if core.type == "number_literal":
        digits = _DECIMAL.match(code[core.start_byte : core.end_byte])
        value = parse_integer(code[core.start_byte : core.end_byte])
        if value is not None and digits and str(value) == digits[0]:
            return Count("literal", text, value, line, core.start_byte, core.start_byte + len(digits[0]))
    span = node.start_byte, node.end_byte
    try:
        result = _Reader(array, view, tree).read(node, code, 0)
    except (_UnknownError, RecursionError):
        return Count("unknown", text, None, line, *span)
    total = result.scale * length + result.offset
    defined = _definition_line(core, code, view, tree) if core.type == "identifier" else None
    if result.scale:
        return Count("length", text, total, line, *span, defined)
    return Count("expression" if defined is None else "macro", text, total, line, *span, defined)


def _bare(node: Node) -> Node:
    """The expression without parentheses and casts."""
    while True:
        if node.type == "parenthesized_expression" and len(node.named_children) == 1:
            node = node.named_children[0]
        elif node.type == "cast_expression" and (value := node.child_by_field_name("value")) is not None:
            node = value
        else:
            return node


def _definition_line(node: Node, code: str, view: View, tree: Tree) -> int | None:
    name = code[node.start_byte : node.end_byte]
    macro = view.macro(name)
    if macro:
        return macro.line
    for found in tree.find("enumerator", "init_declarator"):
        declared = found.child_by_field_name("name") or found.child_by_field_name("declarator")
        if declared is not None and code[declared.start_byte : declared.end_byte].split("[")[0].strip() == name:
            return view.masked.line(declared.start_byte)
    return None


class _Reader:
    """Evaluates expressions over the file's macros, enumerators and constants."""

    def __init__(self, array: str, view: View, tree: Tree) -> None:
        self._array = array
        self._view = view
        self._tree = tree

    def read(self, node: Node, code: str, depth: int) -> _Value:
        if depth > 20:
            raise _UnknownError
        node = _bare(node)
        text = code[node.start_byte : node.end_byte]
        if node.type == "number_literal":
            value = parse_integer(text)
            if value is None:
                raise _UnknownError
            return _Value(0, value)
        if node.type == "identifier":
            return self._name(text, depth)
        if node.type == "call_expression":
            return self._call(node, code, depth)
        if node.type == "binary_expression":
            return self._binary(node, code, depth)
        raise _UnknownError

    def _binary(self, node: Node, code: str, depth: int) -> _Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is None or right is None or operator is None:
            raise _UnknownError
        if operator.type == "/" and self._is_array(_sizeof(left, code)) and self._is_element(_sizeof(right, code)):
            return _Value(1, 0)
        a, b = self.read(left, code, depth + 1), self.read(right, code, depth + 1)
        if operator.type == "+":
            return _Value(a.scale + b.scale, a.offset + b.offset)
        if operator.type == "-":
            return _Value(a.scale - b.scale, a.offset - b.offset)
        if operator.type == "*" and not a.scale and not b.scale:
            return _Value(0, a.offset * b.offset)
        raise _UnknownError

    def _is_array(self, operand: str | None) -> bool:
        return operand == self._array

    def _is_element(self, operand: str | None) -> bool:
        """`names[0]`, `*names`, or the element's type, which is a pointer whatever its qualifiers."""
        if operand is None:
            return False
        flat = operand.replace(" ", "")
        return flat in (f"{self._array}[0]", f"*{self._array}", f"*({self._array})", f"0[{self._array}]") or bool(
            re.fullmatch(r"(const)?char(const)?\*(const)?|void\*", flat)
        )

    def _call(self, node: Node, code: str, depth: int) -> _Value:
        """`ARRAY_SIZE(names)`: by its definition when the file has it, by its name when not."""
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if function is None or arguments is None or len(arguments.named_children) != 1:
            raise _UnknownError
        name = code[function.start_byte : function.end_byte]
        argument = _bare(arguments.named_children[0])
        given = code[argument.start_byte : argument.end_byte]
        macro = self._view.macro(name)
        if macro and macro.parameters is not None and len(macro.parameters) == 1:
            body = re.sub(rf"\b{re.escape(macro.parameters[0])}\b", lambda _: given, macro.body)
            return self._text(body, depth)
        if given == self._array and _LENGTH_CALLS.fullmatch(name.replace(" ", "")):
            return _Value(1, 0)
        raise _UnknownError

    def _name(self, name: str, depth: int) -> _Value:
        if name in self._view.macros:
            macro = self._view.macro(name)
            if macro is None or macro.parameters is not None:
                raise _UnknownError
            if any(group.active is None and group.start <= macro.offset < group.end for group in self._view.groups):
                raise _UnknownError
            return self._text(macro.body, depth)
        code = self._view.code
        for node in self._tree.find("enumerator_list", "init_declarator"):
            if node.type == "enumerator_list":
                value = self._enumerator(node, name, code, depth)
                if value is not None:
                    return value
            if node.type == "init_declarator" and self._declares_constant(node, name, code):
                initial = node.child_by_field_name("value")
                if initial is not None:
                    return self.read(initial, code, depth + 1)
        raise _UnknownError

    def _declares_constant(self, node: Node, name: str, code: str) -> bool:
        declarator = node.child_by_field_name("declarator")
        if declarator is None or declarator.type != "identifier" or node.parent is None:
            return False
        head = code[node.parent.start_byte : node.start_byte]
        return code[declarator.start_byte : declarator.end_byte] == name and bool(
            re.search(r"\b(const|constexpr)\b", head)
        )

    def _enumerator(self, node: Node, name: str, code: str, depth: int) -> _Value | None:
        following = _Value(0, 0)
        for child in node.named_children:
            if child.type != "enumerator":
                # A macro or an #if inside the enum: what follows it cannot be counted.
                return None
            declared = child.child_by_field_name("name")
            initial = child.child_by_field_name("value")
            current = self.read(initial, code, depth + 1) if initial is not None else following
            if declared is not None and code[declared.start_byte : declared.end_byte] == name:
                return current
            following = _Value(current.scale, current.offset + 1)
        return None

    def _text(self, body: str, depth: int) -> _Value:
        """An expression that stands in a macro's body."""
        prefix = "int x = "
        code = f"{prefix}{body};"
        tree = parse(code, "macro.c")
        declarator = next(iter(tree.find("init_declarator")), None)
        value = declarator.child_by_field_name("value") if declarator is not None else None
        if value is None or tree.root.has_error:
            raise _UnknownError
        return self.read(value, code, depth + 1)


def _sizeof(node: Node, code: str) -> str | None:
    """What `sizeof` is applied to, without its parentheses; None for another expression."""
    node = _bare(node)
    text = re.sub(r"\s+", " ", code[node.start_byte : node.end_byte])
    # The grammar takes `sizeof(names)[0]` for a subscript of a sizeof; C means the other way round.
    if node.type not in ("sizeof_expression", "subscript_expression") or not re.match(r"sizeof\b", text):
        return None
    operand = text.removeprefix("sizeof").strip()
    while operand.startswith("(") and operand.endswith(")") and _wraps(operand):
        operand = operand[1:-1].strip()
    return re.sub(r"^\((\w+)\)\[0\]$", r"\1[0]", operand)


def _wraps(text: str) -> bool:
    """Whether the first parenthesis closes with the last."""
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return index == len(text) - 1
    return False
