"""What a benchmark found, as data."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssmtool.bench.beside.difference import Difference
    from ssmtool.bench.cases import Group
    from ssmtool.errors import SsmtoolError

# GK210, one K80 die, as the audit has it (ssmtool/audit/cost.py).
KEPLER = "one GK210: 52 schedulers at 824 to 875 MHz, 240 GB/s"


class _Timed:
    """What follows from the seconds of single runs, the bytes that must be moved, and the copy bandwidth."""

    __slots__ = ()
    seconds: tuple[float, ...]
    bytes: int
    copy_bytes_per_second: float

    @property
    def median(self) -> float:
        """Seconds. Raises statistics.StatisticsError without times."""
        return statistics.median(self.seconds)

    @property
    def bytes_per_second(self) -> float:
        """Of what must be moved, at the median."""
        return self.bytes / self.median

    def _times(self) -> dict[str, Any]:
        return {
            "median_us": self.median * 1e6,
            "fastest_us": min(self.seconds) * 1e6,
            "slowest_us": max(self.seconds) * 1e6,
            "repeats": len(self.seconds),
            "bytes": self.bytes,
            "bytes_per_second": self.bytes_per_second,
            "of_copy": self.bytes_per_second / self.copy_bytes_per_second,
        }


@dataclass(frozen=True, slots=True)
class Timing(_Timed):
    """One case on a card. Seconds are those of single runs of the case; `bytes` and `operations` are what it must do.

    `bytes_per_second` is `bytes` over the median; `of_copy` its share of the copy bandwidth measured in the same run.
    `same_bits` says whether state and outputs equal those of the group's first case, None for that one. Of a vector,
    `operations` are not known (0), and `right` says whether the run was within its tolerances.
    """

    case: str
    group: str
    launches: int
    seconds: tuple[float, ...]
    bytes: int
    operations: int
    copy_bytes_per_second: float
    same_bits: bool | None
    right: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "case": self.case,
            "group": self.group,
            "launches": self.launches,
            **self._times(),
            "operations_per_second": self.operations / self.median if self.operations else None,
            "same_bits": self.same_bits,
            "right": self.right,
        }


@dataclass(slots=True)
class Beside(_Timed):
    """Work from outside, timed in the same run. `host_seconds` is the least that the host took to start it once.

    `bytes` and `operations` are those that our kernels of the group must do. `problem` says why there are no times,
    `mend` what to do about it.
    """

    peer: str
    group: str
    bytes: int = 0
    operations: int = 0
    copy_bytes_per_second: float = 0.0
    seconds: tuple[float, ...] = ()
    host_seconds: float = 0.0
    differences: tuple[Difference, ...] = ()
    note: str | None = None
    problem: str | None = None
    mend: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        if self.problem is not None:
            return {"peer": self.peer, "group": self.group, "problem": self.problem}
        return {
            "peer": self.peer,
            "group": self.group,
            **self._times(),
            "host_us": self.host_seconds * 1e6,
            "differences": [asdict(each) for each in self.differences],
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Slots:
    """One case on the executor: warp instructions executed, and what a K80 die cannot beat.

    `slots` are those of the whole case, `per_row` those of one `unit`: a state row and position, or an element of a
    vector's outputs; `right` says whether a vector's run was within its tolerances. Floors are in microseconds: the
    issue floor at base and boost clock, and that of the bytes at nominal bandwidth.
    """

    case: str
    group: str
    launches: int
    slots: float
    per_row: float
    bytes: int
    issue_us: tuple[float, float]
    bandwidth_us: float
    same_bits: bool | None
    unit: str = "row and position"
    right: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


@dataclass(slots=True)
class BenchReport:
    """One device: `timings` on a card, with work from outside `beside` them, or `slots` on the executor.

    `failed` are vectors whose launches did not come to their end, and why.
    """

    device: str
    model: str
    driver: str | None
    date: str
    clocks: str | None = None
    copy_bytes_per_second: float | None = None
    timings: list[Timing] = field(default_factory=list)
    beside: list[Beside] = field(default_factory=list)
    slots: list[Slots] = field(default_factory=list)
    failed: list[tuple[Group, SsmtoolError]] = field(default_factory=list)

    @property
    def cases(self) -> list[Timing | Slots]:
        """All of them, of whichever kind."""
        return [*self.timings, *self.slots]

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        data: dict[str, Any] = {"device": self.device, "model": self.model, "driver": self.driver, "date": self.date}
        if self.timings:
            data |= {"clocks": self.clocks, "copy_bytes_per_second": self.copy_bytes_per_second}
            data["timings"] = [each.to_json() for each in self.timings]
        if self.beside:
            data["beside"] = [each.to_json() for each in self.beside]
        if self.slots:
            data |= {"estimate": True, "machine": KEPLER, "slots": [each.to_json() for each in self.slots]}
        return data
