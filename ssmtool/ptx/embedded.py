"""PTX inside other files: C string constants, byte arrays, or plain PTX, each with a map back to its lines.

Only C's lexical rules are needed: comments, string and character literals with their escapes and line
continuations, raw strings, and the rule that adjacent string literals are one. A bare macro name between two
literals (`"..." FC_PTX_NEXT "..."`) is taken to expand to nothing that matters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from ssmtool.ptx.errors import PtxSyntaxError
from ssmtool.ptx.source import decode

_BLANK = re.compile(r"\s*(?://[^\n]*(?:\n|\Z))?")
_VERSION = re.compile(r"\.version\s+\d+\.\d+")
_BODY_HINT = re.compile(r"\.(?:entry|func|version|target)\b")
# What may stand at a place in C source; the order matters (a raw string before its R is taken for a name).
_C_TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
      |(?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\((?P<rawtext>.*?)\)(?P=fence)")
      |(?P<string>(?:u8|[uUL])?"(?P<body>[^"\\\n]*(?:\\(?:\r\n|.)[^"\\\n]*)*)")
      |(?P<char>'(?:[^'\\\n]|\\.)*')
      |(?P<directive>(?m:^)[ \t]*\#(?:\\\r?\n|[^\n])*)
      |(?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<mark>[{}()\[\];,=])
      |(?P<bad>"|/\*)""",
    re.DOTALL | re.VERBOSE,
)
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]")
_NOT_A_NAME = frozenset(("__attribute__", "alignas", "_Alignas", "__declspec"))
_ESCAPE = re.compile(r"\\(\r?\n|x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b", "e": "\x1b"}


@dataclass(frozen=True, slots=True)
class EmbeddedPtx:
    """One PTX text found in a file.

    `name` is the constant's C name, None for a file that is PTX itself. `host_lines[k]` is the file's line on which
    line k+1 of the PTX begins; empty when the two are the same.
    """

    name: str | None
    text: str
    path: str | None
    host_lines: tuple[int, ...] = ()

    def host_line(self, line: int) -> int:
        """The file's 1-based line for a 1-based line of the PTX."""
        if not self.host_lines:
            return line
        return self.host_lines[min(max(line, 1), len(self.host_lines)) - 1]

    def where(self, line: int) -> str:
        """`file:line` for a 1-based line of the PTX, for messages."""
        return f"{self.path or '<stdin>'}:{self.host_line(line)}"


def extract(data: str | bytes, path: str | None = None) -> list[EmbeddedPtx]:
    """Every PTX text in a file's content, in order.

    A file that begins with `.version` is PTX itself. Anything else is read as C or C++: string constants that
    begin with `.version`, whatever their name, and byte arrays that spell such text. Raises PtxSyntaxError when
    nothing is found, or when a literal is never closed.
    """
    text = decode(data, path) if isinstance(data, bytes) else data
    if not text.strip("\x00 \t\r\n\f\v"):
        raise PtxSyntaxError("this is empty: no PTX in it", path=path, line=1, column=1)
    if _is_ptx(text) or (path or "").endswith(".ptx"):
        return [EmbeddedPtx(None, text, path)]
    found = [item for item in _Scanner(text, path).constants() if _is_ptx(item.text)]
    if not found:
        hint = None
        if _BODY_HINT.search(text):
            hint = "PTX starts with .version; a text that lacks it is cut off at its beginning"
        raise PtxSyntaxError("no PTX in this file: no .version, in no string", path=path, line=1, column=1, hint=hint)
    return found


