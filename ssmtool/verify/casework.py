"""One case on one device: all of its runs, compared and, where wrong, explained. Never raises for a bad case."""

from __future__ import annotations

import time
from typing import Any

from ssmtool.errors import SsmtoolError
from ssmtool.golden import GoldenCase
from ssmtool.golden.build import CONTRACT
from ssmtool.golden.case import Run
from ssmtool.golden.compare import compare
from ssmtool.golden.reference import knows
from ssmtool.verify.diagnosis import Purse, explain, stored
from ssmtool.verify.loaded import Check, Loaded
from ssmtool.verify.plan import capped_check, run_check, too_large
from ssmtool.verify.result import Result, RunResult, Status

# Arrays of wrong runs are kept for --save-failure up to this size each.
_KEPT_BYTES = 64 << 20


def run_case(
    case: GoldenCase,
    loaded: Loaded,
    *,
    all_work: int,
    purse: Purse | None = None,
    keep: bool = False,
    stop_at_first: bool = False,
    ends: dict[str, Any] | None = None,
) -> Result:
    """Every run of the case. `keep` keeps what wrong runs left; `ends` receives each run's `Ran`, by its name."""
    device = loaded.device
    result = Result(
        "case", case.meta.name, case.meta.title, case.kernels, device.name,
        path=str(case.path) if case.path else None, case=case,
    )  # fmt: skip
    started = time.perf_counter()
    # Before its size: a card would not help.
    result.missing = next((entry for entry in case.kernels if entry not in loaded.entries), "")
    reason = None if result.missing else too_large(case, device)
    if reason is not None:
        result.status = Status.UNCHECKED if device.real else Status.NOT_HERE
        result.reason, result.fix = reason, None if device.real else "ssmtool verify --device cuda"
        return result
    if case.meta.contract != CONTRACT and knows(case):
        result.status = Status.UNCHECKED
        result.reason = f"was written for contract {case.meta.contract!r} of the kernels, this is {CONTRACT!r}"
        result.fix = "ssmtool golden make"
        return result
    checks: set[str] = set()
    for run in case.meta.runs:
        check = capped_check(run_check(run.launches, all_work), loaded.check)
        checks.add("canaries" if device.real else check)
        done = _run(case, run, loaded, check, result, purse, keep=keep, ends=ends)
        if done is not None:
            result.runs.append(done)
            if not done.ok and stop_at_first:
                break
    result.check = ", ".join(sorted(checks))
    result.seconds = time.perf_counter() - started
    if any(not run.ok for run in result.runs):
        result.status, result.reason = Status.WRONG, None
    elif result.status is not Status.WRONG and result.reason is not None:
        result.status = Status.UNCHECKED
    return result


def _run(
    case: GoldenCase, run: Run, loaded: Loaded, check: Check, result: Result, purse: Purse | None, *, keep: bool,
    ends: dict[str, Any] | None,
) -> RunResult | None:  # fmt: skip
    """One run; None where it could not be done, which is then in `result`."""
    done = RunResult(run.name, run.entries)
    try:
        ran = loaded.run(case, run.launches, check=check)
    except SsmtoolError as error:
        if error.exit_code == 1:
            done.faults = faults_of(error)
            return done
        result.reason, result.fix = f"run {run.name}: {error}", error.hint
        return None
    except MemoryError:
        result.reason = f"run {run.name}: this machine has no memory left for its buffers"
        return None
    done.seconds = ran.seconds
    done.notes = [str(note) for note in ran.notes]
    done.arrays = compare(case, ran.after)
    if ends is not None:
        ends[run.name] = ran
    if not done.ok:
        done.looks_like = explain(case, run, ran.after, done.arrays, purse)
        if keep:
            for array in done.arrays:
                if not array.ok and ran.after[array.name].nbytes <= _KEPT_BYTES:
                    result.arrays[f"{run.name}.{array.name}"] = stored(case, array.name, ran.after[array.name])
    return done


def faults_of(error: SsmtoolError) -> list[str]:
    """What the executor's checks or a card's canaries caught, a sentence each."""
    found = getattr(getattr(error, "result", None), "faults", None)
    return [str(fault) for fault in found] if found else [str(error)]
