"""Constant expressions, decided where the text is enough: the value is an int, or None for "cannot be told".

The arithmetic is that of the preprocessor or of C's `int`; where a negative number would turn unsigned or a result
leaves its type, the answer is "cannot be told" rather than one platform's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ssmtool.csource.macros import UndecidableError, is_word, tokens_of

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
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_MAX_NESTING = 64


class Value(msgspec.Struct, frozen=True):
    """A number; `unsigned` by its type. `sizes` counts the element size as a factor: `sizeof names` is (length, 1)."""

    number: int
    unsigned: bool = False
    sizes: int = 0


def evaluate(
    expression: str,
    *,
    value_of: Callable[[str], int | None],
    is_defined: Callable[[str], bool | None],
    expanded: Callable[[Sequence[str]], Sequence[str]] = lambda tokens: tokens,
) -> int | None:
    """The value of a preprocessor expression, or None when it hangs on something the text does not say.

    `value_of(name)` is the value of an identifier that is left after expansion (0 for a name known not to be defined),
    `is_defined(name)` answers `defined(name)`; both say None when they cannot tell. `expanded` expands its macros.
    """
    try:
        value = _Condition(expanded(tokens_of(expression)), value_of, is_defined).whole()
    except (UndecidableError, RecursionError):
        return None
    return None if value is None else value.number


def parse_integer(text: str) -> int | None:
    """A C integer literal with any suffix, or None."""
    value = literal(text)
    return None if value is None else value.number


def literal(text: str) -> Value | None:
    """The value of a C integer literal, or None for any other token."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)([uUlLzZ]*)", text)
    if not match or len(match[1]) > 80:
        return None
    digits = match[1].replace("'", "")
    try:
        if digits.lower().startswith(("0x", "0b")):
            number = int(digits, 0)
        else:
            number = int(digits, 8) if len(digits) > 1 and digits.startswith("0") else int(digits)
    except ValueError:
        return None
    return Value(number, "u" in match[2].lower())


