"""The elements of a loader's array: strings, however they are written, with the byte spans a patch needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ssmtool.csource.counts import Shape, value_of
from ssmtool.csource.macros import UndecidableError, expand, tokens_of
from ssmtool.csource.scope import Scope
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from tree_sitter import Node

_NULL = re.compile(r"NULL|nullptr|0|\(\s*(?:const\s+)?(?:char|void)\s*(?:const\s*)?\*\s*\)\s*0")
_PLAIN = re.compile(r'"[^"\\\n]*"')
_CAST = ({"(", ")", "const", "char", "*"}, {"(", ")"})


class NameEntry(msgspec.Struct, frozen=True):
    """One element: its name and the span of its expression in bytes.

    `pieces` are the string literals it is made of; more than one means neighbours joined, wanted or by a lost comma.
    `macro` is the name it was written as. `condition` is the `#if` that may or may not keep it.
    """

    name: str
    start: int
    end: int
    line: int
    column: int
    pieces: tuple[str, ...]
    macro: str | None = None
    condition: str | None = None


def read_elements(values: Node, scope: Scope, array: str, path: Path | str) -> tuple[list[NameEntry], bool, list[str]]:
    """The names in the order they have in memory, whether a NULL ends them, and what speaks against editing.

    Raises SsmtoolError for an element that is no string, and for designators that leave a gap or cannot be told.
    """
    code = scope.view.code
    doubts: list[str] = []
    placed: dict[int, NameEntry] = {}
    elements = [child for child in values.named_children if child.type != "comment"]
    terminated = False
    at = 0
    for index, element in enumerate(elements):
        text = code[element.start_byte : element.end_byte]
        line = scope.view.masked.line(element.start_byte)
        if element.type == "ERROR" or element.has_error:
            raise SsmtoolError(f"{array} cannot be read here: {text.strip()[:60]}", path=path, line=line)
        node = element
        if element.type == "initializer_pair":
            node, at = _designated(element, scope, array, path)
            doubts.append(f"the name on line {line} is put in its place by a designator")
            text = code[node.start_byte : node.end_byte]
        name = _name_of_row(node)
        if name is not None:
            node = name
            text = code[node.start_byte : node.end_byte]
            doubts.append(f"the rows of {array} hold more than names, so they are edited by hand")
        if index == len(elements) - 1 and placed and _NULL.fullmatch(text):
            terminated = True
            if at != len(placed):
                raise _gap(array, path, line)
            break
        for entry in _read_element(node, text, scope, array, path):
            if entry.macro:
                doubts.append(f"the name on line {entry.line} is written as {entry.macro}")
            elif len(entry.pieces) > 1:
                doubts.append(f"the name on line {entry.line} is joined from {len(entry.pieces)} strings")
            if at in placed:
                raise SsmtoolError(f"{array}[{at}] is given twice", path=path, line=line)
            placed[at] = entry
            at += 1
    entries = [entry for _, entry in sorted(placed.items())]
    if placed and max(placed) != len(entries) - 1:
        raise _gap(array, path, scope.view.masked.line(values.start_byte))
    return entries, terminated, doubts


def _name_of_row(node: Node) -> Node | None:
    """The name in a row of a table of structs: its first member, or of named members (`.name =`) the first string."""
    row = [child for child in node.named_children if child.type != "comment"] if node.type == "initializer_list" else []
    values = [child.child_by_field_name("value") for child in row if child.type == "initializer_pair"]
    strings = (value for value in values if value is not None and value.type == "string_literal")
    return next(strings, row[0] if row else None)


def _gap(array: str, path: Path | str, line: int) -> SsmtoolError:
    return SsmtoolError(
        f"the designators of {array} leave a place empty, where the loader would meet NULL",
        path=path,
        line=line,
        hint="give every index a name",
    )


def _designated(element: Node, scope: Scope, array: str, path: Path | str) -> tuple[Node, int]:
    """The value of `[index] = value` and its index."""
    designators = element.children_by_field_name("designator")
    value = element.child_by_field_name("value")
    index: int | None = None
    if value is not None and len(designators) == 1 and designators[0].type == "subscript_designator":
        inside = scope.view.code[designators[0].start_byte + 1 : designators[0].end_byte - 1]
        index = value_of(inside, element.start_byte, Shape(array, 0, pointers=False), scope)
    if value is None or index is None or index < 0:
        shown = re.sub(r"\s+", " ", scope.view.code[element.start_byte : element.end_byte])[:60]
        raise SsmtoolError(
            f"{array} holds {shown}, whose place in the array cannot be told",
            path=path,
            line=scope.view.masked.line(element.start_byte),
            hint="list the names in order, without designators",
        )
    return value, index


def _read_element(element: Node, text: str, scope: Scope, array: str, path: Path | str) -> list[NameEntry]:
    """The names one element stands for; more than one only where a macro makes a list."""
    masked = scope.view.masked
    line = masked.line(element.start_byte)
    group = scope.view.undecided_at(element.start_byte)
    condition = re.sub(r"\s+", " ", group.condition) if group else None
    column = masked.column(element.start_byte)
    if _PLAIN.fullmatch(text):
        name = text[1:-1].encode("latin-1").decode("utf-8", "replace")
        return [NameEntry(name, element.start_byte, element.end_byte, line, column, (name,), None, condition)]
    try:
        # A spliced string is one line to the compiler.
        tokens = tokens_of(re.sub(r"\\\r?\n", "", text))
        expanded = expand(tokens, lambda name: scope.macro(name, element.start_byte))
        lists = _split(expanded)
    except UndecidableError:
        tokens, lists = (), [[]]
    macro = (
        re.sub(r"\s+", " ", text)
        if [token for part in lists for token in part if token != ","] != [token for token in tokens if token != ","]
        else None
    )
    entries = []
    for part in lists:
        pieces = [token[1:-1] for token in part if token.startswith('"')]
        rest = [token for token in part if not token.startswith('"')]
        if not pieces or set(rest) - _CAST[bool("*" not in rest)] or any("\\" in piece for piece in pieces):
            what = re.sub(r"\s+", " ", text)[:60]
            raise SsmtoolError(
                f"{array} holds {what}, which is not a plain string, so the names that are loaded cannot be told",
                path=path,
                line=line,
                hint='write each kernel name as a string: "NAME",',
            )
        decoded = tuple(piece.encode("latin-1").decode("utf-8", "replace") for piece in pieces)
        entries.append(
            NameEntry(
                name="".join(decoded),
                start=element.start_byte,
                end=element.end_byte,
                line=line,
                column=column,
                pieces=decoded,
                macro=macro,
                condition=condition,
            )
        )
    return entries


def _split(tokens: list[str]) -> list[list[str]]:
    """The tokens between commas; a comma at the end is a trailing one."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts[:-1] if len(parts) > 1 and not parts[-1] else parts
