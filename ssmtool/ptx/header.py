"""The header of a function: linkage, name, parameters, directives."""

from __future__ import annotations

import re

from ssmtool.ptx.declarations import SPACES, Variable, parse_declaration
from ssmtool.ptx.function import Directive, Header
from ssmtool.ptx.source import SourceText

_END = re.compile(r"[{;]")
_LAST_PRAGMA = re.compile(r'\.pragma\s*"[^"]*"(?:\s*,\s*"[^"]*")*\s*\Z')
_BEFORE_NAME = re.compile(r"\s*\.([A-Za-z_]\w*)(?:\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\))?")
_NAME = re.compile(r"\s*(%?[A-Za-z_$][\w$]*)\s*")
_PAREN = re.compile(r"[()]")
_COMMA = re.compile(r"[(),]")
# Nine of ten parameters: .param .u64 name
_SIMPLE = re.compile(r"\s*\.param\s+\.([usbf](?:8|16|32|64))\s+([A-Za-z_$][\w$]*)\s*\Z")
_DIRECTIVE = re.compile(r'\s*\.([A-Za-z_]\w*)\s*((?:"[^"]*"|[^.;"])*);?')


def header_end(source: SourceText, start: int) -> int:
    """Offset of the `{` or `;` that ends a header; a `;` of a `.pragma` inside it does not count."""
    position = start
    while match := _END.search(source.code, position):
        if match[0] == "{" or not _LAST_PRAGMA.search(source.code, start, match.start()):
            return match.start()
        position = match.end()
    raise source.error(start, "this function header has neither a body nor a ';': the text is cut off")


def parse_header(source: SourceText, match: re.Match[str], end: int) -> Header:
    """The header whose beginning `FUNCTION` matched and whose `{` or `;` is at `end`."""
    code = source.code
    linkage = match[1].replace(".", " ").split()
    start = match.start(1) if match[1] else match.start(2) - 1
    position = match.end()
    directives: list[Directive] = []
    while early := _BEFORE_NAME.match(code, position, end):
        directives.append(Directive(early[1], (early[2],) if early[2] is not None else ()))
        position = early.end()
    returns, position = _parameters(source, position, end)
    name = _NAME.match(code, position, end)
    if name is None:
        raise source.error(position, f"expected the name of this .{match[2]}")
    params, position = _parameters(source, name.end(), end)
    while position < end:
        late = _DIRECTIVE.match(code, position, end)
        if late is None:
            if code[position:end].strip():
                raise source.error(position, f"cannot read the header of {name[1]!r} from here on")
            break
        if late[1] in SPACES:
            raise source.error(late.start(1) - 1, f"expected the '{{' of {name[1]!r}, found '.{late[1]}'")
        # The blanked copy hides what strings say.
        words = source.text[late.start(2) : late.end(2)].split(",")
        directives.append(Directive(late[1], tuple(word.strip() for word in words if word.strip())))
        position = late.end()
    return Header(
        name[1],
        match[2],
        linkage[0] if linkage else None,
        params,
        returns,
        tuple(directives),
        (start, end),
        name.start(1),
    )


def _parameters(source: SourceText, start: int, end: int) -> tuple[tuple[Variable, ...], int]:
    """The parameters in the parentheses at `start`, if there are any, and the offset after them."""
    code = source.code
    while start < end and code[start].isspace():
        start += 1
    if start >= end or code[start] != "(":
        return (), start
    params: list[Variable] = []
    begin, depth = start + 1, 0
    for match in _COMMA.finditer(code, start, end):
        if match[0] == "(":
            depth += 1
            continue
        if match[0] == ")":
            depth -= 1
        if depth == 0 or (depth == 1 and match[0] == ","):
            # `()` and a trailing comma leave a blank piece; LLVM has written both.
            simple = _SIMPLE.match(code, begin, match.start())
            if simple:
                params.append(Variable(simple[2], "param", simple[1], simple.start(2)))
            elif code[begin : match.start()].strip():
                params.extend(parse_declaration(source, begin, match.start()))
            begin = match.end()
        if depth == 0:
            return tuple(params), begin
    raise source.error(start, "this '(' is never closed")
