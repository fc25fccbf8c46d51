"""What `--quick` runs: every kernel, with as few kernels to compile as that needs.

On a machine that has never run ssmtool most of the time goes into compiling, once for each kernel and block size. So
the set is chosen by that: first what the relations need, then the cases that bring in the kernels still missing for the
fewest new block sizes, then every case that needs no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ssmtool.golden import GoldenCase
from ssmtool.verify.plan import CPU_BYTES, QUICK_WORK, case_work

# (entry, threads of a block)
Kernel = tuple[str, int]


def quick_cases(cases: Sequence[GoldenCase], compiled: Iterable[Kernel] = ()) -> list[GoldenCase]:
    """The cases to run, in their order; `compiled` are kernels that are needed anyway."""
    have = set(compiled)
    needs = {id(case): kernels_of(case) for case in cases}
    small = [case for case in cases if case_work(case) <= QUICK_WORK and case.device_bytes <= CPU_BYTES]
    # A kernel that only large cases launch is still verified.
    missing = {entry for case in cases for entry in case.kernels}
    missing -= {entry for case in small for entry in case.kernels}
    small += [case for case in cases if case not in small and missing & set(case.kernels) and
              case.device_bytes <= CPU_BYTES]  # fmt: skip
    uncovered = {entry for case in small for entry in case.kernels}
    for case in small:
        if needs[id(case)] <= have:
            uncovered -= set(case.kernels)
    while uncovered:
        best = min(
            (case for case in small if uncovered & set(case.kernels)),
            key=lambda case: (len(needs[id(case)] - have) / len(uncovered & set(case.kernels)), case_work(case)),
        )
        have |= needs[id(best)]
        uncovered -= set(best.kernels)
    return [case for case in cases if case in small and needs[id(case)] <= have]


def kernels_of(case: GoldenCase) -> set[Kernel]:
    """Every kernel with the block that the case launches it with."""
    found = set()
    for run in case.meta.runs:
        for launch in run.launches:
            x, y, z = launch.block
            found.add((launch.entry, x * y * z))
    return found