class _Scanner:
    """One pass over C tokens. `named` is the constant being initialised, once its `=` has been seen."""

    def __init__(self, text: str, path: str | None) -> None:
        self.text = text
        self.path = path
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.found: list[EmbeddedPtx] = []
        self.pieces: list[tuple[int, int, bool]] = []  # (start, end, raw): the present run of literals
        self.numbers: list[tuple[str, int]] | None = None  # the present brace list of bytes
        self.named: str | None = None
        self.last_name: str | None = None
        self.depth = 0  # of `(` and `[`: a name inside them does not name a constant

    def constants(self) -> list[EmbeddedPtx]:
        """Every run of adjacent string literals and every brace list of bytes, with its constant's name."""
        for match in _C_TOKEN.finditer(self.text):
            kind = match.lastgroup
            if kind == "comment":
                continue
            if kind == "bad":
                self._fail(match.start(), "a string" if match[0] == '"' else "a comment")
            elif kind == "string" or kind == "raw":
                self.pieces.append(_piece(match, 0))
            elif self.pieces and kind in ("name", "directive"):
                continue  # a macro, or an #if line, between literals
            else:
                self._flush()
                self._other(str(kind), match)
        self._flush()
        return self.found

    def _other(self, kind: str, match: re.Match[str]) -> None:
        if kind == "directive":
            self._define(match)
        elif kind == "name":
            if self.depth == 0 and match[0] not in _NOT_A_NAME:
                self.last_name = match[0]
        elif kind == "mark":
            self._mark(match[0])
        elif self.numbers is not None:
            self.numbers.append((match[0], match.start()))

    def _mark(self, mark: str) -> None:
        if mark in "([":
            self.depth += 1
        elif mark in ")]":
            self.depth = max(0, self.depth - 1)
        elif mark == "=":
            self.named, self.numbers = self.last_name, None
        elif mark == ";":
            self.named, self.numbers, self.depth = None, None, 0
        elif mark == "{":
            self.numbers = [] if self.named is not None else None
        elif mark == "}":
            if self.numbers:
                self._add_bytes(self.numbers)
            self.numbers = None

    def _line(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset)

    def _fail(self, offset: int, what: str) -> None:
        line = self._line(offset)
        column = offset - self.line_starts[line - 1] + 1
        raise PtxSyntaxError(f"{what} that starts here is never closed", path=self.path, line=line, column=column)

    def _define(self, match: re.Match[str]) -> None:
        """`#define NAME "..." \\` over several lines holds literals as well."""
        define = _DEFINE.match(match[0])
        if define is None or '"' not in match[0]:
            return
        for token in _C_TOKEN.finditer(match[0], define.end()):
            if token.lastgroup in ("string", "raw"):
                self.pieces.append(_piece(token, match.start()))
        self._flush(define[1])

    def _flush(self, name: str | None = None) -> None:
        """End the present run of literals, and keep its text when that is PTX."""
        pieces, self.pieces = self.pieces, []
        if not pieces:
            return
        # Most strings of a program are no PTX: one look at the first saves unescaping the rest.
        head = self.text[pieces[0][0] : min(pieces[0][1], pieces[0][0] + 400)].lstrip()
        if head and head[0] not in "./\\":
            return
        parts: list[tuple[str, int]] = []
        for start, end, raw in pieces:
            if raw:
                parts.append((self.text[start:end], start))
            else:
                self._unescape(start, end, parts)
        self._add(name or self.named or self.last_name, parts)

    def _unescape(self, start: int, end: int, parts: list[tuple[str, int]]) -> None:
        """Append one literal's text in pieces, each with the file offset of its first character."""
        position = start
        for match in _ESCAPE.finditer(self.text, start, end):
            if match.start() > position:
                parts.append((self.text[position : match.start()], position))
            position = match.end()
            code = match[1]
            if code not in ("\n", "\r\n"):  # a line continuation stands for nothing
                parts.append((_unescaped(code), match.start()))
        if end > position:
            parts.append((self.text[position:end], position))

    def _add(self, name: str | None, parts: list[tuple[str, int]]) -> None:
        text = "".join(part for part, _ in parts)
        if not _is_ptx(text):
            return
        # A PTX line begins where its first character stands in the file, whichever literal that is in.
        begins = list(accumulate((len(part) for part, _ in parts), initial=0))
        lines = []
        for start in [0, *(match.end() for match in re.finditer("\n", text))]:
            part = min(bisect_right(begins, start) - 1, len(parts) - 1)
            content, offset = parts[part]
            inside = min(start - begins[part], len(content))
            lines.append(self._line(offset + (inside if content != "\n" else 0)))
        self.found.append(EmbeddedPtx(name, text, self.path, tuple(lines)))

    def _add_bytes(self, numbers: list[tuple[str, int]]) -> None:
        if len(numbers) < 8:
            return
        values = bytearray()
        for word, _ in numbers:
            value = _byte(word)
            if value is None:
                return
            values.append(value)
        # A terminating zero, and the padding some tools add, is no part of the text. A character per byte keeps
        # the places; bytes above 127 only occur in comments and paths.
        text = bytes(values).rstrip(b"\0").decode("latin-1")
        if _is_ptx(text):
            self._add(self.named, list(zip(text, (offset for _, offset in numbers), strict=False)))


def _piece(match: re.Match[str], base: int) -> tuple[int, int, bool]:
    """Span of what a string literal says, and whether it is raw."""
    group = "body" if match.lastgroup == "string" else "rawtext"
    return base + match.start(group), base + match.end(group), group == "rawtext"


def _unescaped(code: str) -> str:
    """The character that the escape `\\code` stands for."""
    if code[0] in "xuU" and len(code) > 1:
        return _character(int(code[1:9], 16))
    if code[0] in "01234567":
        return _character(int(code, 8))
    return _SIMPLE.get(code, code)


def _is_ptx(text: str) -> bool:
    """Whether a text begins with `.version`, comments and blanks apart.

    A loop, not one pattern: a pattern that may stretch a comment over the next tries every way of doing so.
    """
    position = -1
    after = 0
    while after != position:
        position = after
        match = _BLANK.match(text, position)
        after = match.end() if match else position
        if text.startswith("/*", after):
            close = text.find("*/", after + 2)
            if close < 0:
                return False
            after = close + 2
    return _VERSION.match(text, after) is not None


def _character(value: int) -> str:
    return chr(value) if value < 0x110000 and not 0xD800 <= value < 0xE000 else "\ufffd"


def _byte(word: str) -> int | None:
    """The value of a C integer or character literal that fits a byte, else None."""
    if word[0] == "'":
        inner = word[1:-1]
        inner = _ESCAPE.sub(lambda match: _unescaped(match[1]), inner)
        return ord(inner) if len(inner) == 1 and ord(inner) < 256 else None
    digits = word.rstrip("uUlL")
    try:
        value = int(digits, 8) if digits[:1] == "0" and digits.isdigit() else int(digits, 0)
    except ValueError:
        return None
    return value if 0 <= value < 256 else None
