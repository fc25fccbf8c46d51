"""Judges a run by a formula in float64 and a tolerance, made wider where the inputs are badly conditioned.

The formula is computed again with each input moved by at most one unit in the last place of fp32, a few times, and once
in float32 throughout. How far these results lie apart is what no kernel can be better than: an algorithm that is stable
gives the right result of almost the right inputs (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, 1.5).
What is within the policy, or within 32 times that distance, is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.fuzz.failure import Failure, Kind
from ssmtool.fuzz.judge import Contract, bounds, run_launches, same
from ssmtool.golden import ArrayResult, GoldenCase, Policy, Run, compare_array
from ssmtool.golden.case import is_poison
from ssmtool.golden.generator import Stream
from ssmtool.golden.reference import run as run_reference
from ssmtool.verify.loaded import Loaded
from ssmtool.verify.result import RunResult, describe

Array = NDArray[Any]
Arrays = dict[str, Array]
# (case, run, type of the arithmetic) -> every buffer after the run, in the buffers' own types
Formula = Callable[[GoldenCase, Run, type], Arrays]

_DECODE = "fc_ssm_decode_step"
# Kernels that are asked for their exponentials first: they may follow each other.
_OWN_EXP = "fc_ssm_recurrence"
_MOVES = 4
_FACTOR = 32.0


def by_contract(contract: Contract, target: str, case: GoldenCase, loaded: Loaded) -> Failure | None:
    """As the contract has it bit by bit, or by the reference where exponentials go through further operations."""
    return by_reference(target, case, loaded) if chained(case) else contract.judge(target, case, loaded)


def chained(case: GoldenCase) -> bool:
    """Whether some run lets a kernel, or a part of it, read what the exponentials of another have left."""
    return any(
        _DECODE in run.entries
        or (len(run.entries) > 1 and any(not entry.startswith(_OWN_EXP) for entry in run.entries))
        for run in case.meta.runs
    )


def by_reference(target: str, case: GoldenCase, loaded: Loaded) -> Failure | None:
    """The first run that is wrong by the product's reference, or None."""
    return by_formula(target, case, loaded, lambda each, run, dtype: run_reference(each, run, dtype=dtype))


def by_formula(target: str, case: GoldenCase, loaded: Loaded, formula: Formula) -> Failure | None:
    """The first run that is wrong by a formula, or None. Raises what `Loaded.run` raises, but for faults."""
    for run in case.meta.runs:
        left = run_launches(target, case, run, loaded)
        if isinstance(left, Failure):
            return left
        want = formula(case, run, np.float64)
        samples = [formula(case, run, np.float32)]
        samples += [formula(_moved(case, number), run, np.float64) for number in range(_MOVES)]
        failure = _compared(target, case, run, left, want, samples)
        if failure is not None:
            return failure
    return None


def _moved(case: GoldenCase, number: int) -> GoldenCase:
    """The case with its inputs moved by at most one unit in the last place, zeros left as they are."""
    stream = Stream(f"fuzz/moved/{number}")
    before: Arrays = {}
    for name, array in case.before.items():
        if array.dtype != np.float32:
            before[name] = array
            continue
        steps = (stream.words(name, array.size) % np.uint64(3)).astype(np.int32).reshape(array.shape) - 1
        usable = np.isfinite(array) & (array != 0) & ~is_poison(array)
        nearby = np.where(usable, array.view(np.int32) + steps, array.view(np.int32)).astype(np.int32)
        before[name] = nearby.view(np.float32)
    return replace(case, before=before)


def _compared(
    target: str, case: GoldenCase, run: Run, got: Arrays, want: Arrays, samples: list[Arrays]
) -> Failure | None:
    wrong: dict[str, ArrayResult] = {}
    adjusted: Arrays = {}
    for name, buffer in case.meta.buffers.items():
        if buffer.after == "any":
            continue
        expected = want[name]
        if buffer.after == "expected" and expected.dtype.kind == "f":
            expected = _lenient(got[name], expected, [each[name] for each in samples])
        adjusted[name] = expected
        policy = _policy(case, name, expected, [each[name] for each in samples])
        result = compare_array(_with(case, name, policy), name, got[name], against=expected)
        if not result.ok:
            wrong[name] = result
    if not wrong:
        return None
    first, result = next(iter(wrong.items()))
    failure = Failure(
        target, Kind(_what(case, result), first), run.entries, case.meta.title, "", case, run, got, adjusted
    )
    failure.results = list(wrong.values())
    failure.low, failure.high = bounds([want, *samples], case)
    done = RunResult(run.name, run.entries, arrays=list(wrong.values()))
    failure.message = describe(done, result, alone=True)
    return failure


def _lenient(got: Array, want: Array, samples: list[Array]) -> Array:
    """What is expected, where anything is: not of elements that overflow, or are NaN, in some of the samples only.

    Nor of those that are off by less than the inputs' last bits make out.
    """
    stack = np.stack([want, *samples])
    finite = np.isfinite(stack)
    edge = finite.any(axis=0) & ~finite.all(axis=0) & ~is_poison(want) & ~is_poison(got)
    with np.errstate(all="ignore"):
        wide = stack.astype(np.float64)
        spread = np.where(finite.all(axis=0), wide.max(axis=0) - wide.min(axis=0), 0.0)
        near = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= _FACTOR * spread
    fits = (edge | near | same(got, want)) & ~is_poison(got)
    return np.where(fits, got, want).astype(want.dtype)


def _policy(case: GoldenCase, name: str, want: Array, samples: list[Array]) -> Policy | None:
    """The buffer's tolerance; one by groups not below what the samples differ by in the worst of them."""
    if case.meta.buffers[name].after != "expected":
        return None
    policy = case.policy(name)
    if policy.nmse is None and policy.max_rms is None:
        return policy
    off = [compare_array(_with(case, name, policy), name, each, against=want) for each in samples]
    nmse, rms = max(each.nmse for each in off), max(each.max_rms for each in off)
    return Policy(
        nmse=None if policy.nmse is None else max(policy.nmse, _FACTOR**2 * nmse),
        max_rms=None if policy.max_rms is None else max(policy.max_rms, _FACTOR * rms),
        max_ulp=policy.max_ulp,
        atol=policy.atol,
    )


def _with(case: GoldenCase, name: str, policy: Policy | None) -> GoldenCase:
    """The case with another tolerance of one buffer."""
    if policy is None:
        return case
    buffers = {**case.meta.buffers, name: msgspec.structs.replace(case.meta.buffers[name], policy="fuzz")}
    return replace(case, meta=msgspec.structs.replace(case.meta, buffers=buffers, policies={"fuzz": policy}))


def _what(case: GoldenCase, result: ArrayResult) -> str:
    if result.unwritten:
        return "unwritten"
    if result.overwritten or case.meta.buffers[result.name].after == "unchanged":
        return "overwritten"
    return "nonfinite" if result.nonfinite else "value"
