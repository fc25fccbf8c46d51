"""One round of one relation on one device. Never raises for a bad kernel."""

from __future__ import annotations

import time

from ssmtool.errors import SsmtoolError
from ssmtool.verify.casework import faults_of
from ssmtool.verify.loaded import Check, Loaded
from ssmtool.verify.patterns import patterns
from ssmtool.verify.relations import Relation
from ssmtool.verify.relations.bench import Bench, Unequal
from ssmtool.verify.relations.draw import Draw
from ssmtool.verify.result import Result, RunResult, Status


def run_relation(
    relation: Relation, loaded: Loaded, *, seed: int, number: int, check: Check | None = None, keep: bool = False
) -> Result:
    """Round `number` of a relation, with the inputs of `seed`."""
    result = Result("relation", relation.name, relation.title, relation.entries, loaded.device.name)
    result.check = "canaries" if loaded.device.real else check or loaded.check
    started = time.perf_counter()
    done = RunResult(f"seed {seed}, round {number}", relation.entries)
    bench = Bench(loaded, check)
    again = f"ssmtool verify --relations only --only {relation.name} --seed {seed} --rounds {number + 1}"
    try:
        relation.check(bench, Draw(seed, relation.name, number))
    except SsmtoolError as error:
        if error.exit_code == 1:
            done.faults = faults_of(error)
        else:
            result.status, result.reason, result.fix = Status.UNCHECKED, str(error), error.hint or again
    except MemoryError:
        result.status, result.reason = Status.UNCHECKED, "this machine has no memory left for its buffers"
    if bench.unequal:
        done.faults += [f"{relation.title}: {each.what}: {each.message}" for each in bench.unequal]
        done.looks_like = _looks_like(bench.unequal)
    if not done.ok:
        result.status, result.reason, result.fix = Status.WRONG, None, again
        if keep:
            for each in bench.unequal:
                result.arrays[f"{each.what}.got"] = each.got
                result.arrays[f"{each.what}.want"] = each.want
    result.runs.append(done)
    result.seconds = time.perf_counter() - started
    return result


def _looks_like(unequal: list[Unequal]) -> list[str]:
    found = []
    for each in unequal:
        words = patterns(each.got, each.want, each.want, each.axes)
        if words:
            found.append(f"{each.what}: {'; '.join(words)}")
    return found
