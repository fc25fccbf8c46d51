"""One name put into, taken out of, or corrected in an array's text, in the style of its neighbours.

Every function returns edits, spans and what replaces them, and changes only the bytes of the name, its comma and its
own line. What it cannot do without guessing, it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ssmtool.csource import NameArray, NameEntry
from ssmtool.csource.view import View

# The bytes from the first offset up to the second, replaced by a text.
Edit = tuple[int, int, str]
# How far the layout of a name's neighbours is looked at.
_NEAR = 32


class RefusedError(Exception):
    """The edit would be a guess; the text says why."""


class ArrayText(msgspec.Struct, frozen=True):
    """The array with the file it stands in: `text` as it is, `code` with comments blank, both a byte a character."""

    array: NameArray
    text: str
    code: str

    @classmethod
    def of(cls, array: NameArray, view: View) -> ArrayText:
        """The array found in a preprocessed file."""
        return cls(array, view.masked.text, view.code)

    def line_start(self, offset: int) -> int:
        """The offset of the first byte of a line."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """The offset of the line end, `\\r\\n` or `\\n`, of a line."""
        end = self.text.find("\n", offset)
        if end < 0:
            return len(self.text)
        return end - 1 if self.text[end - 1 : end] == "\r" else end

    def line_break(self, offset: int) -> str:
        """The line end itself."""
        end = self.line_end(offset)
        return "\r\n" if self.text.startswith("\r\n", end) else "\n"

    def alone(self, entry: NameEntry) -> bool:
        """Whether the entry has its line to itself, but for commas and comments that end there."""
        start, end = self.line_start(entry.start), self.line_end(entry.end)
        before, after = self.code[start : entry.start], self.code[entry.end : end]
        if "\n" in self.text[entry.start : entry.end] or before.strip(" \t,") or after.strip(" \t,"):
            return False
        # A block comment that runs on past the line would be cut by an insertion there.
        opened = self.text.rfind("/*", entry.end, end)
        closed = self.text.rfind("*/", start, entry.start)
        leading = self.text[start : entry.start]
        return not (opened >= 0 and "*/" not in self.text[opened:end]) and not (closed >= 0 and "/*" not in leading)

    def comma_after(self, entry: NameEntry) -> int | None:
        """The offset of the comma that follows an entry."""
        match = re.compile(r"\s*,").match(self.code, entry.end, self.array.close)
        return match.end() - 1 if match else None

    def leading_comma(self, entry: NameEntry) -> bool:
        """Whether the comma before the entry opens the entry's own line."""
        return self.code[self.line_start(entry.start) : entry.start].strip().startswith(",")

    def indent(self, entry: NameEntry) -> str:
        """The blanks that open the entry's line."""
        start = self.line_start(entry.start)
        line = self.text[start : entry.start]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def prefix(self, entry: NameEntry) -> str:
        """What opens the line of an entry with a leading comma: blanks, comma, blanks."""
        line = self.code[self.line_start(entry.start) : entry.start]
        return line if re.fullmatch(r"[ \t]*,[ \t]*", line) else f"{self.indent(entry)}, "

    def splice(self, edits: Sequence[Edit]) -> str:
        """The text with spans replaced; of two insertions at one place the first given comes first."""
        pieces: list[str] = []
        at = 0
        for start, end, new in sorted(edits, key=lambda edit: edit[0]):
            pieces += [self.text[at:start], new]
            at = end
        return "".join([*pieces, self.text[at:]])


def _literal(name: str) -> str:
    return f'"{name}"'


def rename(where: ArrayText, index: int, name: str) -> list[Edit]:
    """Entry `index` under another name; its line, comma and comment stay."""
    entry = where.array.entries[index]
    return [(entry.start, entry.end, _literal(name))]


