"""One batch of rounds: a description that can be sent anywhere, and the function that runs it.

    from ssmtool.fuzz import run_batch
    result = run_batch(batch)              # in this process, in another, on another machine

A batch depends on nothing but itself, and its rounds on its seed, target and index alone: however batches are spread,
their results are the same. A failure is shrunk where it happened. Devices and compiled kernels are kept between
batches of one process; `close()` lets them go.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ssmtool import ptx
from ssmtool.device import Device, open_devices
from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.engine import Limits, Search
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.kernels import Judge
from ssmtool.fuzz.target import Target
from ssmtool.fuzz.targets import SIZES, all_targets
from ssmtool.verify.loaded import Check, Loaded, Text


@dataclass(frozen=True)
class Subject:
    """What is fuzzed, the same for all batches: PTX modules with their parameters' names, a user's file, vectors.

    `user` is a file's path, for messages, and its text; `vectors` are files' bytes.
    """

    texts: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...]
    user: tuple[str, str] | None = None
    vectors: tuple[tuple[str, bytes], ...] = ()
    sizes: tuple[int, ...] = SIZES
    judge: Judge = "contract"
    check: Check = "all"

    @cached_property
    def digest(self) -> str:
        """The same for equal subjects only."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


@dataclass(frozen=True)
class Batch:
    """`rounds` rounds of a target on a device. `seconds` ends it early; None lets it run to its end."""

    subject: Subject
    target: str
    index: int
    seed: int
    rounds: int
    device: str = "cpu"
    limits: Limits = field(default_factory=Limits)
    seconds: float | None = None

    @property
    def stream(self) -> int:
        """The seed that hypothesis is given."""
        word = f"{self.seed}/{self.target}/{self.index}"
        return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")


@dataclass
class BatchResult:
    """What a batch found. `rounds` are those that ran before the first failure, `at` is its number among them.

    `problem` is why rounds could not be judged, `fix` what would mend that. `interrupted`: Ctrl-C ended it, and a
    failure that is there may not be the smallest.
    """

    target: str
    index: int
    device: str
    rounds: int = 0
    seconds: float = 0.0
    at: int | None = None
    failure: Failure | None = None
    problem: str | None = None
    fix: str | None = None
    interrupted: bool = False


class _Place:
    """A device with a subject's modules on it, and its targets by name."""

    def __init__(self, subject: Subject, device: Device) -> None:
        self.device = device
        texts = [Text(ptx.parse(text), dict(names)) for text, names in subject.texts]
        self.loaded = Loaded(device, texts, check=subject.check)
        self.targets: dict[str, Target] = {each.name: each for each in all_targets(subject, self.loaded.entries)}


_places: dict[tuple[str, str], _Place] = {}


def run_batch(batch: Batch) -> BatchResult:
    """Run it. Never raises for a wrong kernel, a user's wrong file or a device that is lost: the result says so."""
    result = BatchResult(batch.target, batch.index, batch.device)
    started = time.monotonic()
    try:
        place = _place(batch)
        if place.device.problem is not None:
            raise SsmtoolError(f"{batch.device} is out of use: {place.device.problem}", hint="run it again")
        search = Search(place.targets[batch.target], place.loaded, batch.limits, _stop(batch.seconds, started))
    except SsmtoolError as error:
        result.problem, result.fix = str(error), error.hint
        return result
    try:
        search.run(batch.stream, batch.rounds)
        search.simplify()
    except SsmtoolError as error:
        search.problem = search.problem or error
    except KeyboardInterrupt:
        result.interrupted = True
    result.rounds, result.at, result.failure = search.rounds, search.at, search.failure
    if search.problem is not None and result.failure is None:
        result.problem, result.fix = str(search.problem), search.problem.hint
    result.seconds = time.monotonic() - started
    return result


def _stop(seconds: float | None, started: float) -> Callable[[], bool]:
    return lambda: seconds is not None and time.monotonic() - started >= seconds


def _place(batch: Batch) -> _Place:
    key = (batch.subject.digest, batch.device)
    if key not in _places:
        (device,) = open_devices(batch.device)
        try:
            _places[key] = _Place(batch.subject, device)
        except BaseException:
            device.close()
            raise
    return _places[key]


def device_problem(subject: Subject, device: str) -> str | None:
    """Why a device that batches of this process use is out of use; None when it is not, or was never opened."""
    place = _places.get((subject.digest, device))
    return None if place is None or place.device.problem is None else str(place.device.problem)


def close() -> None:
    """Let go of every device that batches of this process have opened."""
    for place in _places.values():
        place.loaded.close()
        place.device.close()
    _places.clear()


def read_user_file(path: Path) -> tuple[str, str]:
    """A user's file as a subject carries it. Raises SsmtoolError when it cannot be read."""
    from ssmtool.files import read_source

    return str(path), read_source(path)
