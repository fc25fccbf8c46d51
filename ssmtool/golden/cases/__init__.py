"""Every golden case of the product, by family; each is made anew from its name alone."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from ssmtool.golden.case import GoldenCase


def all_makers() -> dict[str, Callable[[], GoldenCase]]:
    """Name to maker of each case, in the order in which they are made."""
    from ssmtool.golden.cases import convolution, decode, gates, norms, recurrence

    found: dict[str, Callable[[], GoldenCase]] = {}
    for room in (recurrence, convolution, norms, gates, decode):
        for name, maker in room.makers():
            if name in found:
                raise ValueError(f"two cases are named {name}")
            found[name] = maker
    return found


def matching(names: list[str], patterns: tuple[str, ...]) -> list[str]:
    """The names that fit a shell pattern, or begin with one of the words; all of them without patterns."""
    if not patterns:
        return names
    return [
        name for name in names if any(fnmatchcase(name, each) or name.startswith(f"{each}/") for each in patterns)
    ]  # fmt: skip
