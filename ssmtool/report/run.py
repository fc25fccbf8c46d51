"""A launch on the CPU executor as findings, as JSON, and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.audit.classes import CLASSES
from ssmtool.audit.flow import Flow
from ssmtool.audit.loopcontrol import classes_by_place
from ssmtool.execute import Fault, KernelFault, LaunchResult
from ssmtool.findings import Finding, Severity
from ssmtool.ptx import Function

Place = Callable[[int], int]

_MEMORY = "a GPU reads or overwrites whatever lies there, or ends the whole context"
_UNDEFINED = "the value is undefined, and may differ from run to run"
_EFFECTS = {
    Fault.OUT_OF_BOUNDS: _MEMORY,
    Fault.MISALIGNED: "a GPU ends the whole context with a misaligned address",
    Fault.READ_ONLY: _MEMORY,
    Fault.UNWRITTEN_GLOBAL: _UNDEFINED,
    Fault.UNWRITTEN_SHARED: _UNDEFINED,
    Fault.UNWRITTEN_REGISTER: _UNDEFINED,
    Fault.RACE: "the result depends on which warp is faster",
    Fault.WARP_RACE: "none on Kepler; from Volta on the threads of a warp need __syncwarp()",
    Fault.BARRIER_DIVERGENCE: "undefined: the block may hang, or go on with stale data",
    Fault.BARRIER_DEADLOCK: "the kernel never ends",
    Fault.BARRIER_EXITED: "undefined: the block may hang, or go on with stale data",
    Fault.SHUFFLE_INACTIVE: _UNDEFINED,
    Fault.DIVISION_BY_ZERO: "the quotient is undefined",
    Fault.BUDGET: "the kernel never ends, or the display driver's watchdog ends it",
    Fault.TRAP: "the whole context is lost",
}
# Opcodes listed when counts are asked for.
_OPCODES_SHOWN = 12


def findings_of(result: LaunchResult, path: str, place: Place) -> list[Finding]:
    """Faults as errors and portability notes as notes; `place` turns a line of the PTX into one of the file."""
    errors = [_finding(fault, Severity.ERROR, path, place) for fault in result.faults]
    return errors + [_finding(note, Severity.NOTE, path, place) for note in result.notes]


def _finding(fault: KernelFault, severity: Severity, path: str, place: Place) -> Finding:
    source = f" ({fault.source})" if fault.source else ""
    times = f", {fault.count} times" if fault.count > 1 else ""
    return Finding(
        rule=f"run/{fault.rule}",
        severity=severity,
        message=f"{fault.kernel}{source}, block {fault.block}, thread {fault.thread}{times}: {fault.message}",
        kernel=fault.kernel,
        path=path,
        line=place(fault.line) if fault.line else None,
        effect=_EFFECTS[fault.kind],
    )


def run_json(result: LaunchResult, function: Function, times: Sequence[float]) -> dict[str, Any]:
    """Everything beside the findings."""
    data: dict[str, Any] = {
        "entry": result.entry,
        "block": list(result.facts.block),
        "threads": result.threads,
        "seconds": list(times),
        "cached": result.cached,
        "stopped": result.stopped,
        "faults": [_fault_json(fault) for fault in (*result.faults, *result.notes)],
        "buffers": [
            {
                "name": name,
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "written": result.written(name),
                "evidence": str(result.evidence(name)),
            }
            for name, array in result.buffers.items()
        ],
    }
    if result.counters is not None:
        data["warp_instructions"] = {
            "total": result.counters.total,
            "by_class": _classes(result, function),
            "by_opcode": dict(_opcodes(result, function)),
        }
        data["branch_efficiency"] = result.counters.branch_efficiency
        data["bank_passes_per_request"] = result.counters.parts_per_request("shared")
        data["sectors_per_request"] = result.counters.parts_per_request("global")
        data["accesses"] = [asdict(each) for each in result.counters.accesses]
    return data


def _fault_json(fault: KernelFault) -> dict[str, Any]:
    return {
        "kind": fault.rule,
        "ptx_line": fault.line,
        "instruction": fault.text,
        "source": fault.source,
        "block": list(fault.block),
        "thread": list(fault.thread),
        "other_thread": list(fault.other) if fault.other is not None else None,
        "other_ptx_line": fault.other_line or None,
        "other_instruction": fault.other_text or None,
        "where": fault.where,
        "count": fault.count,
    }


def _opcodes(result: LaunchResult, function: Function) -> list[tuple[str, int]]:
    assert result.counters is not None
    counts: Counter[str] = Counter()
    for index, times in result.counters.by_instruction.items():
        if times:
            counts[function.opcodes[index]] += times
    return counts.most_common()


def _classes(result: LaunchResult, function: Function) -> dict[str, int]:
    """Executed warp instructions by class of `audit-ptx --cost`; those of called functions as "called"."""
    assert result.counters is not None
    classes = classes_by_place(Flow(function))
    counts: Counter[str] = Counter()
    for index, times in result.counters.by_instruction.items():
        counts[classes[index]] += times
    counts["called"] = result.counters.total - counts.total()
    return {name: counts[name] for name in (*CLASSES, "called") if counts[name]}


def print_run(result: LaunchResult, function: Function, blocks: int) -> None:
    """What is known of each buffer, and the counts if there are any."""
    width = max((len(name) for name in result.buffers), default=0)
    for name, array in result.buffers.items():
        kind = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
        known = "not written" if result.written(name) is False else str(result.evidence(name))
        print(f"  {name:<{width}}  {kind:<20}  {known}")
    if result.counters is not None:
        total = result.counters.total
        print(f"  {total} warp instructions, {total / blocks:.1f} a block")
        for name, times in _classes(result, function).items():
            print(f"  {times:>12}  {times / blocks:>10.1f} a block  {name}")
        print(f"  {_quality(result)}")
        for line in _worst(result, function):
            print(f"  {line}")
        counts = _opcodes(result, function)
        for opcode, times in counts[:_OPCODES_SHOWN]:
            print(f"  {times:>12}  {opcode}")
        if len(counts) > _OPCODES_SHOWN:
            print(
                f"  {sum(times for _, times in counts[_OPCODES_SHOWN:]):>12}  of {len(counts) - _OPCODES_SHOWN} others"
            )


def _quality(result: LaunchResult) -> str:
    """Branches, bank conflicts and sectors in a line."""
    assert result.counters is not None
    branches, passes, sectors = (
        result.counters.branch_efficiency,
        result.counters.parts_per_request("shared"),
        result.counters.parts_per_request("global"),
    )
    words = ["no conditional branch" if branches is None else f"branch efficiency {branches:.1%}"]
    if passes is not None:
        words.append(f"{passes:.2f} bank passes for a shared access")
    if sectors is not None:
        words.append(f"{sectors:.2f} sectors for a global access")
    return "; ".join(words)


def _worst(result: LaunchResult, function: Function) -> list[str]:
    """For each space the access that needs most passes or sectors a warp: an average over all hides it."""
    assert result.counters is not None
    lines = []
    for space, what in (("shared", "bank passes"), ("global", "sectors")):
        own = [each for each in result.counters.accesses if each.space == space and each.requests]
        if own:
            worst = max(own, key=lambda each: each.parts / each.requests)
            text = "in a called function"
            if worst.index >= 0:
                instruction = function.instructions[worst.index]
                text = f"PTX line {instruction.line}: {' '.join(instruction.text.split())}"
            lines.append(f"most: {worst.parts / worst.requests:.2f} {what} ({text})")
    return lines


def print_values(shown: Mapping[str, int], buffers: Mapping[str, NDArray[Any]]) -> None:
    """The first values of the buffers asked for, with all the digits that tell them apart."""
    for name, count in shown.items():
        values = buffers[name].reshape(-1)[:count]
        print(f"  {name}[:{len(values)}] = {' '.join(_digits(value) for value in values)}")


def _digits(value: Any) -> str:
    return np.format_float_positional(value, trim="0") if 1e-4 <= abs(value) < 1e7 and _real(value) else str(value)


def _real(value: Any) -> bool:
    return isinstance(value, np.floating)


def summary(result: LaunchResult, grid: tuple[int, ...], times: Sequence[float]) -> str:
    """The last line: launch, time, threads."""
    shape = f"grid {_times(grid)}, block {_times(result.facts.block)}"
    each = f"{median(times) * 1e3:.3f} ms"
    if len(times) > 1:
        each += f" (median of {len(times)}; {min(times) * 1e3:.3f} to {max(times) * 1e3:.3f})"
    stopped = "; stopped before its last block" if result.stopped else ""
    threads = f"{result.threads} thread{'' if result.threads == 1 else 's'}"
    return f"{result.entry}, {shape}: {each} on {threads}{stopped}"


def _times(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents))
