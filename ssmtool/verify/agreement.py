"""The same run on several devices: equal bits, or how they differ and whether the executor promised them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ssmtool.device.compare import difference
from ssmtool.golden import GoldenCase
from ssmtool.golden.compare import element
from ssmtool.verify.diagnosis import stored
from ssmtool.verify.loaded import Ran
from ssmtool.verify.result import Result, RunResult, Status


def compare_ends(case: GoldenCase, ends: Mapping[str, Mapping[str, Ran]], order: Sequence[str]) -> list[Result]:
    """One result for each device after the first: its runs against the first device's, buffer by buffer, bit by bit.

    `ends` has each device's runs by name; a run that one of the two did not finish is not compared here.
    """
    found = []
    for other in order[1:]:
        result = Result("devices", case.meta.name, f"{other} = {order[0]}", case.kernels, f"{order[0]}, {other}")
        for run in case.meta.runs:
            one, two = ends[order[0]].get(run.name), ends[other].get(run.name)
            if one is None or two is None:
                continue
            done = RunResult(run.name, run.entries)
            evidence = {**one.evidence, **two.evidence}
            for name, buffer in case.meta.buffers.items():
                a, b = stored(case, name, one.after[name]), stored(case, name, two.after[name])
                differ = difference(a, b)
                if differ is None:
                    continue
                flat = 0
                for at, extent in zip(differ.first, a.shape, strict=True):
                    flat = flat * extent + at
                label = evidence.get(name, "exact")
                words = (
                    f"run {run.name}: {differ.count} of {a.size} elements have other bits, the first is "
                    f"{element(name, buffer, flat)}: {differ.expected:#010x} on {order[0]}, {differ.got:#010x} on "
                    f"{other}; {differ.cause}; {label} by the executor"
                )
                # Where the executor only models a unit, a difference is news about the unit, not about the kernel.
                (done.faults if label == "exact" else done.notes).append(words)
            result.runs.append(done)
        if result.runs:
            result.status = Status.OK if all(run.ok for run in result.runs) else Status.WRONG
            found.append(result)
    return found
