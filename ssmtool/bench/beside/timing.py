"""Timing other people's work on a card, in the conditions that ours has: same queue, same long copies before it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssmtool.bench.beside.api import Peer, Task
from ssmtool.bench.beside.difference import differences
from ssmtool.bench.beside.load import Adapter, BesideError, arrays, attempt
from ssmtool.bench.result import Beside

if TYPE_CHECKING:
    from ssmtool.bench.cases import Group
    from ssmtool.device.cuda import CudaDevice

LONGEST_S = 900.0
"""For a whole group with work from outside, which may compile and tune itself for minutes before its first run."""

# What a wait for the card and two events cost at most beyond the work that they stand around.
_SLACK_S = 0.5e-3


class Conditions:
    """What a run begins with: `begin(copies)` puts that many long copies in the queue, each of `copy_seconds`."""

    def __init__(self, device: CudaDevice, begin: Callable[[int], None], copy_seconds: float) -> None:
        self.device = device
        self.begin = begin
        self.copy_seconds = copy_seconds


def time_beside(
    adapters: Sequence[Adapter],
    group: Group,
    inputs: Mapping[str, NDArray[np.float32]],
    ours: Mapping[str, NDArray[np.float32]],
    conditions: Conditions,
    repeat: int,
    warmup: int,
    copy_bytes_per_second: float,
) -> list[Beside]:
    """Every peer of a group, one after the other, on the device's thread. What fails is told in its place.

    Raises BindingError when the card itself failed.
    """
    for array in inputs.values():
        array.setflags(write=False)
    task = Task(
        group.kind, group.positions, group.users, group.heads, group.size, group.scale, group.snapshots, inputs,
        conditions.device.index,
    )  # fmt: skip
    found: list[Beside] = []
    for adapter in adapters:
        try:
            peers = adapter.peers(task)
        except BesideError as error:
            found.append(Beside(adapter.words, group.title, problem=error.message, mend=error.hint))
            continue
        for peer in peers:
            result = Beside(peer.name, group.title, group.cases[0].bytes, group.operations, copy_bytes_per_second)
            result.note = peer.note
            try:
                result.seconds, result.host_seconds = _seconds(peer, conditions, repeat, warmup, group.title)
                if peer.outputs is not None:
                    what = f"{peer.name}, {group.title}"
                    given = arrays(attempt(peer.outputs, f"{what}: outputs()"), what)
                    result.differences = differences(given, ours, what)
            except BesideError as error:
                result.problem, result.mend = error.message, error.hint
            found.append(result)
    return found


def _seconds(
    peer: Peer, conditions: Conditions, repeat: int, warmup: int, title: str
) -> tuple[tuple[float, ...], float]:
    """Seconds of each run on the card, and the least that the host took to put one into the queue."""
    binding = conditions.device.binding
    first, last = conditions.device.events()
    reset = peer.reset or (lambda: None)

    def run() -> float:
        """The host's seconds."""
        began = time.perf_counter()
        attempt(peer.run, f"{peer.name}, {title}")
        return time.perf_counter() - began

    def alone() -> tuple[float, float, float]:
        """A run on an idle card: the host's seconds, those between the events, those until all was done."""
        attempt(reset, f"{peer.name}, {title}: reset()")
        binding.synchronize()
        began = time.perf_counter()
        binding.record(first)
        host = run()
        binding.record(last)
        binding.synchronize()
        return host, binding.elapsed(first, last) / 1e3, time.perf_counter() - began

    alone()  # the first compiles and tunes
    tries = [alone() for _ in range(max(3, warmup))]
    if all(until > 2 * between + _SLACK_S for _, between, until in tries):
        _, between, until = tries[-1]
        raise BesideError(
            f"{peer.name}, {title}: its work goes on after the event behind it:"
            f" {between * 1e6:.0f} us between the events, {until * 1e6:.0f} us until the card was idle",
            hint="put it into the default stream, or have that stream wait for yours",
        )
    host = min(each[0] for each in tries)
    # The queue must be busy for longer than the host takes, or its time would be in the card's.
    copies = max(2, math.ceil(2 * host / conditions.copy_seconds) + 1)
    seconds = []
    for _ in range(repeat):
        conditions.begin(copies)
        attempt(reset, f"{peer.name}, {title}: reset()")
        binding.record(first)
        run()
        binding.record(last)
        binding.synchronize()
        seconds.append(binding.elapsed(first, last) / 1e3)
    return tuple(seconds), host
