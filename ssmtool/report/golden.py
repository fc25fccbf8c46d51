"""Golden vectors for people and as JSON: the list, one case, the known mistakes, what oracles said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ssmtool.golden import Argument, GoldenCase
from ssmtool.golden.mistakes import MISTAKES
from ssmtool.golden.oracles import AGREEMENT, Agreement, Oracle
from ssmtool.report.table import print_table
from ssmtool.wording import plural

# Launches of one run that are listed; the rest is counted.
_LAUNCHES_SHOWN = 4


def print_list(cases: Sequence[GoldenCase]) -> None:
    """One line for each case."""
    rows = [[case.meta.name, str(len(case.meta.runs)), _size(_stored_bytes(case)), case.meta.title] for case in cases]
    print_table("", ["case", "runs", "data", "what it is for"], rows)
    print(f"{plural(len(cases), 'case')}, {_size(sum(map(_stored_bytes, cases)))}")


def print_mistakes() -> None:
    """Every known mistake: its name, what it is, which kernels can make it."""
    rows = [[each.name, each.says, " ".join(each.kernels)] for each in MISTAKES]
    print_table("", ["mistake", "the reference with", "kernels"], rows)


def mistakes_json() -> list[dict[str, Any]]:
    """The same as data."""
    return [{"name": each.name, "says": each.says, "kernels": list(each.kernels)} for each in MISTAKES]


def print_case(case: GoldenCase) -> None:
    """One case: buffers, runs, tolerances, where it comes from."""
    meta = case.meta
    print(f"{meta.name}: {meta.title}")
    conventions = ", ".join(f"{key} {value}" for key, value in meta.conventions.items())
    print(f"  contract {meta.contract}{f'; {conventions}' if conventions else ''}")
    if meta.exposes:
        print(f"  must fail: {', '.join(meta.exposes)}")
    made = meta.provenance
    if made.generator:
        version = f" {made.generator_version}" if made.generator_version else ""
        print(f"  made by {made.generator}{version} {made.reference}".rstrip())
    elif made.note:
        print(f"  {made.note}")
    print(f"  device memory: {_size(case.device_bytes)}")
    print()
    rows = []
    for name, buffer in meta.buffers.items():
        shape = ", ".join(f"{axis} {size}" for axis, size in zip(buffer.axes, buffer.shape, strict=True))
        odd = ", ".join(f"{count} {word}" for word, count in (("NaN", buffer.nan), ("inf", buffer.inf)) if count)
        how = str(case.policy(name)) if buffer.after == "expected" else ""
        apart = f", each {' '.join(buffer.group)} apart" if buffer.group else ""
        rows.append([name, f"{buffer.dtype} [{shape}]", buffer.before, buffer.after, f"{how}{apart}", odd])
    print_table("", ["buffer", "shape", "before", "after", "tolerance", "not finite"], rows)
    for run in meta.runs:
        print(f"run {run.name!r}, {plural(len(run.launches), 'launch')[:-1]}{'es' if len(run.launches) > 1 else 'h'}:")
        for launch in run.launches[:_LAUNCHES_SHOWN]:
            sizes = " ".join(f"{word} {'x'.join(map(str, each))}" for word, each in
                             (("grid", launch.grid), ("block", launch.block)))  # fmt: skip
            print(f"  {launch.entry} {sizes} shared {launch.shared_bytes} ({', '.join(map(_argument, launch.args))})")
        if len(run.launches) > _LAUNCHES_SHOWN:
            print(f"  ... and {len(run.launches) - _LAUNCHES_SHOWN} more; --format json has them all")


def case_json(case: GoldenCase) -> dict[str, Any]:
    """A case as data: all of its JSON, and numbers about its arrays instead of their elements."""
    data: dict[str, Any] = msgspec.to_builtins(case.meta)
    data["kernels"], data["device_bytes"] = list(case.kernels), case.device_bytes
    data["arrays"] = {
        f"{when}.{name}": _numbers(array)
        for when, held in (("before", case.before), ("after", case.after))
        for name, array in held.items()
    }
    return data


def print_agreements(oracles: Sequence[Oracle], found: Sequence[Agreement]) -> None:
    """What each oracle said, and how often."""
    rows = []
    for oracle in oracles:
        said = [each for each in found if each.oracle == oracle.name and not each.skipped]
        worst = max(said, key=lambda each: each.nmse, default=None)
        agree = sum(each.ok for each in said)
        rows.append([
            oracle.name, str(len(said)), str(agree), f"{worst.nmse:.1e}" if worst else "", worst.case if worst else "",
            oracle.versions,
        ])  # fmt: skip
    print_table(f"Other people's code, in float64; agreement is NMSE <= {AGREEMENT:g}",
                ["oracle", "cases", "agree", "worst NMSE", "worst case", "versions"], rows)  # fmt: skip


def agreements_json(oracles: Sequence[Oracle], found: Sequence[Agreement]) -> list[dict[str, Any]]:
    """The same as data, case by case."""
    versions = {oracle.name: oracle.versions for oracle in oracles}
    return [
        {
            "case": each.case,
            "oracle": each.oracle,
            "versions": versions[each.oracle],
            **({"skipped": each.skipped} if each.skipped else {"nmse": _finite(each.nmse), "buffer": each.buffer}),
        }
        for each in found
    ]


def _stored_bytes(case: GoldenCase) -> int:
    return sum(array.nbytes for held in (case.before, case.after) for array in held.values())


def _size(count: int) -> str:
    for unit, limit in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} bytes"


def _argument(argument: Argument) -> str:
    if argument.buffer is not None:
        at = f"+{argument.offset}" if argument.offset else ""
        return (
            f"{argument.buffer}{at}" if argument.buffer == argument.name else f"{argument.name}={argument.buffer}{at}"
        )
    return f"{argument.name}={'null' if argument.type == 'null' else argument.value}"


def _numbers(array: Any) -> dict[str, Any]:
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    found: dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if finite.size:
        wide = finite.astype(np.float64)
        found |= {"min": float(wide.min()), "max": float(wide.max()), "rms": float(np.sqrt((wide * wide).mean()))}
    return found


def _finite(value: float) -> float | str:
    return value if abs(value) < float("inf") else str(value)
