"""Tokens of operands and initialisers, literals, and constant expressions.

PTX ISA "Constant Expressions": integers are 64 bits wide, unsigned when a U suffix says so or when a literal does
not fit in a signed 64-bit word; the operators and their precedence are C's.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from ssmtool.ptx.operands import Immediate
from ssmtool.ptx.source import SourceText

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>0[fF][0-9a-fA-F]{8}(?!\w)|0[dD][0-9a-fA-F]{16}(?!\w)
        |0[xX][0-9a-fA-F]+U?(?!\w)|0[bB][01]+U?(?!\w)
        |(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w)|\d+[eE][+-]?\d+(?!\w)|\d+U?(?!\w))
     |(?P<name>%?[A-Za-z_$][\w$]*(?:\.[A-Za-z]\w*)*)
     |(?P<cast>\(\s*\.[su]64\s*\))
     |(?P<suffix>\.[a-z]+)
     |(?P<mark><<|>>|<=|>=|==|!=|&&|\|\||[-+!~*/%<>&^|?:,=(){}\[\]]))""",
    re.VERBOSE,
)

_WORD = 1 << 64

_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))),
    "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, lambda a, b: a | b),
    "^": (4, lambda a, b: a ^ b),
    "&": (5, lambda a, b: a & b),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    ">": (7, lambda a, b: int(a > b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: a << (b % 64)),
    ">>": (8, lambda a, b: a >> (b % 64)),
    "+": (9, lambda a, b: a + b),
    "-": (9, lambda a, b: a - b),
    "*": (10, lambda a, b: a * b),
    "/": (10, lambda a, b: _divide(a, b)),
    "%": (10, lambda a, b: a - b * _divide(a, b)),
}


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def wrap(value: int, unsigned: bool) -> int:
    """The value as a 64-bit word, signed or not."""
    value %= _WORD
    return value if unsigned or value < _WORD // 2 else value - _WORD


