"""The access on the other side of a race.

The check that finds a race knows the other thread, not its instruction. So the block is run once more from the same
buffers, and every access to the place where the two met is told in its order (`lower.watching`): the other side is
the last fitting access before the one that was reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ssmtool.execute.faults import KernelFault
from ssmtool.execute.layout import Fault, KernelFacts

MOST = 8
"""Races of one launch that are looked into: each costs a run of its block."""

Event = tuple[int, int]
"""(site, flat thread)."""


def with_partners(
    faults: Sequence[KernelFault], facts: KernelFacts, watch: Callable[[int, int], tuple[KernelFacts, list[Event]]]
) -> list[KernelFault]:
    """The faults, races with the line and text of the other access where it was found.

    `watch(block, offset)` runs a block, both flat numbers, and returns the facts of that code and the accesses to the
    byte at that offset of shared memory.
    """
    told: list[KernelFault] = []
    looked = 0
    for fault in faults:
        if fault.kind is Fault.RACE and looked < MOST:
            looked += 1
            watched, events = watch(fault.flat_block, fault.address)
            told.append(_with_partner(fault, watched, events, facts))
        else:
            told.append(fault)
    return told


def _with_partner(fault: KernelFault, watched: KernelFacts, events: Sequence[Event], facts: KernelFacts) -> KernelFault:
    x, y, _ = facts.block

    def flat(thread: tuple[int, int, int]) -> int:
        return thread[0] + x * (thread[1] + y * thread[2])

    own = flat(fault.thread)
    other = None if fault.other is None else flat(fault.other)
    for at, (site, thread) in enumerate(events):
        if thread != own or watched.sites[site].line != fault.line:
            continue
        for earlier, whose in reversed(events[:at]):
            partner = watched.sites[earlier]
            if whose != own and other in (None, whose) and partner.store == fault.other_wrote:
                what = f"{fault.message} (the other access, PTX line {partner.line}: {partner.text})"
                return replace(fault, message=what, other_line=partner.line, other_text=partner.text)
    return fault
