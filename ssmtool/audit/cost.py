"""What a launch costs in issue slots, by class, and the K80 floors that follow. All of it from PTX text: estimates.

A slot is one PTX instruction issued by one warp. The machine code has other counts (`div.rn` is dozens of instructions,
a `cvta` often none), so slots compare versions of a kernel; they do not predict microseconds. The floors say what a
launch cannot beat if the slots were real, with one instruction per scheduler and clock: Kepler can issue a second,
independent one at times, so the issue floor may be undercut by up to a half.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ssmtool.audit.assumptions import Assumed, Assumption, Parameters, make_assumption, resolve
from ssmtool.audit.classes import CLASSES
from ssmtool.audit.flow import Flow
from ssmtool.audit.inputs import Input
from ssmtool.audit.launches import Launch, contract_launches, fast_launches, launches_of
from ssmtool.audit.loopcontrol import classes_by_place
from ssmtool.audit.names import cut
from ssmtool.audit.walk import CannotTellError, Shape, walk
from ssmtool.findings import Skip
from ssmtool.ptx import Function
from ssmtool.settings_form import table

# GK210, one of the two dies of a K80: 13 multiprocessors of 4 schedulers; 824 MHz base and 875 MHz highest boost clock
# (NVIDIA's K80 board specification, BD-07317-001); 240 GB/s of memory.
SCHEDULERS = 13 * 4
BASE_HZ, BOOST_HZ = 824e6, 875e6
BYTES_PER_SECOND = 240e9

POSITIONS = 128
# Positions are walked at 1 and 1 + _STEP and the rest follows by the line through both. 32 because kernels that stage
# per-position values give one position to each lane: a smaller step would see none or all of that work.
_STEP = 32

# Parameters of the contract's kernels at the reference shape (docs/kernels.md), by C name.
REFERENCE = {
    "state_size": 128,
    "S": 128,
    "n_v_heads": 32,
    "n_k_heads": 16,
    "kv_groups": 2,
    "key_dim": 2048,
    "val_dim": 4096,
    "conv_dim": 8192,
    "conv_kernel": 4,
    "n_heads": 32,
    "total": 32 * POSITIONS,
    "n": 32,
    "snaps": 0,
}
# Kernels that take their positions one after the other, in a parameter n.
_SEQUENTIAL = "_seq"
_CONTRACT = frozenset(launch.kernel for launch in (*contract_launches(), *fast_launches()))
# Kernels without a launch that are named; the rest are counted.
_NAMED = 6


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One launch. Slots are warp issues.

    `block_slots` are those of one block over the whole launch, `position_slots` those a further position adds (None
    where the launch has no positions), both by class. `read_bytes` and `written_bytes` are the distinct bytes of global
    memory the whole grid touches, by parameter; they are scaled from a few blocks. `exact` is False when some address
    is not known, and the bytes are then too few.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    assumed: Mapping[str, int]
    positions: int | None
    warps: int
    block_slots: Mapping[str, float]
    position_slots: Mapping[str, float] | None
    read_bytes: Mapping[str, float]
    written_bytes: Mapping[str, float]
    exact: bool

    @property
    def slots(self) -> float:
        """Slots of the whole grid."""
        x, y, z = self.grid
        return sum(self.block_slots.values()) * x * y * z

    @property
    def issue_floor_us(self) -> tuple[float, float]:
        """Microseconds at (base, boost) clock when every scheduler issues one instruction a clock."""
        return self.slots / SCHEDULERS / BASE_HZ * 1e6, self.slots / SCHEDULERS / BOOST_HZ * 1e6

    @property
    def bytes(self) -> float:
        """Distinct bytes read plus bytes written."""
        return sum(self.read_bytes.values()) + sum(self.written_bytes.values())

    @property
    def bandwidth_floor_us(self) -> float:
        """Microseconds to move `bytes` once at nominal bandwidth."""
        return self.bytes / BYTES_PER_SECOND * 1e6

    def to_json(self) -> dict[str, Any]:
        """The cost as JSON data."""
        return {
            **asdict(self),
            "slots": self.slots,
            "issue_floor_us": {"base_clock": self.issue_floor_us[0], "boost_clock": self.issue_floor_us[1]},
            "bandwidth_floor_us": self.bandwidth_floor_us,
        }


@dataclass(slots=True)
class CostReport:
    """The costs that could be told, and why the others could not."""

    costs: list[KernelCost] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The costs as JSON data, with what they rest on."""
        return {
            "estimate": True,
            "machine": {
                "name": "GK210 (one K80 die)",
                "schedulers": SCHEDULERS,
                "base_hz": BASE_HZ,
                "boost_hz": BOOST_HZ,
                "bytes_per_second": BYTES_PER_SECOND,
            },
            "kernels": [cost.to_json() for cost in self.costs],
        }


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How a kernel is walked: its shape, and the parameter (if any) whose positions are counted.

    `reference` says that it is a kernel of the contract, whose parameters have the reference values unless assumed.
    """

    shape: Shape
    positions: int | None = None
    parameter: str | None = None
    reference: bool = False


def cost_report(
    inputs: Sequence[Input], assumptions: Iterable[Assumption], launches: Sequence[Launch] = ()
) -> CostReport:
    """The cost of every kernel whose launch is known: by `launches`, or because it is one of the contract's.

    Assumptions given replace the reference values of the contract's kernels. A kernel that has no known launch, or
    whose branches depend on data, becomes a Skip. Raises SsmtoolError for a launch that fits no kernel.
    """
    report = CostReport()
    plans = plans_of((function for each in inputs for function in each.module.entries), launches)
    given = list(assumptions)
    unknown: list[str] = []
    for each in inputs:
        for function in each.module.entries:
            plan = plans.get(function.name)
            if plan is None:
                unknown.append(function.name)
                continue
            try:
                report.costs.append(_cost(each, function, plan, given))
            except CannotTellError as error:
                fix = f"--assume {shlex.quote(cut(function.name, '*'))}.PARAMETER=VALUE, unless it is data"
                report.skips.append(Skip(f"cost of {cut(function.name)}", error.message, fix))
    if unknown:
        report.skips.append(no_launch("cost", unknown))
    return report


def no_launch(what: str, kernels: Sequence[str]) -> Skip:
    """That `what` was not told for kernels without a launch."""
    names = ", ".join(map(cut, kernels[:_NAMED]))
    names += f" and {len(kernels) - _NAMED} more" if len(kernels) > _NAMED else ""
    fix = f"--launch {shlex.quote(cut(kernels[0], '*'))}=GRID/BLOCK, or {table('launch')}"
    return Skip(f"{what} of {names}", "no launch shape is known", fix)


def plans_of(entries: Iterable[Function], launches: Sequence[Launch] = ()) -> dict[str, LaunchPlan]:
    """Entry name -> how it is walked. Raises SsmtoolError as `launches_of`."""
    plans = {}
    for name, launch in launches_of(entries, launches).items():
        contract = name in _CONTRACT
        sequential = contract and _SEQUENTIAL in name
        plans[name] = LaunchPlan(
            Shape(launch.grid, launch.block), POSITIONS if sequential else None, "n" if sequential else None, contract
        )
    return plans


def walked_counts(
    each: Input, function: Function, assumptions: Iterable[Assumption], launches: Sequence[Launch] = ()
) -> tuple[dict[int, int] | None, str | None]:
    """(issues by instruction of one block, None), or (None, why they cannot be told); 2 positions are walked.

    Raises SsmtoolError for a launch of this kernel that it cannot have.
    """
    plan = plans_of([function], launches).get(function.name)
    if plan is None:
        return None, f"no launch shape is known; --launch {shlex.quote(cut(function.name, '*'))}=GRID/BLOCK gives one"
    try:
        assumed = _assumed(each, function, plan, assumptions, {"n": 2} if plan.parameter else {})
        return walk(Flow(function), assumed, plan.shape).issued, None
    except CannotTellError as error:
        return None, error.message


def _assumed(
    each: Input, function: Function, plan: LaunchPlan, given: Iterable[Assumption], forced: Mapping[str, int]
) -> Assumed:
    """Reference values, then what the user assumes, then `forced`, for the parameters the kernel has."""
    parameters = Parameters.of(function, each.parameters)

    def made(values: Mapping[str, int]) -> list[Assumption]:
        named = (make_assumption(f"{function.name}.{name}", value) for name, value in values.items())
        return [replace(one, optional=True) for one in named]

    reference = made(REFERENCE) if plan.reference else []
    ordered = [*reference, *(replace(one, optional=True) for one in given), *made(forced)]
    return resolve(ordered, {function.name: parameters})[function.name]


def _cost(each: Input, function: Function, plan: LaunchPlan, given: Sequence[Assumption]) -> KernelCost:
    flow = Flow(function)
    classes = classes_by_place(flow)
    names = Parameters.of(function, each.parameters).names
    shape = plan.shape
    first = {plan.parameter: 1} if plan.parameter else {}
    assumed = _assumed(each, function, plan, given, first)
    base = _Sample.of(flow, assumed, shape, classes)
    grid = _Grid(flow, assumed, shape, base)
    position_slots: Numbers | None = None
    slots, exact = base.slots, base.exact
    read, written = grid.words(base)
    if plan.parameter and plan.positions:
        further = _assumed(each, function, plan, given, {plan.parameter: 1 + _STEP})
        more = _Sample.of(flow, further, shape, classes)
        more_read, more_written = grid.words(more)
        exact = exact and more.exact
        position_slots = _slope(base.slots, more.slots)
        slots = _extend(base.slots, position_slots, plan.positions)
        read = _extend(read, _slope(read, more_read), plan.positions)
        written = _extend(written, _slope(written, more_written), plan.positions)
        assumed = _assumed(each, function, plan, given, {plan.parameter: plan.positions})
    return KernelCost(
        kernel=function.name,
        grid=shape.grid,
        block=shape.block,
        assumed=dict(assumed.shown),
        positions=plan.positions,
        warps=-(-shape.threads // 32),
        block_slots={name: slots[name] for name in CLASSES if slots.get(name)},
        position_slots=None
        if position_slots is None
        else {name: position_slots[name] for name in CLASSES if position_slots.get(name)},
        read_bytes={names[int(buffer)]: 4 * words for buffer, words in read.items()},
        written_bytes={names[int(buffer)]: 4 * words for buffer, words in written.items()},
        exact=exact,
    )


Numbers = dict[Any, float]


def _slope(low: Numbers, high: Numbers) -> Numbers:
    return {key: (high.get(key, 0) - low.get(key, 0)) / _STEP for key in {**low, **high}}


def _extend(low: Numbers, slope: Numbers, positions: int) -> Numbers:
    return {key: low.get(key, 0) + (positions - 1) * slope.get(key, 0) for key in {**low, **slope}}


@dataclass(frozen=True, slots=True)
class _Sample:
    """Slots of block (0, 0, 0) by class; words of global memory it touches, by parameter index."""

    slots: Numbers
    read: Mapping[int, set[int]]
    written: Mapping[int, set[int]]
    exact: bool

    @classmethod
    def of(cls, flow: Flow, assumed: Assumed, shape: Shape, classes: Sequence[str]) -> _Sample:
        walked = walk(flow, assumed, shape)
        slots: Numbers = {}
        for index, count in walked.issued.items():
            slots[classes[index]] = slots.get(classes[index], 0) + count
        return cls(slots, walked.read, walked.written, not walked.unknown_addresses)


class _Grid:
    """From the words of block (0, 0, 0) to those of the whole grid.

    Along each axis, the share of the next block's words that are new is taken to be new in every further block. The
    share is measured once, at one position.
    """

    def __init__(self, flow: Flow, assumed: Assumed, shape: Shape, origin: _Sample) -> None:
        self._read: dict[int, float] = {}
        self._written: dict[int, float] = {}
        for axis, size in enumerate(shape.grid):
            if size == 1:
                continue
            x, y, z = (int(axis == other) for other in range(3))
            moved = walk(flow, assumed, Shape(shape.grid, shape.block, (x, y, z)))
            for factors, old, new in (
                (self._read, origin.read, moved.read),
                (self._written, origin.written, moved.written),
            ):
                for buffer, words in new.items():
                    fresh = len(words - old.get(buffer, set())) / len(words)
                    factors[buffer] = factors.get(buffer, 1.0) * (1 + (size - 1) * fresh)

    def words(self, sample: _Sample) -> tuple[Numbers, Numbers]:
        """(words read, words written) by the grid, by parameter index."""
        return (
            {buffer: len(words) * self._read.get(buffer, 1.0) for buffer, words in sample.read.items()},
            {buffer: len(words) * self._written.get(buffer, 1.0) for buffer, words in sample.written.items()},
        )
