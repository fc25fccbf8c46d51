"""Judges a run of one of the product's kernels by its contract: every element must be one that the contract allows.

Nothing here is a tolerance, so no input is too badly conditioned to be judged: where terms cancel, the reference in
float32 cancels the same bits. See `roundings` for what is left open.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.failure import Failure, Kind
from ssmtool.fuzz.own_exp import OwnExp
from ssmtool.fuzz.roundings import allowed
from ssmtool.golden import ArrayResult, GoldenCase, Run, compare_array
from ssmtool.golden.case import is_poison
from ssmtool.verify.diagnosis import stored
from ssmtool.verify.loaded import Loaded
from ssmtool.verify.result import RunResult, describe

Array = NDArray[Any]
Arrays = dict[str, Array]


class Contract:
    """Runs cases and judges them; one for each device, since it keeps what kernels told of their exponentials."""

    def __init__(self) -> None:
        self._own_exp = OwnExp()

    def judge(self, target: str, case: GoldenCase, loaded: Loaded) -> Failure | None:
        """The first run of the case that is wrong, or None. Raises SsmtoolError where it could not be run."""
        for run in case.meta.runs:
            left = run_launches(target, case, run, loaded)
            if isinstance(left, Failure):
                return left
            decays = self._own_exp.of(case, run, loaded)
            failure = compared(target, case, run, left, list(allowed(case, run, decays)))
            if failure is not None:
                return failure
        return None


def run_launches(target: str, case: GoldenCase, run: Run, loaded: Loaded) -> Arrays | Failure:
    """What the run leaves of every buffer, in the file's rows; or the fault that ended it."""
    try:
        ran = loaded.run(case, run.launches)
    except SsmtoolError as error:
        if error.exit_code != 1:
            raise
        return faulted(target, run.entries, case.meta.title, error, case, run)
    return {name: stored(case, name, array) for name, array in ran.after.items()}


def faulted(
    target: str, kernels: tuple[str, ...], shape: str, error: SsmtoolError, case: GoldenCase | None = None,
    run: Run | None = None,
) -> Failure:  # fmt: skip
    """The failure of a run that the executor's checks, or a card's canaries, ended."""
    faults = getattr(getattr(error, "result", None), "faults", None) or []
    kind = Kind(faults[0].rule, f"line {faults[0].line}") if faults else Kind("fault", type(error).__name__)
    kernels = (faults[0].kernel,) if faults else kernels
    message = "; ".join(str(fault).rstrip(" ;") for fault in faults[:2]) or str(error)
    return Failure(target, kind, kernels, shape, message, case, run)


def compared(target: str, case: GoldenCase, run: Run, got: Arrays, members: list[Arrays]) -> Failure | None:
    """The failure of a run that left `got`, where `members` are all that is right; None if each element is of one."""
    wrong: dict[str, ArrayResult] = {}
    wants: Arrays = {}
    for name, buffer in case.meta.buffers.items():
        if buffer.after == "any":
            continue
        right = np.zeros(got[name].shape, np.bool_)
        for member in members:
            right |= same(got[name], member[name])
            if right.all():
                break
        # What is right is what is wanted; elsewhere the likeliest of what would be.
        wants[name] = np.where(right, got[name], members[0][name]).astype(got[name].dtype)
        if not right.all():
            wrong[name] = compare_array(exactly(case, name), name, got[name], against=wants[name])
    if not wrong:
        return None
    first, result = next(iter(wrong.items()))
    kind = _kind(case, result, got[first], wants[first])
    failure = Failure(target, Kind(kind, first), run.entries, case.meta.title, "", case, run, got, wants)
    failure.results = list(wrong.values())
    failure.low, failure.high = bounds(members, case)
    if kind == "value":  # how far off is more telling than how many bits
        result = compare_array(case, first, got[first], against=wants[first])
    failure.message = describe(RunResult(run.name, run.entries, arrays=[result]), result, alone=True)
    if kind == "bits":
        failure.message += "; no last bits of exp and log1p make the contract's operations end so"
    return failure


def same(got: Array, want: Array) -> NDArray[np.bool_]:
    """Which elements have the same bits; any NaN is any NaN, but what was not written is only itself."""
    if got.dtype.kind != "f":
        equal: NDArray[np.bool_] = got == want
        return equal
    kept, wanted = is_poison(got), is_poison(want)
    unsigned = f"<u{got.dtype.itemsize}"
    bits = np.ascontiguousarray(got).view(unsigned) == np.ascontiguousarray(want).view(unsigned)
    found: NDArray[np.bool_] = bits | (np.isnan(got) & np.isnan(want) & (kept == wanted))
    return found


def exactly(case: GoldenCase, name: str) -> GoldenCase:
    """The case with the buffer's bits expected."""
    buffer = case.meta.buffers[name]
    policy = None if buffer.policy is None else "exact"
    buffers = {**case.meta.buffers, name: msgspec.structs.replace(buffer, policy=policy)}
    return replace(case, meta=msgspec.structs.replace(case.meta, buffers=buffers))


def bounds(members: list[Arrays], case: GoldenCase) -> tuple[Arrays, Arrays]:
    """The least and the greatest of what is right, element by element. Where one is NaN both are that of the first."""
    low, high = {}, {}
    for name in case.meta.buffers:
        stack = np.stack([member[name] for member in members])
        low[name], high[name] = stack[0].copy(), stack[0].copy()
        if stack.dtype.kind == "f" and len(members) > 1:
            finite = np.isfinite(stack).all(axis=0)
            with np.errstate(invalid="ignore"):
                low[name] = np.where(finite, stack.min(axis=0), stack[0])
                high[name] = np.where(finite, stack.max(axis=0), stack[0])
    return low, high


def _kind(case: GoldenCase, result: ArrayResult, got: Array, want: Array) -> str:
    if result.unwritten:
        return "unwritten"
    if result.overwritten or case.meta.buffers[result.name].after == "unchanged":
        return "overwritten"
    if result.nonfinite:
        return "nonfinite"
    return "bits" if compare_array(case, result.name, got, against=want).ok else "value"
