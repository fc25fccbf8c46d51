"""Words and lines for people: plurals, lines of a length that can be read, logs of a length that can be scrolled."""

from __future__ import annotations

from collections.abc import Sequence

# Lines longer than the first are folded to the second; a line that only just fits a wide terminal is left whole.
_LONG = 200
_FOLD = 120
# Lines of a compiler's log that the console shows; the errors that matter are the first, the counts come last.
_FIRST = 40
_LAST = 10


def plural(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def folded(line: str) -> str:
    """The line, broken at blanks into indented ones when it is longer than 200 characters; no word is cut."""
    if len(line) <= _LONG:
        return line
    import textwrap

    indent = line[: len(line) - len(line.lstrip())] + "    "
    return "\n".join(
        textwrap.wrap(
            line,
            _FOLD,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
    )


def capped(lines: Sequence[str]) -> list[str]:
    """The first 40 and the last 10 lines, and between them how many were left out."""
    left_out = len(lines) - _FIRST - _LAST
    if left_out <= 1:
        return list(lines)
    return [*lines[:_FIRST], f"... {left_out} lines left out here; --format json has them all", *lines[-_LAST:]]