def literal(text: str) -> Immediate:
    """The value of one numeric literal, without a sign."""
    prefix = text[:2].lower()
    if prefix == "0f" and len(text) == 10:
        return Immediate(int(text[2:], 16), "f32")
    if prefix == "0d" and len(text) == 18:
        return Immediate(int(text[2:], 16), "f64")
    if prefix != "0x" and any(mark in text for mark in ".eE"):
        return Immediate(_double_bits(float(text)), "f64")
    unsigned = text.endswith("U")
    digits = text[:-1] if unsigned else text
    if prefix in ("0x", "0b"):
        value = int(digits, 0)
    elif digits[0] == "0" and len(digits) > 1:
        value = int(digits, 8)
    elif len(digits) > 20:  # also keeps a 1 MB number from int()'s quadratic work
        raise OverflowError("integer literal is wider than 64 bits")
    else:
        value = int(digits)
    if value >= _WORD:
        raise OverflowError("integer literal is wider than 64 bits")
    return Immediate(value, "int", unsigned or value >= _WORD // 2)


def _double_bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def _negate(value: Immediate) -> Immediate:
    if value.kind == "int":
        return Immediate(wrap(-value.value, value.unsigned), "int", value.unsigned)
    return Immediate(value.value ^ (1 << (31 if value.kind == "f32" else 63)), value.kind)


class Cursor:
    """Tokens of `source.code[start:end]`, one at a time, with constant expressions on top.

    `kind` is `number`, `name`, `cast`, `suffix`, `mark`, or `end`; `text` is the token's text.
    """

    __slots__ = ("_at", "_limit", "_next", "kind", "source", "text")

    def __init__(self, source: SourceText, start: int, end: int) -> None:
        self.source = source
        self._next = start
        self._limit = end
        self._at = start
        self.kind = "end"
        self.text = ""
        self.advance()

    @property
    def offset(self) -> int:
        """Where the current token starts."""
        return self._at

    def advance(self) -> None:
        """Move to the next token."""
        match = _TOKEN.match(self.source.code, self._next, self._limit)
        if match is None:
            rest = self.source.code[self._next : self._limit].lstrip()
            self._at = self._limit - len(rest)
            if rest:
                word = rest.split(None, 1)[0][:40]
                raise self.source.error(self._at, f"cannot read {word!r} as an operand")
            self.kind, self.text = "end", ""
            return
        self.kind = str(match.lastgroup)
        self.text = match[self.kind]
        self._at = match.start(self.kind)
        self._next = match.end()

    def rewind(self, offset: int) -> None:
        """Make the token at `offset` the current one again."""
        self._next = offset
        self.advance()

    def at(self, mark: str) -> bool:
        """Whether the current token is that mark."""
        return self.kind == "mark" and self.text == mark

    def take(self, mark: str) -> bool:
        """Skip that mark when it is next."""
        if self.at(mark):
            self.advance()
            return True
        return False

    def expect(self, mark: str) -> None:
        """Skip that mark, or raise."""
        if not self.take(mark):
            raise self.unexpected(f"{mark!r}")

    def unexpected(self, wanted: str) -> Exception:
        """The error for a token other than the one wanted."""
        found = "the end of the statement" if self.kind == "end" else repr(self.text[:40])
        return self.source.error(self._at, f"expected {wanted}, found {found}")

    def constant(self, level: int = 0, depth: int = 0) -> Immediate:
        """A constant expression whose operators bind at least as tightly as `level` (0: all, and `?:`)."""
        left = self._unary(depth)
        while self.kind == "mark":
            rule = _BINARY.get(self.text)
            if rule is None or rule[0] < max(level, 1):
                break
            where, symbol = self._at, self.text
            self.advance()
            left = self._apply(where, symbol, left, self.constant(rule[0] + 1, depth + 1))
        if level == 0 and self.take("?"):
            chosen = self.constant(0, depth + 1)
            self.expect(":")
            other = self.constant(0, depth + 1)
            return chosen if left.value else other
        return left

    def _apply(self, where: int, symbol: str, left: Immediate, right: Immediate) -> Immediate:
        if left.kind != "int" or right.kind != "int":
            return self._apply_float(where, symbol, left, right)
        if symbol in "/%" and right.value == 0:
            raise self.source.error(where, "division by zero in a constant expression")
        unsigned = left.unsigned or (right.unsigned and symbol not in ("<<", ">>"))
        a, b = wrap(left.value, unsigned), wrap(right.value, unsigned)
        level, compute = _BINARY[symbol]
        unsigned = unsigned and level not in (1, 2, 6, 7)  # comparisons give a signed 0 or 1
        return Immediate(wrap(compute(a, b), unsigned), "int", unsigned)

    def _apply_float(self, where: int, symbol: str, left: Immediate, right: Immediate) -> Immediate:
        a, b = float(left.number), float(right.number)
        try:
            value = {"+": a + b, "-": a - b, "*": a * b}.get(symbol)
            if value is None and symbol == "/":
                value = a / b
        except (OverflowError, ZeroDivisionError):
            raise self.source.error(where, "constant expression has no finite value") from None
        if value is None:
            raise self.source.error(where, f"operator {symbol!r} does not take floating-point constants")
        return Immediate(_double_bits(value), "f64")

    def _unary(self, depth: int) -> Immediate:
        if depth > 50:
            raise self.source.error(self._at, "constant expression is nested too deeply")
        if self.kind == "number":
            try:
                value = literal(self.text)
            except (ValueError, OverflowError):
                raise self.source.error(self._at, f"bad number {self.text[:40]!r}") from None
            self.advance()
            return value
        if self.kind == "cast":
            unsigned = "u" in self.text
            self.advance()
            inner = self._unary(depth + 1)
            return Immediate(wrap(inner.value, unsigned), "int", unsigned)
        if self.kind == "name" and self.text == "WARP_SZ":
            self.advance()
            return Immediate(32)
        if self.take("("):
            value = self.constant(0, depth + 1)
            self.expect(")")
            return value
        if self.take("-"):
            return _negate(self._unary(depth + 1))
        if self.take("+"):
            return self._unary(depth + 1)
        if self.take("!"):
            return Immediate(int(not self._unary(depth + 1).value))
        if self.take("~"):
            inner = self._unary(depth + 1)
            return Immediate(wrap(~inner.value, inner.unsigned), "int", inner.unsigned)
        raise self.unexpected("a constant")
