"""The scan of one function body: columns of opcodes and offsets, with no operand looked at.

Speed comes from doing in C whatever C can do (`str.split`, dictionary look-ups) and from taking apart, in Python,
only statements that begin with something other than a known opcode: labels, scopes, directives, guards.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

from ssmtool.ptx.declarations import parse_declaration
from ssmtool.ptx.location import LINE_DIRECTIVES
from ssmtool.ptx.source import SourceText

OPCODE = re.compile(r"[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)*")
# The beginning of a function header: linkage, then the kind.
FUNCTION = re.compile(r"\s*((?:\.(?:extern|visible|weak|common)\s*)*)\.(entry|func)\b")
_LEAD = re.compile(
    r"\s*(?:(?P<open>\{)|(?P<close>\})|(?P<label>%?[A-Za-z_$][\w$]*)\s*:(?!:)"
    r"|\.(?P<directive>[A-Za-z_][\w]*)|(?P<guard>@\s*!?\s*[\w$%]+)\s+)?"
)
_STATEMENT_DIRECTIVES = frozenset(
    [
        "reg",
        "sreg",
        "local",
        "shared",
        "param",
        "const",
        "global",
        "tex",
        "pragma",
        "branchtargets",
        "calltargets",
        "callprototype",
        "align",
        "extern",
        "visible",
        "weak",
        "common",
    ]
)
# .reg .b32 \t%r<23>
_REGISTERS = re.compile(r"\.reg\s+\.(?:pred|[busf](?:8|16|32|64))\s+%?[A-Za-z_$][\w$]*(?:<\d{1,9}>)?\s*")
_STRINGS = re.compile(r'\s*"[^"]*"(?:\s*,\s*"[^"]*")*\s*')
_NAMES = re.compile(r"\s*[\w$%]+(?:\s*,\s*[\w$%]+)*\s*")
_LIST = r"\s*(?:\([^()]*\)\s*)?"
_TABLES = {
    "branchtargets": _NAMES,
    "calltargets": _NAMES,
    "callprototype": re.compile(_LIST + r"_\s*" + _LIST + r"(?:\.[a-z_]\w*(?:\s+\d+)?\s*)*"),
}
# The usual beginnings of a statement, as compilers write them, in one match: a label, a .loc, a guard, the opcode.
_USUAL = re.compile(
    r"\s*(?:([A-Za-z_$][\w$]*):\s+)?"
    r"(\.loc[ \t]+\d{1,9}[ \t]+\d{1,9}[ \t]+\d{1,9}"
    r"(?:, ?function_name [\w$]+(?:\+\d+)?, ?inlined_at \d{1,9} \d{1,9} \d{1,9})?[ \t\r]*\n\s*)?"
    r"(@!?[\w$%]+[ \t]+)?([a-z][\w.:]*)(?=\s|\Z)"
)
# What a statement looks like that lacks the `;` before its successor: an operand, then no comma, then a new line
# or a dotted opcode. Operands themselves never stand next to each other without a mark between.
_LOST_SEMICOLON = re.compile(
    r"[\w\])}][^\S\n]*\n\s*[\w$%\[{@.]|[\w\])}]\s+(?:@!?[\w$%]+\s+)?[a-z][a-z0-9_]*\.[a-z]|[\w\])}]\s*@"
)


@dataclass(slots=True)
class Body:
    """Columns, one row per instruction, and what stands between the instructions.

    `starts` are offsets at or (only blanks) before the instruction's guard or opcode, `ends` those of its `;`.
    `scopes[i]` is the parent of scope i. `scope_changes` are (instruction index, scope) pairs in order.
    `labels` are (name, instruction index, offset, scope); `declarations` are (start, end, scope);
    `pragmas` are (start, end, instruction index); `tables` are what a label names (`.branchtargets` and its like).
    """

    opcodes: list[str] = field(default_factory=list)
    starts: array[int] = field(default_factory=lambda: array("Q"))
    ends: array[int] = field(default_factory=lambda: array("Q"))
    scopes: list[int] = field(default_factory=lambda: [-1])
    scope_changes: list[tuple[int, int]] = field(default_factory=list)
    declarations: list[tuple[int, int, int]] = field(default_factory=list)
    labels: list[tuple[str, int, int, int]] = field(default_factory=list)
    pragmas: list[tuple[int, int, int]] = field(default_factory=list)
    tables: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    loc_rows: list[int] = field(default_factory=list)
    loc_offsets: list[int] = field(default_factory=list)
    unknown: list[tuple[int, int]] = field(default_factory=list)


class _Scanner:
    def __init__(self, source: SourceText, opcodes: dict[str, str]) -> None:
        self.source = source
        self.code = source.code
        self.known = opcodes
        self.body = Body()
        self.stack = [0]

    def usual(self, piece: str, start: int, end: int) -> bool:
        """Take in a statement of a usual form; False, and nothing done, when it has another."""
        match = _USUAL.match(piece)
        if match is None:
            return False
        label, loc, _, opcode = match.groups()
        text = self.known.get(opcode)
        if text is None:
            return False
        rest = piece[match.end() :]
        if "\n" in rest or "." in rest or "@" in rest:
            self.check(start + match.end(), end)
        body = self.body
        at = start
        if label is not None:
            body.labels.append((label, len(body.opcodes), start + match.start(1), self.stack[-1]))
            at = start + match.end(1) + 1
        if loc is not None:
            body.loc_rows.append(len(body.opcodes))
            body.loc_offsets.append(start + match.start(2))
            at = start + match.end(2)
        body.opcodes.append(text)
        body.starts.append(at)
        body.ends.append(end)
        return True

    def slow(self, start: int, end: int, complete: bool) -> None:
        """A statement that does not start with a known opcode. Without `complete`, `end` is not at a `;`."""
        code, body = self.code, self.body
        position = start
        named: str | None = None
        while True:
            match = _LEAD.match(code, position, end)
            assert match is not None
            kind = match.lastgroup
            if kind is None:
                self.instruction(match.end(), match.end(), end, complete)
                return
            position = match.end()
            if kind == "label":
                named = match["label"]
                body.labels.append((named, len(body.opcodes), match.start(kind), self.stack[-1]))
            elif kind == "directive":
                offset = match.start(kind) - 1
                done = self.directive(match[kind], named, offset, position, end, complete)
                if done is None:
                    return
                position = done
            elif kind == "open":
                body.scopes.append(self.stack[-1])
                self.stack.append(len(body.scopes) - 1)
                body.scope_changes.append((len(body.opcodes), self.stack[-1]))
            elif kind == "close":
                if len(self.stack) == 1:
                    raise self.source.error(match.start(kind), "'}' closes nothing here")
                self.stack.pop()
                body.scope_changes.append((len(body.opcodes), self.stack[-1]))
            else:
                self.instruction(match.start(kind), position, end, complete)
                return

    def instruction(self, start: int, opcode: int, end: int, complete: bool) -> None:
        """Record the instruction whose guard is at `start` and whose opcode is at `opcode`."""
        match = OPCODE.match(self.code, opcode, end)
        if match is None:
            if opcode >= end and start == opcode and (not complete or self.code[end] == ";"):
                return  # blanks before the end of the body, or an empty statement
            found = self.code[opcode:end].split(None, 1)
            what = repr(found[0][:40]) if found else "';'"
            raise self.source.error(opcode, f"expected an instruction, found {what}")
        if not complete:
            raise self.source.error(match.start(), f"this {match[0]!r} has no ';'")
        text = self.known.setdefault(match[0], match[0])
        after = match.end()
        if after < end and not (self.code[after].isspace() or self.code[after] in "%{[(!_"):
            word = self.code[opcode:end].split(None, 1)[0][:60]
            raise self.source.error(opcode, f"expected an instruction, found {word!r}")
        rest = self.code[after:end]
        if "\n" in rest or "." in rest or "@" in rest:
            self.check(after, end)
        self.body.opcodes.append(text)
        self.body.starts.append(start)
        self.body.ends.append(end)

    def check(self, start: int, end: int) -> None:
        """Raise when two statements were taken for one because a `;` is missing."""
        lost = _LOST_SEMICOLON.search(self.code, start, end)
        if lost:
            raise self.source.error(lost.start() + 1, "expected ',' or ';' here: a ';' is missing")

    def declaration(self, start: int, end: int) -> None:
        """Keep a declaration's place, once it is known to be one: without its `;` it would hide an instruction."""
        if not _REGISTERS.fullmatch(self.code, start, end):
            parse_declaration(self.source, start, end)
        self.body.declarations.append((start, end, self.stack[-1]))

    def directive(self, word: str, named: str | None, start: int, after: int, end: int, complete: bool) -> int | None:
        """Record a directive; where the statement goes on after it, or None when it ends the statement."""
        body = self.body
        if FUNCTION.match(self.code, start):
            raise self.source.error(start, "a function begins inside another one: a '}' is missing before this")
        if word in _STATEMENT_DIRECTIVES:
            if not complete:
                raise self.source.error(start, f"this '.{word}' has no ';'")
            if word in _TABLES:
                if named is None or not _TABLES[word].fullmatch(self.code, after, end):
                    raise self.source.error(start, f"cannot read this '.{word}': a label or a ';' is missing")
                body.tables[named] = (word, after, end)
                body.labels.pop()
            elif word == "pragma":
                if not _STRINGS.fullmatch(self.code, after, end):
                    raise self.source.error(after, "expected strings and ';' after .pragma")
                body.pragmas.append((after, end, len(body.opcodes)))
            else:
                self.declaration(start, end)
            return None
        known = LINE_DIRECTIVES.get(word)
        match = known.match(self.code, start, end) if known else None
        if match:
            if word == "loc":
                body.loc_rows.append(len(body.opcodes))
                body.loc_offsets.append(start)
            return match.end()
        newline = self.code.find("\n", after, end)
        body.unknown.append((start, end if newline < 0 else newline))
        if newline < 0:
            return None if complete else end
        return newline


def scan_body(source: SourceText, start: int, end: int, opcodes: dict[str, str]) -> Body:
    """Scan `source.code[start:end]`, the text between a function's outer braces.

    `opcodes` interns opcode spellings and is shared by the functions of a module.
    """
    scanner = _Scanner(source, opcodes)
    body = scanner.body
    add_opcode, add_start, add_end = body.opcodes.append, body.starts.append, body.ends.append
    known, usual, slow, check = opcodes.get, scanner.usual, scanner.slow, scanner.check
    pieces = source.code[start:end].split(";")
    last = pieces.pop()
    position = start
    for piece in pieces:
        stop = position + len(piece)
        words = piece.split(None, 1)
        text = known(words[0]) if words else None
        if text is not None:
            if len(words) == 2:
                rest = words[1]
                if "\n" in rest or "." in rest or "@" in rest:
                    check(stop - len(rest), stop)
            add_opcode(text)
            add_start(position)
            add_end(stop)
        elif not usual(piece, position, stop):
            slow(position, stop, True)
        position = stop + 1
    if last.strip():
        slow(position, end, False)
    if len(scanner.stack) != 1:
        raise source.error(end, "a '{' of this function is never closed")
    return body