class Reader:
    """Precedence climbing over three-valued integers; what a name or a `sizeof` is worth, its children say."""

    bits = 63

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self._depth = 0

    def whole(self) -> Value | None:
        """The value of all the tokens. Raises UndecidableError when they are no expression."""
        value = self.ternary()
        if self.at != len(self.tokens):
            raise UndecidableError
        return value

    def peek(self, ahead: int = 0) -> str:
        """A token to come; empty at the end."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def next(self) -> str:
        """The next token, taken. Raises UndecidableError at the end."""
        if self.at >= len(self.tokens):
            raise UndecidableError
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, text: str) -> None:
        """Take the token `text`. Raises UndecidableError for another one."""
        if self.next() != text:
            raise UndecidableError

    def ternary(self) -> Value | None:
        """A whole expression but for commas."""
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise UndecidableError
        condition = self._binary(0)
        if self.peek() == "?":
            self.next()
            yes = self.ternary()
            self.expect(":")
            no = self.ternary()
            condition = self._chosen(condition, yes, no)
        self._depth -= 1
        return condition

    def _chosen(self, condition: Value | None, yes: Value | None, no: Value | None) -> Value | None:
        if condition is None:
            return yes if yes == no else None
        chosen, other = (yes, no) if condition.number else (no, yes)
        if chosen is None or other is None:
            # The other one's type may make this one unsigned; only a negative number would notice.
            return chosen if chosen is not None and chosen.number >= 0 else None
        return self.checked(chosen.number, chosen.unsigned or other.unsigned, chosen.sizes)

    def _binary(self, level: int) -> Value | None:
        if level == len(_BINARY):
            return self.unary()
        left = self._binary(level + 1)
        while self.peek() in _BINARY[level]:
            operator = self.next()
            left = self._apply(operator, left, self._binary(level + 1))
        return left

    def unary(self) -> Value | None:
        """One operand with its prefixes."""
        signs: list[str] = []
        while self.peek() in ("!", "-", "+", "~"):
            signs.append(self.next())
        value = self.primary()
        for sign in reversed(signs):
            if value is None:
                continue
            if value.sizes and sign != "+":
                raise UndecidableError
            if sign == "!":
                value = Value(int(not value.number))
            elif sign != "+":
                value = self.checked(-value.number if sign == "-" else ~value.number, value.unsigned, value.sizes)
        return value

    def primary(self) -> Value | None:
        """A number or a parenthesis; the rest is the children's."""
        token = self.next()
        if token == "(":
            value = self.ternary()
            self.expect(")")
            return value
        number = literal(token)
        if number is not None:
            unsigned = number.unsigned or (self.bits == 63 and number.number >= 1 << 63)
            return self.checked(number.number, unsigned)
        if re.fullmatch(r"'[ -&(-\[\]-~]'", token):
            return Value(ord(token[1]))
        return self.name(token)

    def name(self, token: str) -> Value | None:
        """The value of a token that is neither number nor parenthesis."""
        raise UndecidableError

    def checked(self, number: int, unsigned: bool = False, sizes: int = 0) -> Value:
        """The value, if its type holds it on every platform. Raises UndecidableError otherwise."""
        limit = 1 << self.bits
        if not (0 <= number < 2 * limit if unsigned else -limit <= number < limit):
            raise UndecidableError
        return Value(number, unsigned, sizes)

    def _apply(self, operator: str, left: Value | None, right: Value | None) -> Value | None:
        """One binary operator; `0 && x` and `1 || x` are decided whatever x is."""
        if operator in ("&&", "||"):
            decides = operator == "||"
            sides = [None if side is None else bool(side.number) for side in (left, right)]
            if decides in sides:
                return Value(int(decides))
            return None if None in sides else Value(int(not decides))
        if left is None or right is None:
            return None
        a, b = left.number, right.number
        if operator in ("<<", ">>"):
            if not 0 <= b < self.bits or left.sizes or right.sizes:
                raise UndecidableError
            if a < 0 and operator == "<<":
                raise UndecidableError
            return self.checked(a << b if operator == "<<" else a >> b, left.unsigned)
        unsigned = left.unsigned or right.unsigned
        if unsigned and (a < 0 or b < 0):
            raise UndecidableError
        if operator in ("/", "%"):
            return self._divided(operator, left, right, unsigned)
        if operator == "*":
            return self.checked(a * b, unsigned, left.sizes + right.sizes)
        if operator in _COMPARE and 0 in (a, b):
            return Value(int(_COMPARE[operator](a, b)))  # Whatever the size of an element, it is above zero.
        if left.sizes != right.sizes:
            raise UndecidableError
        if operator in _COMPARE:
            return Value(int(_COMPARE[operator](a, b)))
        if left.sizes and operator not in ("+", "-"):
            raise UndecidableError
        return self.checked(_ARITHMETIC[operator](a, b), unsigned, left.sizes)

    def _divided(self, operator: str, left: Value, right: Value, unsigned: bool) -> Value:
        a, b = left.number, right.number
        if b == 0 or left.sizes != right.sizes:
            raise UndecidableError
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        if operator == "/":
            return self.checked(quotient, unsigned)
        return self.checked(a - b * quotient, unsigned, left.sizes)


class _Condition(Reader):
    """An `#if`."""

    def __init__(
        self,
        tokens: Sequence[str],
        value_of: Callable[[str], int | None],
        is_defined: Callable[[str], bool | None],
    ) -> None:
        super().__init__(tokens)
        self._value_of = value_of
        self._is_defined = is_defined

    def name(self, token: str) -> Value | None:
        if not is_word(token):
            raise UndecidableError
        if token == "defined":
            name = self.next()
            if name == "(":
                name = self.next()
                self.expect(")")
            if not is_word(name):
                raise UndecidableError
            answer = self._is_defined(name)
            return None if answer is None else Value(int(answer))
        if self.peek() == "(":
            raise UndecidableError
        number = self._value_of(token)
        return None if number is None else Value(number)
