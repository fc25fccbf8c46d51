"""What a mutant is: one row of a table, and how it becomes PTX."""

from __future__ import annotations

import re
from dataclasses import dataclass


class RowError(Exception):
    """A row that does not fit the kernels any more: its text is gone from them."""


@dataclass(frozen=True)
class Mutant:
    """One wrong kernel.

    `find` is replaced by `put`: in a source a literal text, everywhere it stands (`kernel` is then the file); in the
    PTX a regular expression whose blanks stand for any blanks, at its occurrence `nth` in the entry `kernel`.
    `equivalent` is why no test of outputs can tell it from the right kernel; then it is expected to survive. A reason
    that begins with `a gap:` says instead which case is missing.
    `needs_card`: the case that shows it has 8.5 GiB of buffers.
    """

    name: str
    kernel: str
    find: str
    put: str
    imitates: str
    nth: int = 0
    equivalent: str = ""
    needs_card: bool = False

    @property
    def in_source(self) -> bool:
        """Whether it is a mutation of a .cu."""
        return self.kernel in (SOURCE, FAST_SOURCE)


SOURCE, FAST_SOURCE = "kernels/ssm_gated_delta.cu", "kernels/ssm_gated_delta_fast.cu"


def mutate_source(mutant: Mutant, text: str) -> str:
    """The source with the mutation. Raises RowError when the text is not there."""
    if mutant.find not in text:
        raise RowError(f"{mutant.name}: the source has no {mutant.find!r}")
    return text.replace(mutant.find, mutant.put)


def mutate_ptx(mutant: Mutant, ptx: str, entry: str) -> str:
    """The PTX with the mutation in `entry`, the text of one kernel. Raises RowError when nothing fits."""
    pattern = re.compile(mutant.find.replace(" ", r"[ \t]+"))
    found = list(pattern.finditer(entry))
    if len(found) <= mutant.nth:
        raise RowError(f"{mutant.name}: {mutant.kernel} has {len(found)} of {mutant.find!r}, not number {mutant.nth}")
    match = found[mutant.nth]
    changed = entry[: match.start()] + match.expand(mutant.put) + entry[match.end() :]
    if changed == entry:
        raise RowError(f"{mutant.name}: changes nothing")
    return ptx.replace(entry, changed)
