"""Comments and line splices taken out of C or CUDA text without moving a byte.

Text is handled as `latin-1` strings throughout this room: one character is one byte, so every offset is a byte offset
and a comment in any other encoding survives untouched.
"""

from __future__ import annotations

import bisect
import re
from pathlib import Path

import msgspec

from ssmtool.files import decode_source

# Order matters: a raw string before a plain one, and numbers before characters, or the separator of 1'000 would open
# a character literal. An unterminated quote matches nothing and is passed over: `#error don't` is legal.
_LEXEME = re.compile(
    r"""
    (?P<line>//(?:[^\n\\]|\\\r?\n|\\)*)
  | (?P<block>/\*(?:.*?\*/|.*\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s"]{0,16})\(.*?\)(?P=tag)")
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<character>'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?\d(?:'?[0-9A-Za-z_.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<splice>\\\r?\n)
    """,
    re.VERBOSE | re.DOTALL,
)
_NOT_NEWLINE = re.compile(r"[^\r\n]")


class Masked(msgspec.Struct, frozen=True):
    """Text whose comments and splices are blanks, and whose raw strings are empty ones.

    `text` is what was read, `comments` are spans, `splices` the offsets of line ends that `code` has a blank for: a
    directive goes on over them.
    """

    text: str
    code: str
    comments: tuple[tuple[int, int], ...]
    splices: tuple[int, ...]
    _line_starts: list[int]

    def line(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return bisect.bisect_right(self._line_starts, offset)

    def column(self, offset: int) -> int:
        """1-based column of a byte offset, in bytes."""
        return offset - self._line_starts[self.line(offset) - 1] + 1


def blank(text: str) -> str:
    """`text` with everything but its line ends turned into blanks."""
    return _NOT_NEWLINE.sub(" ", text)


def mask(data: bytes, path: Path | str) -> Masked:
    """Blank out comments and splices. Raises ProductError for UTF-16 and for NUL bytes."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        decode_source(data, Path(path))
    text = data.decode("latin-1")
    pieces: list[str] = []
    comments: list[tuple[int, int]] = []
    splices: list[int] = []
    end = 0
    if data.startswith(b"\xef\xbb\xbf"):
        pieces.append("   ")
        end = 3
    for match in _LEXEME.finditer(text, end):
        kind = match.lastgroup if match.lastgroup != "tag" else "raw"
        if kind in ("line", "block"):
            comments.append(match.span())
            replacement = blank(match[0])
        elif kind == "splice":
            replacement = " " * len(match[0])
            splices.append(match.end() - 1)
        elif kind == "raw":
            # Its text may look like directives and kernels, and its line ends would end a plain string.
            replacement = '""' + blank(match[0][2:])
        else:
            continue
        pieces.append(text[end : match.start()])
        pieces.append(replacement)
        end = match.end()
    pieces.append(text[end:])
    line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return Masked(
        text=text,
        code="".join(pieces),
        comments=tuple(comments),
        splices=tuple(splices),
        _line_starts=line_starts,
    )
