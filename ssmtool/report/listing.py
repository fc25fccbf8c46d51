"""A kernel's PTX on the console with a margin of class, liveness and cost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from ssmtool.audit.listing import ListedLine

_MARGIN = 19


def print_listing(lines: Iterable[ListedLine], assumed: Mapping[str, int]) -> None:
    """Line number, times executed per block, class, and the PTX; a dead line is marked `dead` and dimmed."""
    words = ", ".join(f"{name} = {value}" for name, value in assumed.items()) or "nothing"
    print(f"assumed: {words}")
    print(f"{'line':>6} {'slots':>7}  {'class':<{_MARGIN}} PTX")
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line in lines:
        cost = "" if line.executed is None else str(line.executed)
        kind = "dead" if line.live is False else line.class_
        text = line.text.replace("\t", "    ").rstrip()
        note = f"    // {line.note}" if line.note else ""
        shown = f"{line.line:>6} {cost:>7}  {kind:<{_MARGIN}} {text}{note}".rstrip()
        if colour and line.live is False:
            shown = f"\x1b[2m{shown}\x1b[0m"
        elif colour and line.class_ == "local memory":
            shown = f"\x1b[31m{shown}\x1b[0m"
        print(shown)
