"""PTX text with its positions, and a copy of it in which comments and strings are blank.

Everything that scans PTX scans `SourceText.code`: it has the same length as the text, so one offset serves both,
but a `;`, `{` or `/` in it is never part of a comment or a string.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from ssmtool.ptx.errors import PtxSyntaxError

# A quote or a slash starts one of these or is an error (the last two alternatives: unterminated).
_NOT_CODE = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|"[^\n]*|/\*', re.DOTALL)
# Tab, newline, vertical tab, form feed, carriage return are blanks; every other control code means binary.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_LONE_CR = re.compile(r"\r(?!\n)")
_NOT_BLANK = re.compile(r"[^\n]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")

_MAGIC = (
    (b"\x7fELF", "an ELF object (a cubin), not PTX text", "extract the PTX with `cuobjdump -ptx`"),
    (b"\x50\xed\x55\xba", "a CUDA fat binary, not PTX text", "extract the PTX with `cuobjdump -ptx`"),
    (b"BC\xc0\xde", "LLVM bitcode, not PTX text", None),
    (b"\x1f\x8b", "a gzip file, not PTX text", "decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file, not PTX text", "decompress it first"),
    (b"\xff\xfe", "UTF-16 text; PTX is ASCII", "convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16 text; PTX is ASCII", "convert it to UTF-8"),
)


def decode(data: bytes, path: str | None = None) -> str:
    """The text of a PTX file's bytes; PtxSyntaxError when they are a known binary format or contain NUL."""
    for magic, what, hint in _MAGIC:
        if data.startswith(magic):
            raise PtxSyntaxError(f"this is {what}", path=path, line=1, column=1, hint=hint)
    # A path in a .file directive or a comment may be in any encoding: damage there must not stop the reading,
    # and anywhere else U+FFFD is refused as a character PTX does not have.
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"':
        if len(found) < 2 or found[-1] != '"':
            raise _UnterminatedError(match.start(), "a string")
        return '"' + "_" * (len(found) - 2) + '"'
    if found == "/*":
        raise _UnterminatedError(match.start(), "a comment")
    if found[1] == "/" or "\n" not in found:
        return " " * len(found)
    return _NOT_BLANK.sub(" ", found)


class _UnterminatedError(Exception):
    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what


class SourceText:
    """PTX text, its blanked copy `code`, and offset -> line and column.

    Raises PtxSyntaxError for empty or binary text, an unterminated comment or string, and characters outside
    comments and strings that PTX does not have.
    """

    __slots__ = ("__dict__", "code", "path", "text")

    def __init__(self, text: str | bytes, path: str | None = None) -> None:
        if isinstance(text, bytes):
            text = decode(text, path)
        if "\r" in text:
            # A lone CR ends a line too: a comment must not swallow the kernels after it.
            text = _LONE_CR.sub("\n", text)
        self.text = text
        self.path = path
        self.code = text  # so that errors below can be placed
        control = _CONTROL.search(text)
        if control:
            what = "an ELF object (a cubin)" if text.startswith("\x7fELF") else "binary data"
            raise self.error(control.start(), f"this is {what}, not PTX text (byte {ord(control[0]):#04x})")
        try:
            self.code = _NOT_CODE.sub(_blank, text)
        except _UnterminatedError as problem:
            raise self.error(problem.offset, f"{problem.what} that starts here is never closed") from None
        if not self.code.isascii():
            bad = _NOT_ASCII.search(self.code)
            assert bad is not None
            raise self.error(bad.start(), f"character {bad[0]!r} is not part of PTX")
        if not self.code.strip():
            raise self.error(0, "this is empty: no PTX in it")

    @cached_property
    def _line_starts(self) -> list[int]:
        # All in C: a generator here took a tenth of the time of an audit.
        return list(accumulate(map((1).__add__, map(len, self.text.split("\n"))), initial=0))[:-1]

    def line(self, offset: int) -> int:
        """1-based line of an offset."""
        return bisect_right(self._line_starts, offset)

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of an offset, the column in characters."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Offset of a 1-based line and column: the inverse of `position`."""
        return self._line_starts[line - 1] + column - 1

    def error(self, offset: int, message: str, hint: str | None = None) -> PtxSyntaxError:
        """An error at an offset, to be raised by the caller."""
        line, column = self.position(min(offset, len(self.text)))
        return PtxSyntaxError(message, path=self.path, line=line, column=column, hint=hint)
