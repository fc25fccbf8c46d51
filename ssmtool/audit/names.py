"""Names of kernels for people: what to say when there is none of a name, and mangled ones in short."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

# Names listed in a message; a real file may have thousands.
_LISTED = 16
# The longest name that is shown whole; of a longer one so much of the beginning, and the end.
_WHOLE, _HEAD, _TAIL = 48, 35, 10


def cut(name: str, middle: str = "...") -> str:
    """A long (mangled) name without its middle. With `*` for it, a pattern that fits the name."""
    return name if len(name) <= _WHOLE else f"{name[:_HEAD]}{middle}{name[-_TAIL:]}"


def no_entry(name: str, entries: Iterable[str]) -> str:
    """`no entry is named X; did you mean Y?`, or the names there are when none is like it."""
    known = sorted(entries)
    close = difflib.get_close_matches(name, known, 1) if len(known) < 10_000 else []
    if close:
        return f"no entry is named {name}; did you mean {close[0]}?"
    return f"no entry is named {name}; entries: {listed(known) or 'none'}"


def listed(names: Sequence[str]) -> str:
    """The names, of many the first 16 and how many more there are."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(cut, names[:_LISTED])) + more
