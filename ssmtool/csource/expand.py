"""Macros that make kernels, expanded: `#define K(name) extern "C" __global__ void name` and its relatives.

Only macros whose body reaches `__global__`, `__launch_bounds__` or `extern` are expanded: they are the ones that hide a
kernel from a parser that has no preprocessor. Lines are kept, columns are not.
"""

from __future__ import annotations

import re

from ssmtool.csource.macros import Macro
from ssmtool.csource.mask import Lines
from ssmtool.csource.view import View
from ssmtool.errors import SsmtoolError

# An open quote takes its line, as it does in `mask`, so that no quote is looked at twice.
_WORD = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|\'[^\'\\\n]*(?:\\.[^\'\\\n]*)*\'?|[A-Za-z_]\w*', re.DOTALL)
_BRACKET = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|[()\[\]{},]', re.DOTALL)
_OPEN = re.compile(r"\s*\(")
_SEED = re.compile(r"\b(?:__global__|__launch_bounds__|extern)\b")
_ROUNDS = 64
_GROWTH = 2_000_000
# Keeps a macro's own name in its body from being expanded again; no source has this character.
_PAINT = "\0"


def expand_kernel_macros(view: View) -> tuple[str, frozenset[int]]:
    """The code with its kernel-making macros expanded, and the 1-based lines an expansion touched.

    Raises SsmtoolError, with the macro's name, when the expansion grows past all bounds or does not come to an end.
    """
    names = _kernel_macros(view)
    code = view.code
    touched: set[int] = set()
    for _ in range(_ROUNDS if names else 0):
        expanded = _Round(code, view, names, touched).run()
        if expanded == code:
            break
        code = expanded
    else:
        if names:
            _Round(code, view, names, touched, last=True).run()
    return code.replace(_PAINT, ""), frozenset(touched)


def _kernel_macros(view: View) -> frozenset[str]:
    """Names whose body mentions a seed word, or another such name, however far down."""
    users: dict[str, list[str]] = {}
    names: list[str] = []
    for name, macros in view.macros.items():
        body = " ".join(macro.body for macro in macros)
        if _SEED.search(body):
            names.append(name)
        for word in set(_WORD.findall(body)):
            if word in view.macros:
                users.setdefault(word, []).append(name)
    known = set(names)
    while names:
        for user in users.get(names.pop(), ()):
            if user not in known:
                known.add(user)
                names.append(user)
    return frozenset(known)


class _Round:
    """One pass over the code, in which every call outside another one's arguments is replaced by its body."""

    def __init__(self, code: str, view: View, names: frozenset[str], touched: set[int], *, last: bool = False) -> None:
        self._code = code
        self._view = view
        self._names = names
        self._touched = touched
        self._last = last
        self._lines = Lines(code)
        self._partners: dict[int, int] | None = None

    def run(self) -> str:
        code = self._code
        pieces: list[str] = []
        grown = 0
        end = at = 0
        while match := _WORD.search(code, at):
            at = match.end()
            if match[0] not in self._names or code.startswith(_PAINT, at):
                continue
            line = self._lines.line(match.start())
            macro = self._definition(match[0], line)
            if macro is None:
                continue
            stop = at
            arguments: tuple[str, ...] = ()
            if macro.parameters is not None:
                call = self._arguments(at)
                if call is None:
                    continue
                stop, arguments = call
            body = _substitute(macro, arguments)
            if body is None:
                continue
            newlines = self._lines.line(stop) - line
            self._touched.update(range(line, line + newlines + 1))
            grown += len(body) - (stop - match.start())
            if self._last or len(code) + grown > len(self._view.code) + _GROWTH:
                path, own_line = self._view.origin(line)
                raise SsmtoolError(
                    f"the macro {match[0]} has no end: its expansion passes "
                    + (f"{_ROUNDS} levels" if self._last else f"{_GROWTH // 1_000_000} MB"),
                    path=path,
                    line=own_line,
                )
            pieces += [code[end : match.start()], body, "\n" * newlines]
            end = at = stop
        pieces.append(code[end:])
        return "".join(pieces)

    def _definition(self, name: str, line: int) -> Macro | None:
        """The definition in force on a line; lines, because earlier expansions have moved the offsets."""
        found = self._view.macros[name]
        low, high = 0, len(found)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if found[middle].line <= line else (low, middle)
        return found[low - 1] if low and not found[low - 1].removed else None

    def _arguments(self, at: int) -> tuple[int, tuple[str, ...]] | None:
        """The arguments of a call whose `(` follows `at`, and the offset after its `)`."""
        opening = _OPEN.match(self._code, at)
        if not opening:
            return None
        if self._partners is None:
            self._partners = self._brackets()
        close = self._partners.get(opening.end() - 1)
        if close is None:
            return None
        arguments: list[str] = []
        depth, start = 0, opening.end()
        for match in _BRACKET.finditer(self._code, start, close):
            if match[0] in "([{":
                depth += 1
            elif match[0] in ")]}":
                depth -= 1
            elif match[0] == "," and depth == 0:
                arguments.append(self._code[start : match.start()].strip())
                start = match.end()
        arguments.append(self._code[start:close].strip())
        return close + 1, tuple(arguments)

    def _brackets(self) -> dict[int, int]:
        """Opening parenthesis -> the bracket that closes it."""
        partners: dict[int, int] = {}
        opened: list[int] = []
        for match in _BRACKET.finditer(self._code):
            if match[0] in "([{":
                opened.append(match.start())
            elif match[0] in ")]}" and opened:
                partners[opened.pop()] = match.start()
        return partners


def _substitute(macro: Macro, arguments: tuple[str, ...]) -> str | None:
    """The body with its parameters replaced; None when the number of arguments does not fit."""
    values: dict[str, str] = {}
    parameters = macro.parameters or ()
    if parameters and parameters[-1] == "...":
        fixed = len(parameters) - 1
        if len(arguments) < fixed:
            return None
        values = {**dict(zip(parameters[:fixed], arguments, strict=False)), "__VA_ARGS__": ", ".join(arguments[fixed:])}
    elif parameters:
        if len(arguments) != len(parameters):
            return None
        values = dict(zip(parameters, arguments, strict=True))
    elif macro.parameters is not None and arguments != ("",):
        return None
    flat = {name: re.sub(r"\s+", " ", value) for name, value in values.items()}
    flat.setdefault(macro.name, macro.name + _PAINT)
    body = _WORD.sub(lambda match: flat.get(match[0], match[0]), macro.body)
    return re.sub(r"\s*##\s*", "", body)
