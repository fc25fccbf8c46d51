"""The text a compiler would see, as far as one file can tell: `#if` groups decided, macros collected, offsets kept.

Inactive groups and all directives become blanks. A group that cannot be decided stays in the text and is remembered:
what lies in it is *conditional*, never silently present or absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ssmtool.csource.conditions import evaluate, parse_integer
from ssmtool.csource.mask import Masked, blank, mask

_DIRECTIVE = re.compile(r"(?m)^[ \t\f\v]*#[ \t]*(?P<word>\w*)(?P<rest>[^\n]*)")
_DEFINE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)(?P<parameters>\([^)]*\))?(?P<body>.*)", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)")
_RESERVED = re.compile(r"_[_A-Z]")


class Macro(msgspec.Struct, frozen=True):
    """One `#define`. `parameters` is None for an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: str
    line: int
    offset: int


class Environment(msgspec.Struct, frozen=True):
    """What is known from outside the text.

    `defined` maps a predefined macro to its value, None when only its existence is sure. `undefined` names are sure
    not to be defined. `closed` says that `defined` is complete: then an unreserved name nothing has defined is not
    defined, unless the text includes other files.
    """

    defined: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    undefined: frozenset[str] = frozenset()
    closed: bool = False


class Group(msgspec.Struct, frozen=True):
    """A span under an `#if` branch that is not sure to be compiled; `active` False or None (cannot be told)."""

    start: int
    end: int
    active: bool | None
    condition: str


class View(msgspec.Struct, frozen=True):
    """A preprocessed file: `code` has the length of the file, with comments, directives and inactive groups blank."""

    masked: Masked
    code: str
    groups: tuple[Group, ...]
    macros: Mapping[str, tuple[Macro, ...]]
    includes: tuple[str, ...]
    directives: tuple[int, ...]

    def group_at(self, offset: int, active: bool | None) -> Group | None:
        """The first group of that kind around an offset."""
        for group in self.groups:
            if group.active is active and group.start <= offset < group.end:
                return group
        return None

    def macro(self, name: str, before: int | None = None) -> Macro | None:
        """The one definition of `name`; with `before`, the last one above that offset. None if ambiguous or absent."""
        found = self.macros.get(name, ())
        if before is not None:
            found = tuple(macro for macro in found if macro.offset < before)[-1:]
        return found[0] if len({(macro.parameters, macro.body) for macro in found}) == 1 else None


def defines_from_flags(flags: Iterable[str]) -> dict[str, str | None]:
    """The `-D` macros among compiler flags, in the forms `-DX`, `-DX=1`, `-D X`, `--define-macro=X`."""
    defines: dict[str, str | None] = {}
    pending = False
    for flag in flags:
        if pending:
            definition, pending = flag, False
        elif flag in ("-D", "--define-macro"):
            pending = True
            continue
        elif match := re.match(r"(?:-D|--define-macro=)(.+)", flag):
            definition = match[1]
        else:
            continue
        name, equals, value = definition.partition("=")
        defines[name] = value if equals else "1"
    return defines


def device_environment(target: str, defines: Mapping[str, str | None] | None = None) -> Environment:
    """The device pass of a CUDA compiler for `target` such as `sm_37`; `defines` None means "flags unknown"."""
    digits = re.sub(r"\D", "", target)
    predefined: dict[str, str | None] = {"__CUDACC__": None, "__cplusplus": None, "__CUDA_ARCH__": f"{digits}0"}
    return Environment(defined={**predefined, **(defines or {})}, closed=defines is not None)


def host_environment(path: Path | str) -> Environment:
    """A host compiler reading `path`; only its language is known, from the suffix."""
    if Path(path).suffix == ".c":
        return Environment(undefined=frozenset({"__cplusplus", "__CUDACC__", "__CUDA_ARCH__"}))
    return Environment(undefined=frozenset({"__CUDA_ARCH__"}))


def preprocess(data: bytes, path: Path | str, environment: Environment) -> View:
    """Read the file's directives. Raises ProductError for text that is UTF-16 or binary."""
    masked = mask(data, path)
    return _Preprocessor(masked, environment).run()


class _Branch(msgspec.Struct):
    """One open `#if`: what surrounds it, this branch's value, and whether an earlier branch was or may be taken."""

    parent: bool | None
    value: bool | None
    taken: bool | None
    condition: str
    start: int

    @property
    def active(self) -> bool | None:
        if self.parent is False or self.value is False:
            return False
        return True if self.parent and self.value else None


