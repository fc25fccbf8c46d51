"""Comments and line splices taken out of C or CUDA text without moving a byte.

Text is handled as `latin-1` strings throughout this room: one character is one byte, so every offset is a byte offset
and a comment in any other encoding survives untouched. Whatever the text, time and memory are linear in its length: no
pattern here repeats a group, since the regex engine keeps 150 bytes for every repetition.
"""

from __future__ import annotations

import array
import bisect
import functools
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ssmtool.errors import SsmtoolError
from ssmtool.files import decode_source

# What opens a lexeme, or a run of what opens none. Order matters: a raw string before a word, and numbers before
# characters, or the separator of 1'000 would open a character literal.
_OPENING = re.compile(
    r"""
    (?P<line>//)
  | (?P<block>/\*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s"]{0,16})\()
  | (?P<quote>["'])
  | (?P<number>\.?[0-9][0-9A-Za-z_.']*)
  | (?P<splice>\\\r?\n)
  | (?P<plain>[A-Za-z_][0-9A-Za-z_]*|[^/"'\\0-9A-Za-z_.]+)
    """,
    re.VERBOSE,
)
_RAW_END = re.compile(r'\)(?=([^()\\\s"]{0,16})")')
_STOP_AT = {quote: re.compile(rf"[{quote}\\\n]") for quote in "\"'"}
_BLANKS = bytes(byte if byte in b"\r\n" else 0x20 for byte in range(256))


class Masked(msgspec.Struct, frozen=True):
    """Text whose comments and splices are blanks, and whose raw strings are empty ones.

    `text` is what was read, `comments` are spans, `splices` the offsets of line ends that `code` has a blank for: a
    directive goes on over them.
    """

    text: str
    code: str
    comments: tuple[tuple[int, int], ...]
    splices: tuple[int, ...]
    lines: Lines

    def line(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return self.lines.line(offset)

    def column(self, offset: int) -> int:
        """1-based column of a byte offset, in bytes."""
        return offset - self.lines.start(self.lines.line(offset)) + 1


class Lines:
    """The line starts of a text: its lines by offset without counting again each time."""

    def __init__(self, text: str) -> None:
        self._starts = array.array("Q", [0])
        self._starts.extend(match.end() for match in re.finditer("\n", text))

    def line(self, offset: int) -> int:
        """1-based line of an offset."""
        return bisect.bisect_right(self._starts, offset)

    def start(self, line: int) -> int:
        """The offset of a 1-based line."""
        return self._starts[line - 1]


def blank(text: str) -> str:
    """`text` with everything but its line ends turned into blanks."""
    return text.encode("latin-1").translate(_BLANKS).decode("latin-1")


@functools.lru_cache(maxsize=4)
def mask(data: bytes, path: Path | str) -> Masked:
    """Blank out comments and splices. Raises SsmtoolError for UTF-16 and for NUL bytes: that is no source text.

    One run asks several questions of one loader; its text is masked once.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        decode_source(data, Path(path))
    text = data.decode("latin-1")
    pieces: list[str] = []
    comments: list[tuple[int, int]] = []
    splices: list[int] = []
    raw_ends: dict[str, list[int]] | None = None
    copied = at = 0
    if data.startswith(b"\xef\xbb\xbf"):
        pieces.append("   ")
        copied = at = 3
    while match := _OPENING.search(text, at):
        kind = match.lastgroup
        start, at = match.span()
        if kind in ("plain", "number"):
            if kind == "number" and text[at - 1] == "'":
                at -= 1  # The separator of 1'000 stands between digits: here a character literal begins.
            continue
        if kind == "quote":
            at = _string_end(text, at, match[0])
            continue
        if kind in ("line", "block"):
            at = _line_end(text, at) if kind == "line" else _block_end(text, at)
            comments.append((start, at))
            replacement = blank(text[start:at])
        elif kind == "splice":
            replacement = " " * (at - start)
            splices.append(at - 1)
        else:
            if raw_ends is None:
                raw_ends = _raw_ends(text, start)
            end = _next(raw_ends.get(match["tag"], ()), at)
            if end is None:
                # Not a raw string, since nothing ends it: a word and a plain string.
                at = text.index('"', start)
                continue
            at = end + len(match["tag"]) + 2
            # Its text may look like directives and kernels, and its line ends would end a plain string.
            replacement = '""' + blank(text[start + 2 : at])
        pieces += [text[copied:start], replacement]
        copied = at
    pieces.append(text[copied:])
    return Masked(text, "".join(pieces), tuple(comments), tuple(splices), Lines(text))


def _line_end(text: str, at: int) -> int:
    """The end of a `//` comment, which goes on over spliced lines."""
    while True:
        end = text.find("\n", at)
        if end < 0:
            return len(text)
        if not text.endswith(("\\", "\\\r"), at, end):
            return end
        at = end + 1


def _block_end(text: str, at: int) -> int:
    end = text.find("*/", at)
    return len(text) if end < 0 else end + 2


def _string_end(text: str, at: int, quote: str) -> int:
    """The offset after a string or character; one that its line does not end takes the line: `#error don't` is legal.

    Compilers do the same: what follows an open quote on its line, a comment's opening too, is part of it.
    """
    stop = _STOP_AT[quote]
    while match := stop.search(text, at):
        at = match.end()
        if match[0] == "\n":
            return at - 1
        if match[0] == quote:
            return at
        at += 2 if text.startswith("\r\n", at) else 1
    return len(text)


def _raw_ends(text: str, start: int) -> dict[str, list[int]]:
    """Tag -> the offsets at which `)tag"` stands."""
    ends: dict[str, list[int]] = {}
    for match in _RAW_END.finditer(text, start):
        ends.setdefault(match[1], []).append(match.start())
    return ends


def _next(places: Sequence[int], at: int) -> int | None:
    index = bisect.bisect_left(places, at)
    return places[index] if index < len(places) else None


def refuse_trigraphs(masked: Masked, path: Path | str) -> None:
    """Raise SsmtoolError for a line that ends in `??/`: compilers differ, by their flags, in whether it goes on."""
    match = re.search(r"\?\?/\r?\n", masked.text)
    if match:
        raise SsmtoolError(
            "a line ends in the trigraph ??/, and compiler flags decide whether the next line is a part of it",
            path=path,
            line=masked.line(match.start()),
            hint="write a plain backslash, or put something after ??/",
        )
