"""Macros that make kernels, expanded: `#define K(name) extern "C" __global__ void name` and its relatives.

Only macros whose body reaches `__global__`, `__launch_bounds__` or `extern` are expanded: they are the ones that hide a
kernel from a parser that has no preprocessor. Lines are kept, columns are not.
"""

from __future__ import annotations

import re

from ssmtool.csource.preprocess import Macro, View

_WORD = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*', re.DOTALL)
_SEED = re.compile(r"\b(?:__global__|__launch_bounds__|extern)\b")
_ROUNDS = 8
_LIMIT = 4_000_000


def expand_kernel_macros(view: View) -> tuple[str, frozenset[int]]:
    """The code with its kernel-making macros expanded, and the 1-based lines an expansion touched."""
    names = _kernel_macros(view)
    code = view.code
    touched: set[int] = set()
    for _ in range(_ROUNDS if names else 0):
        expanded = _expand_once(code, view, names, touched)
        if expanded == code or len(expanded) > _LIMIT:
            break
        code = expanded
    return code, frozenset(touched)


def _kernel_macros(view: View) -> frozenset[str]:
    """Names whose body mentions a seed word, or another such name, however far down."""
    names: set[str] = set()
    grew = True
    while grew:
        grew = False
        for name, macros in view.macros.items():
            if name in names:
                continue
            body = " ".join(macro.body for macro in macros)
            if _SEED.search(body) or any(word in names for word in _WORD.findall(body)):
                names.add(name)
                grew = True
    return frozenset(names)


def _expand_once(code: str, view: View, names: frozenset[str], touched: set[int]) -> str:
    pieces: list[str] = []
    end = 0
    at = 0
    while match := _WORD.search(code, at):
        at = match.end()
        if match[0] not in names:
            continue
        line = code.count("\n", 0, match.start()) + 1
        macro = _definition(view, match[0], line)
        if macro is None:
            continue
        stop = match.end()
        arguments: tuple[str, ...] = ()
        if macro.parameters is not None:
            call = _arguments(code, match.end())
            if call is None:
                continue
            stop, arguments = call
        body = _substitute(macro, arguments)
        if body is None:
            continue
        newlines = code.count("\n", match.start(), stop)
        touched.update(range(line, line + newlines + 1))
        pieces += [code[end : match.start()], body, "\n" * newlines]
        end = at = stop
    pieces.append(code[end:])
    return "".join(pieces)


def _definition(view: View, name: str, line: int) -> Macro | None:
    """The definition in force on a line; lines, because earlier expansions have moved the offsets."""
    above = [macro for macro in view.macros[name] if macro.line <= line]
    return above[-1] if above else None


def _arguments(code: str, at: int) -> tuple[int, tuple[str, ...]] | None:
    """The arguments of a call whose `(` follows `at`, and the offset after its `)`."""
    opening = re.compile(r"\s*\(").match(code, at)
    if not opening:
        return None
    arguments: list[str] = []
    depth, start = 1, opening.end()
    for match in re.compile(r'"(?:[^"\\\n]|\\.)*"|[()\[\]{},]', re.DOTALL).finditer(code, start):
        token = match[0]
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            if depth == 0:
                arguments.append(code[start : match.start()].strip())
                return match.end(), tuple(arguments)
        elif token == "," and depth == 1:
            arguments.append(code[start : match.start()].strip())
            start = match.end()
    return None


def _substitute(macro: Macro, arguments: tuple[str, ...]) -> str | None:
    """The body with its parameters replaced; None when the number of arguments does not fit."""
    if macro.parameters is None:
        return macro.body
    parameters = macro.parameters
    values = dict(zip(parameters, arguments, strict=False))
    if parameters and parameters[-1] == "...":
        fixed = len(parameters) - 1
        if len(arguments) < fixed:
            return None
        values = {**dict(zip(parameters[:fixed], arguments, strict=False)), "__VA_ARGS__": ", ".join(arguments[fixed:])}
    elif len(arguments) != len(parameters) and not (not parameters and arguments == ("",)):
        return None
    flat = {name: re.sub(r"\s+", " ", value) for name, value in values.items()}
    body = _WORD.sub(lambda match: flat.get(match[0], match[0]), macro.body)
    return re.sub(r"\s*##\s*", "", body)
