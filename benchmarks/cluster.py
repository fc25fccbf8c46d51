"""How much faster a sweep is on two workers than on one: rounds of every relation on local clusters.

Target: two workers at least 1.8 times one. Kernels are compiled before, each worker has one thread of the executor, and
the two take turns (1, 2, 1, 2, ...), so that a busy machine is busy for both. Times are from the command's first word
to the workers to the last result; `sweep` is without making workers ready. The load average stands beside them: on a
machine whose processors others use too, two workers are two shares of it.

    python benchmarks/cluster.py [ROUNDS] [REPEATS]
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

from ssmtool.audit.inputs import read_input
from ssmtool.cluster import open_cluster
from ssmtool.cluster.resources import CPU, Wanted
from ssmtool.verify import Options, Outcome, Text

HEADER = Path(__file__).parent.parent / "generated" / "fc_cuda_ptx.h"


def sweep(texts: list[Text], workers: int, rounds: int) -> Outcome:
    with open_cluster(f"local:{workers}") as cluster:
        return cluster.verify(texts, [], [Wanted("cpu", CPU)], options=Options(rounds=rounds))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    texts = [Text(each.module, each.parameters) for each in read_input(str(HEADER))]
    sweep(texts, 2, 1)  # compiles
    whole: dict[int, list[float]] = {1: [], 2: []}
    alone: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repeats):
        for workers in (1, 2):
            outcome = sweep(texts, workers, rounds)
            assert int(outcome.verdict) == 0, outcome.findings().findings
            whole[workers].append(outcome.seconds)
            alone[workers].append(outcome.seconds - outcome.compile_seconds)
            print(
                f"{workers} worker{'s' * (workers > 1)}: {len(outcome.results)} rounds, {outcome.seconds:.1f} s, sweep "
                f"{alone[workers][-1]:.1f} s; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    for name, times in (("whole", whole), ("sweep", alone)):
        ratios = [one / two for one, two in zip(times[1], times[2], strict=True)]
        print(f"{name}: two workers are {statistics.median(ratios):.2f} times one (of pairs: "
              f"{', '.join(f'{each:.2f}' for each in ratios)})")  # fmt: skip


if __name__ == "__main__":
    main()
