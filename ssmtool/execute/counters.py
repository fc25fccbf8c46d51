"""What a launch in counting mode counted, all thread blocks together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute.layout import KernelFacts


@dataclass(frozen=True, slots=True)
class AccessCount:
    """Loads, stores or atomics of one instruction of the entry.

    `requests` are warps that made the access, `parts` what they need: 32-byte sectors where `space` is "global" (local
    memory is part of it), passes over 32 banks of 4 bytes where it is "shared".
    """

    index: int
    space: str
    requests: int
    parts: int


class Counters:
    """Executed warp instructions of one launch.

    `blocks[k]` is how often basic block k was entered by a warp; an instruction counts once for a warp with any
    active lane, whether or not its predicate lets it do anything. Instructions of called functions count in `total`.
    """

    def __init__(self, facts: KernelFacts, words: NDArray[np.int64]) -> None:
        first, second = len(facts.blocks), len(facts.blocks) + 2 * len(facts.branches)
        self.blocks = words[:first]
        self._members = facts.blocks
        self._of = {index: block for block, members in enumerate(facts.blocks) for index in members if index >= 0}
        pairs = words[first:second].reshape(-1, 2)
        self.branches = {
            index: (int(came), int(parted))
            for index, (came, parted) in zip(facts.branches, pairs, strict=True)
            if index >= 0
        }
        """Conditional branch, by index -> (warps that came, warps whose lanes parted)."""
        self._branched, self._parted = (int(each) for each in pairs.sum(axis=0)) if len(pairs) else (0, 0)
        rows = words[second : second + 2 * len(facts.accesses)].reshape(-1, 2)
        self.accesses = tuple(
            AccessCount(index, space, int(requests), int(parts))
            for (index, space), (requests, parts) in zip(facts.accesses, rows, strict=True)
        )

    def executed(self, index: int) -> int:
        """Times that warps executed instruction `index` of the entry, as `ssmtool.ptx` numbers them."""
        block = self._of.get(index)
        return 0 if block is None else int(self.blocks[block])

    @property
    def by_instruction(self) -> dict[int, int]:
        """Instruction index -> times executed by warps."""
        return {index: int(self.blocks[block]) for index, block in sorted(self._of.items())}

    @property
    def total(self) -> int:
        """Warp instructions executed."""
        return sum(int(count) * len(members) for count, members in zip(self.blocks, self._members, strict=True))

    @property
    def branch_efficiency(self) -> float | None:
        """Share of the executed conditional branches that kept a warp together; None when there were none."""
        return 1 - self._parted / self._branched if self._branched else None

    def parts_per_request(self, space: str) -> float | None:
        """Sectors ("global") or bank passes ("shared") that a warp's access needs on average; None without any.

        1 pass is an access without bank conflicts. 4 sectors are what 32 consecutive 4-byte words need.
        """
        own = [each for each in self.accesses if each.space == space]
        requests = sum(each.requests for each in own)
        return sum(each.parts for each in own) / requests if requests else None
