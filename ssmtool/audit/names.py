"""What to say when no kernel has the name a user gave."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Names listed in a message; a real file may have thousands.
_LISTED = 16


def no_entry(name: str, entries: Iterable[str]) -> str:
    """`no entry is named X; did you mean Y?`, or the names there are when none is like it."""
    known = sorted(entries)
    close = difflib.get_close_matches(name, known, 1) if len(known) < 10_000 else []
    if close:
        return f"no entry is named {name}; did you mean {close[0]}?"
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"no entry is named {name}; entries: {', '.join(known[:_LISTED]) or 'none'}{more}"