class _Preprocessor:
    def __init__(self, masked: Masked, environment: Environment) -> None:
        self._masked = masked
        self._environment = environment
        # name -> the macro, None when it may or may not be defined; a name #undef'ed for sure moves to _removed.
        self._known: dict[str, Macro | None] = {}
        self._removed: set[str] = set()
        self._stack: list[_Branch] = []
        self._groups: list[Group] = []
        self._history: dict[str, list[Macro]] = {}
        self._includes: list[str] = []

    def run(self) -> View:
        code = self._masked.code
        pieces: list[str] = []
        directives: list[int] = []
        end = 0
        matches = list(_DIRECTIVE.finditer(code))
        for index, match in enumerate(matches):
            pieces.append(self._visible(code[end : match.start()]))
            pieces.append(blank(match[0]))
            end = match.end()
            directives.append(match.start())
            self._directive(match["word"], match["rest"].rstrip("\r"), match, matches[index + 1 :][:1])
        pieces.append(self._visible(code[end:]))
        while self._stack:
            self._close(len(code))
        self._groups.sort(key=lambda group: group.start)
        visible = list("".join(pieces))
        for splice in self._masked.splices:
            # Directives have been read; from here on lines are counted.
            visible[splice] = "\n"
        return View(
            masked=self._masked,
            code="".join(visible),
            groups=tuple(self._groups),
            macros={name: tuple(macros) for name, macros in self._history.items()},
            includes=tuple(self._includes),
            directives=tuple(directives),
        )

    def _visible(self, text: str) -> str:
        return blank(text) if self._active is False else text

    @property
    def _active(self) -> bool | None:
        return self._stack[-1].active if self._stack else True

    def _directive(self, word: str, rest: str, match: re.Match[str], following: list[re.Match[str]]) -> None:
        if word in ("if", "ifdef", "ifndef"):
            value = self._condition(word, rest, following)
            self._stack.append(_Branch(self._active, value, False, f"#{word}{rest}".rstrip(), match.end()))
        elif word in ("elif", "elifdef", "elifndef", "else") and self._stack:
            self._next_branch(word, rest, match)
        elif word == "endif" and self._stack:
            self._close(match.start())
        elif self._active is False:
            return
        elif word == "define":
            self._define(rest, match.start())
        elif word == "undef" and (name := _NAME.match(rest)):
            self._known.pop(name[1], None)
            if self._active:
                self._removed.add(name[1])
            else:
                self._known[name[1]] = None
        elif word == "include":
            self._includes.append(rest.strip())

    def _next_branch(self, word: str, rest: str, match: re.Match[str]) -> None:
        branch = self._stack[-1]
        if branch.taken or branch.value:
            taken: bool | None = True
        else:
            taken = None if branch.taken is None or branch.value is None else False
        self._close(match.start())
        value: bool | None = True
        if word != "else":
            value = self._condition("if" + word[4:], rest, [])
        if taken:
            value = False
        elif taken is None and value:
            value = None
        condition = f"#{word}{rest}".rstrip() if word != "else" else f"#else of {branch.condition}"
        self._stack.append(_Branch(branch.parent, value, taken, condition, match.end()))

    def _close(self, end: int) -> None:
        branch = self._stack.pop()
        if branch.value is not True:
            self._groups.append(Group(branch.start, end, branch.active, branch.condition))

    def _condition(self, word: str, rest: str, following: list[re.Match[str]]) -> bool | None:
        if word == "if":
            value = evaluate(rest, value_of=self._value, is_defined=self._is_defined)
            return None if value is None else bool(value)
        name = _NAME.match(rest)
        if not name:
            return None
        if word == "ifndef" and following and following[0]["word"] == "define":
            # The include-guard idiom: the file's own guard is not defined when the file is read first.
            guard = _NAME.match(following[0]["rest"])
            if guard and guard[1] == name[1] and name[1] not in self._known and not self._stack:
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

    def _value(self, name: str, depth: int = 0) -> int | None:
        if name in ("true", "false"):
            return int(name == "true")
        defined = self._is_defined(name)
        if not defined:
            return None if defined is None else 0
        macro = self._known.get(name)
        body = macro.body if macro else self._environment.defined[name]
        if body is None or (macro and macro.parameters is not None) or depth > 16:
            return None
        number = parse_integer(body.strip())
        if number is not None:
            return number
        return evaluate(body, value_of=lambda other: self._value(other, depth + 1), is_defined=self._is_defined)

    def _define(self, rest: str, offset: int) -> None:
        match = _DEFINE.match(rest)
        if not match:
            return
        parameters = None
        if match["parameters"] is not None:
            inside = match["parameters"][1:-1].strip()
            parameters = tuple(part.strip() for part in inside.split(",")) if inside else ()
        macro = Macro(match["name"], parameters, match["body"].strip(), self._masked.line(offset), offset)
        self._history.setdefault(macro.name, []).append(macro)
        self._removed.discard(macro.name)
        self._known[macro.name] = macro if self._active else None