def insert(where: ArrayText, index: int, names: Sequence[str]) -> list[Edit]:
    """`names` from entry `index` on, after the predecessor where there is one. RefusedError for an empty array."""
    entries = where.array.entries
    if not entries:
        raise RefusedError(
            f"{where.array.array} is empty, so there is no layout to follow: write the first name by hand"
        )
    if index == 0:
        return _insert_first(where, names)
    previous = entries[index - 1]
    following = entries[index] if index < len(entries) else None
    if where.alone(previous):
        return _insert_lines(where, previous, following, names)
    separator = _separator(where, index)
    return [(previous.end, previous.end, "".join(separator + _literal(name) for name in names))]


def _insert_lines(
    where: ArrayText, previous: NameEntry, following: NameEntry | None, names: Sequence[str]
) -> list[Edit]:
    """Lines of their own under the predecessor's."""
    end = where.line_end(previous.end)
    new_line = where.line_break(previous.end)
    style = following or previous
    if where.leading_comma(style):
        prefix = where.prefix(style)
        return [(end, end, "".join(f"{new_line}{prefix}{_literal(name)}" for name in names))]
    lines = [f"{new_line}{where.indent(previous)}{_literal(name)}" for name in names]
    if where.comma_after(previous) is not None:
        return [(end, end, "".join(f"{line}," for line in lines))]
    # The last name goes without a comma here: it gets one, and the new last name goes without.
    return [(previous.end, previous.end, ","), (end, end, ",".join(lines))]


def _insert_first(where: ArrayText, names: Sequence[str]) -> list[Edit]:
    entries = where.array.entries
    first = entries[0]
    second = entries[1] if len(entries) > 1 else None
    if second is not None and where.leading_comma(second) and where.alone(first):
        step = f"{where.line_break(first.end)}{where.prefix(second)}"
        return [(first.start, first.start, "".join(f"{_literal(name)}{step}" for name in names))]
    if where.alone(first):
        start = where.line_start(first.start)
        indent, new_line = where.indent(first), where.line_break(first.end)
        return [(start, start, "".join(f"{indent}{_literal(name)},{new_line}" for name in names))]
    separator = _separator(where, 1)
    return [(first.start, first.start, "".join(f"{_literal(name)}{separator}" for name in names))]


def _separator(where: ArrayText, index: int) -> str:
    """What stands between two names on one line, taken from the nearest pair that has just a comma and blanks there."""
    entries = where.array.entries
    near = range(max(1, index - _NEAR), min(len(entries), index + _NEAR + 1))
    for right in sorted(near, key=lambda at: abs(at - index)):
        between = where.text[entries[right - 1].end : entries[right].start]
        if re.fullmatch(r"[ \t]*,[ \t]*", between):
            return between
    return ", "


def remove(where: ArrayText, index: int) -> list[Edit]:
    """Entry `index` taken out. Raises RefusedError where a comment not its own would go with it."""
    entries = where.array.entries
    entry = entries[index]
    last = index == len(entries) - 1
    if len(entries) == 1:
        raise RefusedError(f"{entry.name} is the only name of {where.array.array}: an empty array is not C")
    if where.alone(entry):
        start, end = where.line_start(entry.start), where.line_end(entry.end)
        end += len(where.line_break(entry.end))
        # Neither a line without its comma nor the first of comma-first lines can go without touching a neighbour.
        if where.leading_comma(entry) or _comma_on_line(where, entry):
            return [(start, end, "")]
        if last:
            comma = where.comma_after(entries[index - 1])
            if comma is None:
                raise RefusedError(f"the comma before {entry.name} was not found")
            return [(comma, comma + 1, ""), (start, end, "")]
        raise RefusedError(f"the comma after {entry.name} is on another line (line {entry.line})")
    if not last:
        start, end = entry.start, entries[index + 1].start
        if "\n" in where.text[start:end] and index:
            start, end = entries[index - 1].end, entry.end
    else:
        start, end = entries[index - 1].end, entry.end
    gap = where.text[start : entry.start] + where.text[entry.end : end]
    if gap.strip(" \t\r\n,"):
        raise RefusedError(f"a comment stands beside {entry.name} on line {entry.line}: remove the name by hand")
    return [(start, end, "")]


def _comma_on_line(where: ArrayText, entry: NameEntry) -> bool:
    comma = where.comma_after(entry)
    return comma is not None and comma < where.line_end(entry.end)
