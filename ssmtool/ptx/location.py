"""`.file` and `.loc`: from a PTX line to the line of the source it was compiled from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ssmtool.ptx.source import SourceText

# .loc 1 23 5, function_name $L__info_string0, inlined_at 2 40 3
# .loc 1 23 5, function_name .debug_str+16, inlined_at 2 40 3
_LOC = re.compile(
    r"\.loc\s+(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?"
    r"(?:\s*,\s*function_name\s+([\w$.]+)\s*(?:\+\s*(\d{1,9}))?)?"
    r"(?:\s*,\s*inlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9}))?"
)
# .file 1 "a/b.cu"    .file 1 "a/b.cu", 1400000000, 1234
_FILE = re.compile(r'\.file\s+(?:(\d{1,9})\s+)?"([^"\n]*)"(?:\s*,\s*\d+)*')

# The two directives that no `;` ends.
LINE_DIRECTIVES = {"loc": _LOC, "file": _FILE}


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in the compiled source. `file` indexes `Module.files`; line 0 means the compiler named none.

    `function` is the name (mangled) of the inlined function, `inlined_at` the place of the call it was inlined
    into, itself possibly inlined.
    """

    file: int
    line: int
    column: int
    function: str | None = None
    inlined_at: Loc | None = None

    @property
    def outermost(self) -> Loc:
        """The place in the function that was compiled, after following every `inlined_at`."""
        place = self
        while place.inlined_at is not None:
            place = place.inlined_at
        return place


def parse_file(source: SourceText, start: int) -> tuple[int | None, str, int]:
    """(number, path, end) of the `.file` directive at `start`; PtxSyntaxError when it is malformed."""
    match = _FILE.match(source.text, start)
    if match is None:
        raise source.error(start, 'expected .file NUMBER "PATH"')
    return int(match[1]) if match[1] else None, match[2], match.end()


class LocTable:
    """The `.loc` directives of one function, parsed when first asked for.

    An `inlined_at` names only file, line and column; when an earlier `.loc` has just these and was itself inlined,
    that is the rest of the chain.
    """

    __slots__ = ("_cache", "_names", "_offsets", "_parsed", "_seen", "_source")

    def __init__(self, source: SourceText, offsets: list[int], names: DebugStrings) -> None:
        self._source = source
        self._offsets = offsets
        self._names = names
        self._cache: list[Loc | None] = []
        self._seen: dict[tuple[int, int, int], Loc] = {}

    def __getitem__(self, row: int) -> Loc | None:
        while len(self._cache) <= row:
            self._cache.append(self._parse(self._offsets[len(self._cache)]))
        return self._cache[row]

    def _parse(self, offset: int) -> Loc | None:
        match = _LOC.match(self._source.code, offset)
        if match is None:
            return None
        outer = None
        if match[6] is not None:
            call = (int(match[6]), int(match[7]), int(match[8]))
            outer = self._seen.get(call) or Loc(*call)
        function = self._names.find(match[4], int(match[5] or 0)) if match[4] else None
        place = (int(match[1]), int(match[2]), int(match[3] or 0))
        loc = Loc(*place, function, outer)
        # A chain may not lead back to its own place.
        if outer is not None and not _contains(outer, place):
            self._seen[place] = loc
        return loc


def _contains(loc: Loc | None, place: tuple[int, int, int]) -> bool:
    while loc is not None:
        if (loc.file, loc.line, loc.column) == place:
            return True
        loc = loc.inlined_at
    return False


class DebugStrings:
    """The `.debug_str` section, where `.loc` keeps the names of inlined functions."""

    __slots__ = ("_bytes", "_labels", "_source", "_spans")

    def __init__(self, source: SourceText, spans: list[tuple[int, int]]) -> None:
        self._source = source
        self._spans = spans
        self._bytes: bytearray | None = None
        self._labels: dict[str, int] = {}

    def find(self, label: str, offset: int) -> str | None:
        """The zero-terminated string at label+offset; None when the section lacks it."""
        if self._bytes is None:
            self._bytes = self._read()
        base = 0 if label == ".debug_str" else self._labels.get(label)
        if base is None or base + offset >= len(self._bytes):
            return None
        end = self._bytes.find(0, base + offset)
        return self._bytes[base + offset : end if end >= 0 else None].decode("utf-8", errors="replace")

    def _read(self) -> bytearray:
        data = bytearray()
        for start, end in self._spans:
            for line in self._source.code[start:end].splitlines():
                text = line.strip()
                if text.endswith(":"):
                    self._labels[text[:-1].strip()] = len(data)
                elif text.startswith(".b8"):
                    data += bytes(int(word) & 255 for word in re.findall(r"\d+", text[3:]) if len(word) < 4)
        return data
