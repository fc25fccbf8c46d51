"""Wrong kernels, one by one: is each caught.

    python tools/mutants                     all of them; writes docs/mutants.md
    python tools/mutants k4-bound 7-linear-decay
    python tools/mutants --device cuda 12-offset-32
    python tools/mutants --scheduler local:8           or tcp://HOST:PORT, whose workers see this folder

Exit code 0: every mutant is caught but those that are said to be equivalent; 1: one is not, or an equivalent one is;
2: one could not be tried, because its row no longer fits the kernels or there is no compiler.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import unittest.mock
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import page
import ptx_rows
import source_rows
from model import Mutant
from trial import ROOT, Verdict, start_worker, try_mutant

from ssmtool.errors import SsmtoolError

ROWS = (*source_rows.ROWS, *ptx_rows.ROWS)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python tools/mutants", description="Wrong kernels: is each caught?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--device", default="cpu", help="as for `ssmtool verify` (cpu)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once (2)")
    parser.add_argument("--scheduler", metavar="WHERE", help="try them on workers, as ssmtool verify --scheduler")
    given = parser.parse_args()
    known = {row.name: row for row in ROWS}
    if len(known) != len(ROWS) or (unknown := [name for name in given.names if name not in known]):
        parser.error(f"no mutant is named {', '.join(unknown)}")
    chosen = [known[name] for name in given.names] or list(ROWS)
    started = time.perf_counter()
    try:
        verdicts = (
            try_all(chosen, given.device, given.jobs)
            if given.scheduler is None
            else try_on_cluster(chosen, given.device, given.scheduler)
        )
    except SsmtoolError as error:
        parser.exit(2, f"error: {error}\n" + (f"  mend it: {error.hint}\n" if error.hint else ""))
    seconds = time.perf_counter() - started
    print(page.summary(chosen, verdicts, seconds))
    code = page.exit_code(chosen, verdicts)
    if not given.names and code != 2:
        page.write(ROOT / "docs" / "mutants.md", chosen, verdicts, seconds)
    return code


def try_all(chosen: list[Mutant], device: str, jobs: int) -> list[Verdict]:
    """Every verdict, in the order of the rows; each is printed as it comes."""
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="ssmtool-mutants-") as cache,
        ProcessPoolExecutor(max(1, jobs), context, start_worker, (cache,)) as pool,
    ):
        running = {pool.submit(try_mutant, mutant, device): mutant for mutant in chosen}
        verdicts = {}
        for future in as_completed(running):
            mutant = running[future]
            verdicts[mutant.name] = future.result()
            print(page.line(mutant, verdicts[mutant.name]), flush=True)
    return [verdicts[mutant.name] for mutant in chosen]


def try_on_cluster(chosen: list[Mutant], device: str, scheduler: str) -> list[Verdict]:
    """The same by workers; one that no worker could try says so. Raises what `open_cluster` raises."""
    from ssmtool.cluster import open_cluster
    from ssmtool.cluster.program import Program

    needs = [ROOT / name for name in ("pyproject.toml", "kernels", "generated", "golden")]
    program = Program(Path(__file__).parent, "trial", "try_mutant", needs)
    with (
        tempfile.TemporaryDirectory(prefix="ssmtool-mutants-") as cache,
        unittest.mock.patch.dict(os.environ, {"SSMTOOL_CACHE_DIR": cache}),  # of workers that are started here
        open_cluster(scheduler) as cluster,
    ):
        wanted = cluster.choose(device, None)
        if len(wanted) != 1:
            raise SsmtoolError(f"--device {device}: with --scheduler mutants are tried on one kind of device")
        loads = [(mutant, device) for mutant in chosen]
        verdicts = {}
        for answer in cluster.sweep(program, loads, wanted[0].resource, seconds=2.0):
            mutant = answer.piece.load[0]
            verdict = answer.value or Verdict(mutant.name, error=answer.error or "")
            verdicts[mutant.name] = verdict
            print(page.line(mutant, verdict), flush=True)
        for note in cluster.notes:
            print(note, file=sys.stderr)
    return [verdicts[mutant.name] for mutant in chosen]


if __name__ == "__main__":
    # The workers import this file anew, and must find the modules beside it.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    sys.exit(main())
