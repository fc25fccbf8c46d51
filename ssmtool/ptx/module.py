"""A whole PTX module, and the scan of what stands outside its functions."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ssmtool.ptx import isa, modifiers
from ssmtool.ptx.body import FUNCTION, scan_body
from ssmtool.ptx.declarations import LINKAGE, SPACES, Variable, parse_declaration
from ssmtool.ptx.errors import PtxSyntaxError
from ssmtool.ptx.function import Function, Header, ModuleFacts
from ssmtool.ptx.header import header_end, parse_header
from ssmtool.ptx.location import LINE_DIRECTIVES, DebugStrings, parse_file
from ssmtool.ptx.source import SourceText

_ITEM = re.compile(r"\s*(?:\.([A-Za-z_]\w*)|(@@DWARF[^\n]*))")
_VERSION = re.compile(r"\s+(\d{1,3})\.(\d{1,3})(?![\w.])")
_TARGET = re.compile(r"\s+(\w+(?:\s*,\s*\w+)*)")
_ADDRESS_SIZE = re.compile(r"\s+(32|64)(?!\w)")
_SECTION = re.compile(r"\s+([\w.$]+)[^{};]*\{")
_SYMBOL_PAIR = re.compile(r"\s+([\w$%]+)\s*,\s*([\w$%]+)\s*$")
# A pair of braces without a `;` between them is a vector operand, seen whole: half the work of seeing each brace.
_BRACES = re.compile(r"\{[^{};]*\}|[{}]")
_STOP = re.compile(r"[;\n{]")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something the front end does not know and keeps as it is: a directive, or an instruction's opcode or modifier.

    `text` is verbatim, without the `;` that ends it; `why` says what of a known instruction is not known.
    """

    line: int
    column: int
    text: str
    why: str | None = None


