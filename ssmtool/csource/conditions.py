"""`#if` expressions, decided where the text is enough: the value is an int, or None for "cannot be told"."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d(?:'?[0-9A-Za-z_.])*)|(?P<word>[A-Za-z_]\w*)|(?P<op><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~^&|()?:,]))"
)
_BINARY: list[tuple[str, ...]] = [
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
]


class _UndecidableError(Exception):
    """The expression is outside what is read here (a function-like macro, a character, a syntax error)."""


def evaluate(
    expression: str, *, value_of: Callable[[str], int | None], is_defined: Callable[[str], bool | None]
) -> int | None:
    """The value of a preprocessor expression, or None when it hangs on something the text does not say.

    `value_of(name)` is the integer an identifier expands to (0 for a name known not to be defined), `is_defined(name)`
    answers `defined(name)`; both say None when they cannot tell.
    """
    try:
        reader = _Reader(_tokens(expression), value_of, is_defined)
        value = reader.ternary()
        reader.expect_end()
    except (_UndecidableError, RecursionError):
        return None
    return value


def parse_integer(text: str) -> int | None:
    """A C integer literal with any suffix, or None."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*", text)
    if not match:
        return None
    digits = match[1].replace("'", "")
    try:
        if digits.lower().startswith(("0x", "0b")):
            return int(digits, 0)
        return int(digits, 8) if len(digits) > 1 and digits.startswith("0") else int(digits)
    except ValueError:
        return None


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    expression = expression.rstrip()
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if not match or match.lastgroup is None:
            raise _UndecidableError
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _Reader:
    """Precedence climbing over three-valued integers."""

    def __init__(
        self,
        tokens: list[tuple[str, str]],
        value_of: Callable[[str], int | None],
        is_defined: Callable[[str], bool | None],
    ) -> None:
        self._tokens = tokens
        self._at = 0
        self._value_of = value_of
        self._is_defined = is_defined

    def _peek(self) -> str | None:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else None

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise _UndecidableError
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> None:
        if self._next()[1] != text:
            raise _UndecidableError

    def expect_end(self) -> None:
        if self._at != len(self._tokens):
            raise _UndecidableError

    def ternary(self) -> int | None:
        condition = self._binary(0)
        if self._peek() != "?":
            return condition
        self._next()
        yes = self.ternary()
        self._expect(":")
        no = self.ternary()
        if condition is None:
            return yes if yes == no else None
        return yes if condition else no

    def _binary(self, level: int) -> int | None:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while self._peek() in _BINARY[level]:
            operator = self._next()[1]
            left = _apply(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> int | None:
        kind, text = self._next()
        if text in ("!", "-", "+", "~"):
            value = self._unary()
            if value is None:
                return None
            return {"!": int(not value), "-": -value, "+": value, "~": ~value}[text]
        if text == "(":
            value = self.ternary()
            self._expect(")")
            return value
        if kind == "number":
            return parse_integer(text)
        if text == "defined":
            return self._defined()
        if kind == "word":
            if self._peek() == "(":
                raise _UndecidableError
            return self._value_of(text)
        raise _UndecidableError

    def _defined(self) -> int | None:
        kind, name = self._next()
        if name == "(":
            kind, name = self._next()
            self._expect(")")
        if kind != "word":
            raise _UndecidableError
        answer = self._is_defined(name)
        return None if answer is None else int(answer)


def _apply(operator: str, left: int | None, right: int | None) -> int | None:
    """One binary operator; `0 && x` and `1 || x` are decided whatever x is."""
    if operator == "&&":
        if left == 0 or right == 0:
            return 0
        return None if left is None or right is None else 1
    if operator == "||":
        if left or right:
            return 1
        return None if left is None or right is None else 0
    if left is None or right is None:
        return None
    if operator in ("/", "%"):
        if right == 0:
            raise _UndecidableError
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - right * quotient
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            raise _UndecidableError
        return left << right if operator == "<<" else left >> right
    operations: dict[str, Callable[[int, int], int]] = {
        "|": lambda a, b: a | b,
        "^": lambda a, b: a ^ b,
        "&": lambda a, b: a & b,
        "==": lambda a, b: int(a == b),
        "!=": lambda a, b: int(a != b),
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
    }
    return operations[operator](left, right)
