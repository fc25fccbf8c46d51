"""Declarations: registers, variables and parameters, as `.reg`, `.global`, `.shared`, `.param` ... state them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ssmtool.ptx.expressions import Cursor
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.source import SourceText

SPACES = frozenset(("reg", "sreg", "const", "global", "local", "param", "shared", "tex"))
LINKAGE = frozenset(("extern", "visible", "weak", "common"))
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}

_ATTRIBUTE = re.compile(r"\s*\.([A-Za-z_][\w:]*)(?:\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\))?(?:\s*(\d+)(?![\w]))?")
_NAME = re.compile(r"\s*(%?[A-Za-z_$][\w$]*)\s*(?:<\s*(\d+)\s*>)?\s*")
_DEEPEST = 32  # levels of brackets in an initialiser; an array of more dimensions has never been seen
_MARKS = re.compile(r"[{}(),]")
_BRACES = re.compile(r"[{}]")
_DIMENSION = re.compile(r"\[([^\]]*)\]\s*")


@dataclass(frozen=True, slots=True)
class Variable:
    """One declared variable, parameter or register (range).

    `type` is a PTX type name without its dot, or None where the text does not say. `dims` are the array lengths,
    None for `[]`. `align` is in bytes, None where it is the type's own. `count` is the N of `%r<N>` (then `name`
    is the prefix). `pointer` holds the space and alignment of a `.ptr` parameter. `initial` is the span of the
    initialiser in the text. `attributes` holds whatever else was written, verbatim.
    """

    name: str
    space: str
    type: str | None
    offset: int
    align: int | None = None
    dims: tuple[int | None, ...] = ()
    vector: int = 1
    count: int | None = None
    linkage: str | None = None
    pointer: Pointer | None = None
    initial: tuple[int, int] | None = None
    attributes: tuple[str, ...] = ()

    @property
    def element_size(self) -> int:
        """Bytes of one element, a vector counted as one element."""
        return -(-TYPE_BITS.get(self.type or "b8", 8) * self.vector // 8)

    @property
    def size(self) -> int:
        """Bytes of the whole; 0 for `[]`, whose size the launch decides."""
        total = self.element_size
        for length in self.dims:
            total *= length or 0
        return total

    @property
    def alignment(self) -> int:
        """Bytes: what `.align` says, else the element's size."""
        return self.align or self.element_size


@dataclass(frozen=True, slots=True)
class Pointer:
    """What `.ptr` says of a parameter: the space it points to (None: generic) and the alignment in bytes."""

    space: str | None = None
    align: int | None = None


@dataclass(slots=True)
class _Prefix:
    space: str = ""
    type: str | None = None
    align: int | None = None
    vector: int = 1
    linkage: str | None = None
    pointer: Pointer | None = None
    attributes: list[str] = field(default_factory=list)


def parse_declaration(source: SourceText, start: int, end: int) -> list[Variable]:
    """Every variable that one declaration, without its `;`, declares; PtxSyntaxError when it is malformed."""
    prefix, position = _parse_prefix(source, start, end)
    result: list[Variable] = []
    code = source.code
    while True:
        match = _NAME.match(code, position, end)
        if match is None:
            raise source.error(_skip(code, position, end), "expected a name in this declaration")
        position = match.end()
        dims: list[int | None] = []
        while dimension := _DIMENSION.match(code, position, end):
            dims.append(_length(source, dimension.start(1), dimension.end(1)))
            position = dimension.end()
        initial = None
        if position < end and code[position] == "=":
            initial = _initial_span(source, position + 1, end)
            position = _skip(code, initial[1], end)
            if dims and dims[0] is None:
                dims[0] = _top_elements(code, *initial)
        result.append(
            Variable(
                match[1],
                prefix.space,
                prefix.type,
                match.start(1),
                prefix.align,
                tuple(dims),
                prefix.vector,
                int(match[2]) if match[2] else None,
                prefix.linkage,
                prefix.pointer,
                initial,
                tuple(prefix.attributes),
            )
        )
        if position >= end:
            return result
        if code[position] != ",":
            raise source.error(position, "expected ',' or ';' in this declaration")
        position += 1


def _skip(code: str, position: int, end: int) -> int:
    while position < end and code[position].isspace():
        position += 1
    return position


def _parse_prefix(source: SourceText, start: int, end: int) -> tuple[_Prefix, int]:
    prefix = _Prefix()
    position = start
    while match := _ATTRIBUTE.match(source.code, position, end):
        position = match.end()
        word, argument, number = match[1], match[2], match[3]
        if number is not None and (word != "align" or len(number) > 9):
            position = match.start(3)
            number = None
        if word == "align":
            if number is None:
                raise source.error(position, "expected a number of bytes after .align")
            if prefix.pointer is not None:
                prefix.pointer = Pointer(prefix.pointer.space, int(number))
            else:
                prefix.align = int(number)
        elif word == "ptr":
            prefix.pointer = Pointer()
        elif word.partition("::")[0] in SPACES:
            if prefix.pointer is not None:
                prefix.pointer = Pointer(word, prefix.pointer.align)
            else:
                prefix.space = word
        elif word in LINKAGE:
            prefix.linkage = word
        elif word in _VECTORS:
            prefix.vector = _VECTORS[word]
        elif word in TYPE_BITS:
            prefix.type = word
        else:
            prefix.attributes.append(word if argument is None else f"{word}({argument})")
    return prefix, position


def _length(source: SourceText, start: int, end: int) -> int | None:
    if not source.code[start:end].strip():
        return None
    cursor = Cursor(source, start, end)
    value = cursor.constant()
    if cursor.kind != "end" or value.kind != "int" or value.value < 0:
        raise source.error(start, "an array length must be a constant, not negative")
    return value.value


def _initial_span(source: SourceText, start: int, end: int) -> tuple[int, int]:
    """Span of an initialiser: a braced list, or everything up to a comma that is in no brackets."""
    start = _skip(source.code, start, end)
    depth = 0
    # A braced list may hold millions of numbers: only its braces are looked at.
    marks = _BRACES if source.code.startswith("{", start, end) else _MARKS
    for match in marks.finditer(source.code, start, end):
        mark = match[0]
        if mark in "{(":
            depth += 1
            if depth > _DEEPEST:
                raise source.error(match.start(), "this initialiser is nested too deeply")
        elif mark in "})":
            depth -= 1
            if depth < 0:
                raise source.error(match.start(), f"unmatched {mark!r}")
            if depth == 0 and marks is _BRACES:
                return start, match.end()
        elif depth == 0:
            return start, match.start()
    if depth:
        raise source.error(start, "this initialiser has an unclosed bracket")
    return start, end


def _top_elements(code: str, start: int, end: int) -> int:
    """Length that a braced initialiser gives to `[]`."""
    text = code[start:end].strip()
    if not text.startswith("{"):
        return len(text) - 1 if text.startswith('"') else 1
    inner = text[1:-1]
    while "{" in inner or "(" in inner:
        shorter = re.sub(r"\{[^{}]*\}|\([^()]*\)", "0", inner)
        if shorter == inner:
            break
        inner = shorter
    return inner.count(",") + 1 if inner.strip() else 0