class Module:
    """A parsed PTX module.

    `version` is (major, minor); `target` the first name of `.target` and `target_options` the others (`debug`,
    `texmode_independent`); `address_size` 32 or 64. `files` maps the numbers of `.file` to paths. `functions` are
    those with a body, in order; `declarations` the headers of those without. `variables` are the module's own.
    `aliases` maps alias to aliasee. `pragmas` are verbatim. `sections` are (name, start, end) of debug data.

    Raises PtxSyntaxError, with line and column, for anything that is not PTX or is damaged.
    """

    def __init__(self, text: str | bytes, path: str | None = None) -> None:
        self.source = SourceText(text, path)
        self.path = path
        self.version: tuple[int, int] = (0, 0)
        self.target = ""
        self.target_options: tuple[str, ...] = ()
        self.address_size = 32  # what the ISA says for a module without .address_size
        self.files: dict[int, str] = {}
        self.variables: list[Variable] = []
        self.functions: list[Function] = []
        self.declarations: list[Header] = []
        self.aliases: dict[str, str] = {}
        self.pragmas: list[str] = []
        self.sections: list[tuple[str, int, int]] = []
        self.unknown: list[Unknown] = []
        self._names_spans: list[tuple[int, int]] = []
        self._facts = ModuleFacts(DebugStrings(self.source, self._names_spans))
        self._opcodes: dict[str, str] = {}
        self._tidy = True  # every function so far was closed at the beginning of a line
        self._scan()
        self._unknown_instructions()

    @property
    def text(self) -> str:
        """The PTX as given."""
        return self.source.text

    @property
    def entries(self) -> list[Function]:
        """The kernels."""
        return [function for function in self.functions if function.kind == "entry"]

    def function(self, name: str) -> Function | None:
        """The defined function of that name, aliases followed."""
        name = self.aliases.get(name, name)
        return next((function for function in self.functions if function.name == name), None)

    def variable(self, name: str) -> Variable | None:
        """The module's variable of that name."""
        return next((variable for variable in self.variables if variable.name == name), None)

    def require_entries(self) -> list[Function]:
        """The kernels; PtxSyntaxError when there are none, so that nothing found never reads as nothing wrong."""
        entries = self.entries
        if not entries:
            found = f"{len(self.functions)} .func" if self.functions else "no .func either"
            raise PtxSyntaxError(f"no .entry in this PTX ({found})", path=self.path, line=1, column=1)
        return entries

    def histogram(self) -> Counter[str]:
        """How many times each opcode spelling occurs in all functions; parses no operands."""
        total: Counter[str] = Counter()
        for function in self.functions:
            total.update(function.opcodes)
        return total

    def _scan(self) -> None:
        source, position = self.source, 0
        code = source.code
        while True:
            match = _ITEM.match(code, position)
            if match is None:
                rest = len(code) - len(code[position:].lstrip())
                if rest >= len(code):
                    break
                if code[rest] in "{}":
                    raise source.error(rest, f"unmatched {code[rest]!r} outside any function")
                word = code[rest : rest + 200].split(None, 1)[0][:40]
                raise source.error(rest, f"expected a PTX directive, found {word!r}")
            word = match[1] or "@@DWARF"
            start = match.start(match.lastindex or 0) - (1 if match[1] else 0)
            if not self.version[0] and word != "version":
                raise source.error(start, f"PTX starts with .version, this starts with {code[start : match.end()]!r}")
            position = self._item(word, start, match.end())
        if not self.target:
            raise source.error(len(code.rstrip()), "no .target: the text is cut off after .version")

    def _item(self, word: str, start: int, after: int) -> int:
        """Take in the directive at `start`, whose name ends at `after`; the offset where the next may begin."""
        source = self.source
        code = source.code
        if word in ("entry", "func") or word in LINKAGE:
            match = FUNCTION.match(code, start)
            if match:
                return self._function(match)
        if word in SPACES or word in LINKAGE or word in ("align", "attribute"):
            end = self._semicolon(start, word)
            self.variables.extend(parse_declaration(source, start, end))
            return end + 1
        if word == "version":
            return self._version(start, after)
        if word == "target":
            match = self._need(_TARGET, start, after, ".target NAME")
            names = [name.strip() for name in match[1].split(",")]
            if not self.target:
                self.target = names[0]
            self.target_options += tuple(names[1:])
            return match.end()
        if word == "address_size":
            match = self._need(_ADDRESS_SIZE, start, after, ".address_size 32 or 64")
            self.address_size = int(match[1])
            return match.end()
        if word == "file":
            number, path, end = parse_file(source, start)
            if number is not None:
                self.files[number] = path
            return end
        if word == "loc":
            match = LINE_DIRECTIVES["loc"].match(code, start)
            return match.end() if match else self._unknown(start, after)
        if word == "section":
            return self._section(start, after)
        if word == "pragma":
            end = self._semicolon(start, word)
            self.pragmas.append(source.text[after:end].strip())
            return end + 1
        if word == "alias":
            end = self._semicolon(start, word)
            match = _SYMBOL_PAIR.match(code, after, end)
            if match is None:
                raise source.error(start, "expected .alias NAME, FUNCTION;")
            self.aliases[match[1]] = match[2]
            return end + 1
        if word == "@@DWARF":
            return after  # debug data of PTX ISA 1.x, one directive a line
        return self._unknown(start, after)

    def _need(self, pattern: re.Pattern[str], start: int, after: int, form: str) -> re.Match[str]:
        match = pattern.match(self.source.code, after)
        if match is None:
            raise self.source.error(start, f"expected {form}")
        return match

    def _semicolon(self, start: int, word: str) -> int:
        end = self.source.code.find(";", start)
        if end < 0:
            raise self.source.error(start, f"this .{word} has no ';': the text is cut off or the ';' is missing")
        return end

    def _version(self, start: int, after: int) -> int:
        match = self._need(_VERSION, start, after, ".version MAJOR.MINOR")
        if self.version[0]:
            raise self.source.error(
                start, "a second .version: two PTX modules in one text", hint="give each module its own file"
            )
        self.version = (int(match[1]), int(match[2]))
        if not self.version[0]:
            raise self.source.error(start, "there is no PTX ISA version 0")
        return match.end()

    def _section(self, start: int, after: int) -> int:
        match = self._need(_SECTION, start, after, ".section NAME {")
        end = self.source.code.find("}", match.end())
        if end < 0:
            raise self.source.error(match.end() - 1, f"section {match[1]} is never closed: the text is cut off")
        self.sections.append((match[1], match.end(), end))
        if match[1] == ".debug_str":
            self._names_spans.append((match.end(), end))
        return end + 1

    def _function(self, match: re.Match[str]) -> int:
        source = self.source
        end = header_end(source, match.start())
        header = parse_header(source, match, end)
        if any(directive.name == "noreturn" for directive in header.directives):
            self._facts.noreturn.add(header.name)
        if source.code[end] == ";":
            self.declarations.append(header)
            return end + 1
        close = self._likely_brace(end, header.name) if self._tidy else self._matching_brace(end, header.name)
        try:
            body = scan_body(source, end + 1, close, self._opcodes)
        except PtxSyntaxError:
            exact = self._matching_brace(end, header.name)
            if exact == close:
                raise
            close, self._tidy = exact, False
            body = scan_body(source, end + 1, close, self._opcodes)
        function = Function(source, header, body, close + 1, self._facts)
        self.functions.append(function)
        for begin, stop in body.unknown:
            self._report(begin, stop)
        return close + 1

    def _likely_brace(self, start: int, name: str) -> int:
        """The first `}` at the beginning of a line at which the braces since `start` are as many as their ends.

        Compilers close every function this way, and counting is faster than matching. Where it is wrong the body
        closes more than it opens, and its scan says so.
        """
        code, depth, position = self.source.code, 0, start
        while (close := code.find("\n}", position)) >= 0:
            depth += code.count("{", position, close) - code.count("}", position, close)
            if depth == 1:
                return close + 1
            depth -= 1
            position = close + 2
        self._tidy = False
        return self._matching_brace(start, name)

    def _matching_brace(self, start: int, name: str) -> int:
        depth = 0
        for match in _BRACES.finditer(self.source.code, start):
            mark = match[0]
            if mark == "{":
                depth += 1
            elif mark == "}":
                depth -= 1
                if depth == 0:
                    return match.start()
            elif depth == 0:
                return match.end() - 1  # a body without a single statement
        raise self.source.error(
            start, f"the '{{' of {name!r} is never closed: the text is cut off or a '}}' is missing"
        )

    def _unknown(self, start: int, after: int) -> int:
        """Keep an unknown directive: up to `;` or the end of its line, with the braces it opens."""
        code = self.source.code
        match = _STOP.search(code, after)
        if match is None:
            raise self.source.error(start, f"unknown directive {code[start:after]!r}, and the text ends there")
        end = match.end()
        if match[0] == "{":
            end = self._matching_brace(match.start(), code[start:after]) + 1
        self._report(start, end)
        return end

    def _report(self, start: int, end: int, why: str | None = None) -> None:
        line, column = self.source.position(start)
        self.unknown.append(Unknown(line, column, self.source.text[start:end].rstrip("; \t\r\n"), why))

    def _unknown_instructions(self) -> None:
        strange = {
            opcode: modifiers.problem(opcode)
            for opcode in self._opcodes
            if isa.info(opcode) is None or modifiers.problem(opcode)
        }
        if not strange:
            return
        for function in self.functions:
            for index, opcode in enumerate(function.opcodes):
                if opcode in strange:
                    self._report(*function.instructions[index].span, strange[opcode])


def parse(text: str | bytes, path: str | None = None) -> Module:
    """Parse PTX; `path` is only for messages. Raises PtxSyntaxError as `Module` does."""
    return Module(text, path)
