"""The text a compiler would see, as far as it is known: `#if` groups decided, macros collected, included files read.

Inactive groups and all directives become blanks. A group that cannot be decided stays in the text and is remembered:
what lies in it is *conditional*, never silently present or absent. Where the caller has included files put in, their
text stands after the `#include`; without, `code` has the length of the file and its offsets are the file's own.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ssmtool.csource.conditions import evaluate
from ssmtool.csource.macros import EndlessMacroError, Macro, UndecidableError, expand
from ssmtool.csource.mask import Lines, Masked, blank, mask
from ssmtool.csource.view import Environment, Group, Resolver, SourceFile, View
from ssmtool.errors import SsmtoolError

_DIRECTIVE = re.compile(r"(?m)^[ \t\f\v]*(?:#|%:)[ \t]*(?P<word>\w*)(?P<rest>[^\n]*)")
_DEFINE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)(?P<parameters>\([^)]*\))?(?P<body>.*)", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)")
_RESERVED = re.compile(r"_[_A-Z]")
_MAX_INCLUDE_DEPTH = 64
_MAX_INCLUDED = 64_000_000
# Expansion in all the conditions of a file together, in tokens.
_MAX_EXPANDED = 5_000_000


def preprocess(
    data: bytes,
    path: Path | str,
    environment: Environment,
    resolve: Resolver | None = None,
    *,
    file: Path | None = None,
    inline: bool = True,
) -> View:
    """Read the file's directives. Raises SsmtoolError for text that is UTF-16 or binary, and for endless includes.

    `resolve` finds included files; they are put into `code`, or with `inline` off read for their macros alone, so that
    offsets in `code` stay those of the file. `file` is where `path`, the name in reports, lies on disk.
    """
    reader = _Preprocessor(environment, resolve, inline)
    return reader.run(mask(data, path), file or Path(path), str(path))


class _Branch(msgspec.Struct):
    """One open `#if`: what surrounds it, this branch's value, and whether an earlier branch was or may be taken."""

    parent: bool | None
    value: bool | None
    taken: bool | None
    condition: str
    start: int
    local_start: int

    @property
    def active(self) -> bool | None:
        if self.parent is False or self.value is False:
            return False
        return True if self.parent and self.value else None


class _Here(msgspec.Struct, frozen=True):
    """A directive, the next one, its place and line in the code, its file; `base` branches are open around that."""

    match: re.Match[str]
    following: re.Match[str] | None
    place: int
    line: int
    base: int
    file: SourceFile
    path: Path


