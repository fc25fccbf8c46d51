"""Macros by the token: definitions, and the expansion of an expression as the preprocessor makes it.

An expression is expanded before it is valued, since `#define N 1 + 1` makes `N * 2` three. Names that are no macro, or
not surely one, stay as they are. The work is bounded: a macro that grows without end is named, not followed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

import msgspec

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\.?[0-9][0-9A-Za-z_.']*)
  | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
  | (?P<character>(?:u8|[uUL])?'[^'\\]*(?:\\.[^'\\]*)*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<operator><<=|>>=|\.\.\.|\#\#|<<|>>|<=|>=|==|!=|&&|\|\||->|::|[-+*/%<>!~^&|()?:,\[\]{}.=;\#])
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAX_TEXT = 100_000
_MAX_STEPS = 50_000
_MAX_DEPTH = 40


class Macro(msgspec.Struct, frozen=True):
    """One `#define`, or with `removed` one `#undef`. `parameters` is None for an object-like macro.

    `certain`: no undecided `#if` stands around it. `header`: the file it stands in where that was read for its
    definitions alone, and `line` a line of it.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: str
    line: int
    offset: int
    certain: bool = True
    removed: bool = False
    header: str | None = None


class UndecidableError(Exception):
    """An expression outside what is read here: a syntax error, a value no `#if` may have, a macro without end."""


class EndlessMacroError(UndecidableError):
    """A macro whose expansion passes every bound; `name` is where it begins."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


Lookup = Callable[[str], Macro | None]


def is_word(token: str) -> bool:
    """Whether a token is an identifier."""
    return _WORD.match(token) is not None and token[-1:] not in "\"'"


@functools.lru_cache(maxsize=1024)
def tokens_of(text: str) -> tuple[str, ...]:
    """The tokens of an expression. Raises UndecidableError for a character no expression has, and for endless text."""
    if len(text) > _MAX_TEXT:
        raise UndecidableError
    tokens: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise UndecidableError
        tokens.append(match[match.lastgroup])
        at = match.end()
    return tuple(tokens)


def expand(tokens: Sequence[str], lookup: Lookup, *, keep_defined: bool = False) -> list[str]:
    """The tokens with their macros expanded; with `keep_defined` the operand of `defined` stays.

    Raises EndlessMacroError when a macro grows past all bounds, UndecidableError for a call that does not fit.
    """
    return _Expander(lookup, keep_defined).run([(token, frozenset()) for token in tokens], 0)


_Painted = tuple[str, frozenset[str]]


class _Expander:
    """Prosser's algorithm: each token carries the macros it came out of, which it does not expand again."""

    def __init__(self, lookup: Lookup, keep_defined: bool) -> None:
        self._lookup = lookup
        self._keep_defined = keep_defined
        self._steps = 0

    def run(self, tokens: Sequence[_Painted], depth: int) -> list[str]:
        return [text for text, _ in self._run(tokens, depth)]

    def _run(self, tokens: Sequence[_Painted], depth: int) -> list[_Painted]:
        out: list[_Painted] = []
        work = list(reversed(tokens))
        while work:
            text, hidden = work.pop()
            if self._keep_defined and text == "defined":
                out.append((text, hidden))
                for _ in range(2 if work and work[-1][0] == "(" else 1):
                    out += [work.pop()] if work else []
                continue
            macro = self._lookup(text) if is_word(text) and text not in hidden else None
            if macro is None or (macro.parameters is not None and not (work and work[-1][0] == "(")):
                out.append((text, hidden))
                continue
            arguments = None if macro.parameters is None else _arguments(work)
            body = self._substitute(macro, arguments, depth)
            self._steps += len(body) + 1
            if self._steps > _MAX_STEPS or depth > _MAX_DEPTH:
                raise EndlessMacroError(macro.name)
            inner = hidden | {text}
            work += [(token, inner | painted) for token, painted in reversed(body)]
        return out

    def _substitute(self, macro: Macro, arguments: list[list[_Painted]] | None, depth: int) -> list[_Painted]:
        """The body with its parameters replaced: as written beside `#` and `##`, expanded elsewhere."""
        body = tokens_of(macro.body)
        values = _bind(macro, arguments)
        out: list[_Painted] = []
        join = False
        at = 0
        while at < len(body):
            token = body[at]
            following = body[at + 1] if at + 1 < len(body) else ""
            part: list[_Painted]
            if token == "#" and macro.parameters is not None and following in values:
                part = [(_quoted(values[following]), frozenset())]
                at += 1
            elif token == "##":
                join = True
                at += 1
                continue
            elif token in values:
                raw = join or following == "##"
                part = values[token] if raw else self._run(values[token], depth + 1)
                self._steps += len(part)
            else:
                part = [(token, frozenset())]
            if join and out and part:
                left, painted = out.pop()
                part = [(left + part[0][0], painted), *part[1:]]
            join = False
            out += part
            at += 1
        return out


def _arguments(work: list[_Painted]) -> list[list[_Painted]]:
    """The arguments of a call, taken off `work`, whose last item is the opening parenthesis."""
    work.pop()
    arguments: list[list[_Painted]] = [[]]
    depth = 1
    while work:
        token = work.pop()
        depth += (token[0] == "(") - (token[0] == ")")
        if depth == 0:
            return arguments
        if token[0] == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
    raise UndecidableError


def _bind(macro: Macro, arguments: list[list[_Painted]] | None) -> dict[str, list[_Painted]]:
    if arguments is None:
        return {}
    parameters = macro.parameters or ()
    if parameters and parameters[-1].endswith("..."):
        rest: list[_Painted] = []
        for index, argument in enumerate(arguments[len(parameters) - 1 :]):
            rest += [(",", frozenset())] * bool(index) + argument
        name = parameters[-1].removesuffix("...").strip() or "__VA_ARGS__"
        if len(arguments) < len(parameters) - 1:
            raise UndecidableError
        return {**dict(zip(parameters[:-1], arguments, strict=False)), name: rest}
    if len(arguments) != len(parameters) and not (not parameters and arguments == [[]]):
        raise UndecidableError
    return dict(zip(parameters, arguments, strict=False))


def _quoted(argument: list[_Painted]) -> str:
    """`#x`. What blanks several tokens had between them is not known here."""
    if len(argument) != 1 or argument[0][0][:1] in "\"'":
        raise UndecidableError
    return f'"{argument[0][0]}"'
