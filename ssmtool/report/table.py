"""One table for all reports: cut to fit a terminal without losing a word, and never cut anywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

# (row, column, cell) -> a style of rich, or "" for none.
Styles = Callable[[int, int, str], str]

_GAP = 2
# A column of words is never folded to fewer characters than this; columns move to a table of their own before.
_NARROW = 24


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Styles | None = None
) -> None:
    """The first column and those of words to the left, numbers to the right.

    On a terminal that is too narrow, columns that do not fit go into tables of their own below, each with the first
    column again, and long words are folded. Off a terminal nothing is folded, whatever the width, and rich is not
    imported.
    """
    if title:
        print(title)
    width = _terminal_width()
    coloured = sys.stdout.isatty() or "FORCE_COLOR" in os.environ
    for group in _groups(columns, rows, width):
        heads = [columns[index] for index in group]
        cells = [[line[index] for index in group] for line in rows]
        placed = layout(heads, cells, width)
        if coloured and styles is not None:
            _print_coloured(placed, group, styles)
        else:
            print("\n".join("".join(pieces).rstrip() for _, pieces in placed))
        print()


def layout(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None
) -> list[tuple[int | None, list[str]]]:
    """The lines of a table: the row each belongs to, None for the head, and its padded cells.

    `width` folds the cells of the widest column of words until the lines fit, if they can.
    """
    widths = _widths(columns, rows)
    words = _words(columns, rows)
    if width is not None and (excess := sum(widths) + _GAP * (len(widths) - 1) - width) > 0 and words:
        widest = max(words, key=lambda index: widths[index])
        widths[widest] = max(min(_NARROW, widths[widest]), len(columns[widest]), widths[widest] - excess)
    lines: list[tuple[int | None, list[str]]] = []
    rule = ["-" * size for size in widths]
    for number, cells in [(None, columns), (None, rule), *enumerate(rows)]:
        folded = [_fold(cell, size) for cell, size in zip(cells, widths, strict=True)]
        for part in range(max(map(len, folded))):
            pieces = []
            for index, size in enumerate(widths):
                cell = folded[index][part] if part < len(folded[index]) else ""
                pieces.append((cell.ljust(size) if index in words else cell.rjust(size)) + " " * _GAP)
            pieces[-1] = pieces[-1].rstrip()
            lines.append((number, pieces))
    return lines


def _groups(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[list[int]]:
    """Column numbers of each table that fits `width`, the first column in all of them."""
    every = list(range(len(columns)))
    if width is None:
        return [every]
    widths = _widths(columns, rows)
    for index in _words(columns, rows):
        widths[index] = max(min(_NARROW, widths[index]), len(columns[index]))
    widths[0] = min(max(len(line[0]) for line in (columns, *rows)), width * 2 // 3)
    groups: list[list[int]] = [[0]]
    for index in every[1:]:
        if len(groups[-1]) > 1 and sum(widths[each] + _GAP for each in (*groups[-1], index)) - _GAP > width:
            groups.append([0])
        groups[-1].append(index)
    return groups


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line[index]) for line in (columns, *rows)) for index in range(len(columns))]


def _words(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns that hold words: the first, and those where a cell begins with a letter."""
    return [index for index in range(len(columns)) if index == 0 or any(line[index][:1].isalpha() for line in rows)]


def _fold(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    import textwrap

    return textwrap.wrap(cell, width) or [""]


def _terminal_width() -> int | None:
    """Columns of the terminal, or of COLUMNS where that is set; None off a terminal."""
    if os.environ.get("COLUMNS", "").isdecimal():
        return max(20, int(os.environ["COLUMNS"]))
    if not sys.stdout.isatty():
        return None
    try:
        return max(20, os.get_terminal_size(sys.stdout.fileno()).columns or 80)
    except OSError:
        return 80


def _print_coloured(lines: Sequence[tuple[int | None, list[str]]], group: Sequence[int], styles: Styles) -> None:
    from rich.text import Text

    from ssmtool.report.console import console

    for number, pieces in lines:
        parts = [
            (piece, "bold" if number is None else styles(number, column, piece.strip()))
            for column, piece in zip(group, pieces, strict=True)
        ]
        console().print(Text.assemble(*parts), soft_wrap=True)