class _Preprocessor:
    def __init__(self, environment: Environment, resolve: Resolver | None, inline: bool) -> None:
        self._environment = environment
        self._resolve = resolve
        self._inline = inline
        # name -> the macro, None when it may or may not be defined; a name #undef'ed for sure moves to _removed.
        self._known: dict[str, Macro | None] = {}
        self._removed: set[str] = set()
        self._stack: list[_Branch] = []
        self._groups: list[Group] = []
        self._history: dict[str, list[Macro]] = {}
        self._includes: list[str] = []
        self._directives: list[int] = []
        self._files: list[SourceFile] = []
        self._headers: list[tuple[str, str]] = []
        self._origins: list[tuple[int, int, int]] = []
        self._once: set[Path] = set()
        self._budget = _MAX_EXPANDED
        self._endless: set[str] = set()
        self._included = 0
        # The code so far, its length and the number of its last line.
        self._pieces: list[str] = []
        self._length = 0
        self._line = 1
        # While a header is read for its macros alone: the place of its #include, where all of it counts as standing.
        self._aside: int | None = None

    def run(self, masked: Masked, path: Path, shown: str) -> View:
        self._read(masked, path, shown, 0)
        undecided: list[Group] = []
        for group in sorted(self._groups, key=lambda group: (group.start, -group.end)):
            if not undecided or group.start >= undecided[-1].end:
                undecided.append(group)
        code = "".join(self._pieces)
        return View(
            masked=masked,
            code=code,
            lines=masked.lines if len(self._origins) == 1 else Lines(code),
            undecided=tuple(undecided),
            macros={name: tuple(macros) for name, macros in self._history.items()},
            includes=tuple(self._includes),
            directives=tuple(self._directives),
            files=tuple(self._files),
            headers=tuple(self._headers),
            origins=tuple(self._origins),
        )

    def _read(self, masked: Masked, path: Path, shown: str, depth: int) -> None:
        """One file, with what it includes, added to the code."""
        file = SourceFile(shown, masked, [])
        self._files.append(file)
        number = len(self._files) - 1
        if self._aside is None:
            self._origins.append((self._line, number, 1))
        base = len(self._stack)
        end = 0
        previous: re.Match[str] | None = None
        for match in (*_DIRECTIVE.finditer(masked.code), None):
            # Each directive is looked at when the next is known: a guard is an #ifndef with its #define below.
            if previous is not None:
                self._emit(masked, end, previous.start(), hide=self._hidden)
                place, line = self._length, self._line
                if self._aside is None:
                    self._directives.append(place)
                self._emit(masked, previous.start(), previous.end(), hide=True)
                end = previous.end()
                word, rest = previous["word"], previous["rest"].rstrip("\r")
                if word == "include" and self._active is not False:
                    self._include(rest.strip(), path, depth, number, masked.line(previous.end()))
                else:
                    if self._aside is not None:
                        line = masked.line(previous.start())
                    here = _Here(previous, match, place, line, base, file, path)
                    self._directive(word, rest, here)
            previous = match
        self._emit(masked, end, len(masked.code), hide=self._hidden)
        while len(self._stack) > base:
            self._close(len(masked.code), self._length, file)

    def _emit(self, masked: Masked, start: int, end: int, *, hide: bool) -> None:
        """A span of a file added to the code; directives have been read, so spliced line ends come back as such."""
        text = masked.code[start:end]
        if hide:
            text = blank(text)
        splices = masked.splices
        first = bisect.bisect_left(splices, start)
        if first < len(splices) and splices[first] < end:
            parts = []
            for splice in splices[first : bisect.bisect_left(splices, end)]:
                parts += [masked.code[start:splice] if not hide else blank(masked.code[start:splice]), "\n"]
                start = splice + 1
            parts.append(masked.code[start:end] if not hide else blank(masked.code[start:end]))
            text = "".join(parts)
        self._append(text)

    def _append(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        self._line += text.count("\n")

    @property
    def _active(self) -> bool | None:
        return self._stack[-1].active if self._stack else True

    @property
    def _hidden(self) -> bool:
        """Whether text here is left out; of headers read aside, what is not sure is left out too."""
        return self._active is False or (self._aside is not None and self._active is None)

    def _place(self, place: int) -> int:
        return place if self._aside is None else self._aside

    def _include(self, text: str, path: Path, depth: int, number: int, line: int) -> None:
        """Read the included file where it can be found; else remember that something is missing."""
        if text[:1] not in ('"', "<") and (macro := self._known.get(text)) is not None:
            text = macro.body
        found = self._resolve(text, path) if self._resolve is not None else None
        if found is None:
            self._includes.append(text)
            return
        if found.path in self._once:
            return
        self._included += len(found.data) + 10_000
        if depth >= _MAX_INCLUDE_DEPTH or self._included > _MAX_INCLUDED:
            raise SsmtoolError(
                f"includes itself, or more than {_MAX_INCLUDED // 1_000_000} MB: its text has no end",
                path=found.shown,
                hint="give it an include guard: #pragma once",
            )
        masked = mask(found.data, found.shown)
        if not self._inline:
            kept = self._pieces, self._length, self._line, self._aside
            self._pieces, self._aside = [], self._place(self._length)
            self._read(masked, found.path, found.shown, depth + 1)
            self._headers.append((found.shown, "".join(self._pieces)))
            self._pieces, self._length, self._line, self._aside = kept
            return
        self._append("\n")
        self._read(masked, found.path, found.shown, depth + 1)
        self._append("\n")
        self._origins.append((self._line, number, line))

    def _directive(self, word: str, rest: str, here: _Here) -> None:
        if word in ("if", "ifdef", "ifndef"):
            outermost = len(self._stack) == here.base
            value = self._condition(word, rest, here.following if outermost else None)
            condition = f"#{word}{rest}".rstrip()
            self._stack.append(_Branch(self._active, value, False, condition, self._length, here.match.end()))
        elif word in ("elif", "elifdef", "elifndef", "else") and len(self._stack) > here.base:
            self._next_branch(word, rest, here)
        elif word == "endif" and len(self._stack) > here.base:
            self._close(here.match.start(), here.place, here.file)
        elif self._active is False:
            return
        elif word == "define":
            self._define(rest, here)
        elif word == "undef" and (name := _NAME.match(rest)):
            self._undefine(name[1], here)
        elif word == "pragma" and rest.strip() == "once":
            self._once.add(here.path)

    def _next_branch(self, word: str, rest: str, here: _Here) -> None:
        branch = self._stack[-1]
        if branch.taken or branch.value:
            taken: bool | None = True
        else:
            taken = None if branch.taken is None or branch.value is None else False
        self._close(here.match.start(), here.place, here.file)
        value: bool | None = True
        if word != "else":
            # A condition below a branch that is taken is never valued.
            value = False if taken else self._condition("if" + word[4:], rest, None)
        if taken:
            value = False
        elif taken is None and value:
            value = None
        condition = f"#{word}{rest}".rstrip() if word != "else" else f"#else of {branch.condition}"
        self._stack.append(_Branch(branch.parent, value, taken, condition, self._length, here.match.end()))

    def _close(self, local_end: int, end: int, file: SourceFile) -> None:
        branch = self._stack.pop()
        if branch.value is True:
            return
        if self._aside is None and branch.active is None:
            self._groups.append(Group(branch.start, end, branch.condition))
        if branch.active is False and branch.parent is not False:
            file.dropped.append((branch.local_start, local_end, branch.condition))

    def _condition(self, word: str, rest: str, following: re.Match[str] | None) -> bool | None:
        if self._active is False:
            return None  # Whatever it is worth, nothing under it is compiled.
        if word == "if":
            value = evaluate(rest, value_of=self._value, is_defined=self._is_defined, expanded=self._expanded)
            return None if value is None else bool(value)
        name = _NAME.match(rest)
        if not name:
            return None
        if word == "ifndef" and following is not None and following["word"] == "define":
            # The include-guard idiom: the file's own guard is not defined when the file is read first.
            guard = _NAME.match(following["rest"])
            if guard and guard[1] == name[1] and name[1] not in self._known:
                return True
        defined = self._is_defined(name[1])
        return None if defined is None else defined == (word == "ifdef")

    def _is_defined(self, name: str) -> bool | None:
        if name in self._known:
            return None if self._known[name] is None else True
        if name in self._removed or name in self._environment.undefined:
            return False
        if name in self._environment.defined:
            return True
        if self._environment.closed and not self._includes and not _RESERVED.match(name):
            return False
        return None

    def _value(self, name: str) -> int | None:
        """The value of a name that expansion left."""
        if name in ("true", "false"):
            return int(name == "true")
        return 0 if self._is_defined(name) is False else None

    def _expanded(self, tokens: Sequence[str]) -> Sequence[str]:
        if self._budget < 0:
            raise UndecidableError
        try:
            expanded = expand(tokens, self._lookup, keep_defined=True)
        except EndlessMacroError as error:
            self._endless.add(error.name)
            self._budget -= 50_000
            raise
        self._budget -= len(expanded)
        return expanded

    def _lookup(self, name: str) -> Macro | None:
        """The macro that a name surely is."""
        if name in self._endless:
            raise UndecidableError
        if name in self._known:
            return self._known[name]
        value = self._environment.defined.get(name) if name not in self._removed else None
        return None if value is None else Macro(name, None, value, 0, 0)

    def _define(self, rest: str, here: _Here) -> None:
        match = _DEFINE.match(rest)
        if not match:
            return
        parameters = None
        if match["parameters"] is not None:
            inside = match["parameters"][1:-1].strip()
            parameters = tuple(part.strip() for part in inside.split(",")) if inside else ()
        certain = self._active is True
        macro = Macro(
            name=match["name"],
            parameters=parameters,
            body=match["body"].strip(),
            line=here.line,
            offset=self._place(here.place),
            certain=certain,
            header=here.file.shown if self._aside is not None else None,
        )
        self._history.setdefault(macro.name, []).append(macro)
        self._removed.discard(macro.name)
        self._known[macro.name] = macro if certain else None

    def _undefine(self, name: str, here: _Here) -> None:
        certain = self._active is True
        gone = Macro(name, None, "", here.line, self._place(here.place), certain, removed=True)
        if name in self._history:
            self._history[name].append(gone)
        self._known.pop(name, None)
        if certain:
            self._removed.add(name)
        else:
            self._known[name] = None
