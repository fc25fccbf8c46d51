"""The relations R1 to R12 as targets: their own checks, on shapes and inputs that hypothesis draws."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.choices import Choices, Replayed
from ssmtool.fuzz.failure import Failure, Kind
from ssmtool.fuzz.judge import Contract, faulted
from ssmtool.fuzz.recorded import Recorder
from ssmtool.fuzz.tolerance import by_contract
from ssmtool.fuzz.values import MODEST, filled
from ssmtool.golden.case import is_poison
from ssmtool.verify.contract import Dims
from ssmtool.verify.loaded import Loaded
from ssmtool.verify.patterns import patterns
from ssmtool.verify.relations import Relation
from ssmtool.verify.relations.bench import Bench, Unequal
from ssmtool.verify.relations.draw import Draw, Step

F32 = NDArray[np.float32]
T = TypeVar("T")

# Numbers of the relations' own draws, and how many values a choice of ours has; each is cut to what they allow.
_NUMBERS = {"users": 4, "groups": 4, "key_heads": 4, "n": 12, "taps": 8, "channels": 700, "length": 12, "accepted": 12,
            "window": 8, "stages": 3}  # fmt: skip
# The rounds of verify after the second: no number is fixed there.
_ROUND = 2


@dataclass(frozen=True)
class Shape:
    """One round: numbers by the relations' names for them, the state size (0 the smallest), the inputs' fill."""

    numbers: Mapping[str, int]
    size: int
    fill: str
    data: int


class Drawn(Draw):
    """The draw of a relation, its numbers given; what is not is random by the round's data."""

    def __init__(self, relation: str, shape: Shape) -> None:
        super().__init__(shape.data, relation, _ROUND)
        self._shape = shape
        self.met: dict[str, int] = {}

    def integer(self, name: str, low: int, high: int) -> int:
        """The number of the round, cut to what is allowed."""
        if name in self._shape.numbers:
            value = low + min(self._shape.numbers[name], high - low)
        else:
            value = super().integer(name, low, high)
        self.met[name] = value
        return value

    def pick(self, name: str, options: Sequence[T]) -> T:
        """As it is, but state sizes from the smallest on."""
        chosen = super().pick(name, options)
        if name == "size":
            chosen = sorted(options)[min(self._shape.size, len(options) - 1)]  # type: ignore[type-var]
        if isinstance(chosen, int):
            self.met[name] = chosen
        return chosen

    def state(self, d: Dims, *lead: int) -> F32:
        """A state, filled as the round says."""
        if self._shape.fill == "bell":
            return super().state(d, *lead)
        return filled(self._stream, "s", (*lead, d.heads, d.size, d.size), self._shape.fill)

    def step(self, d: Dims, *lead: int) -> Step:
        """Inputs of the recurrence. k is made no longer than 1, so that no state grows without end."""
        step = super().step(d, *lead)
        fill = self._shape.fill
        if fill == "bell":
            return step
        q, v = (filled(self._stream, name, (*lead, d.heads, d.size), fill) for name in ("q", "v"))
        k = filled(self._stream, "k", q.shape, fill)
        norm = np.sqrt((k.astype(np.float64) ** 2).sum(axis=-1, keepdims=True))
        k = np.ldexp(k, -np.ceil(np.log2(np.maximum(norm, 1))).astype(np.int32))
        return replace(step, q=_fixed(q), k=_fixed(k), v=_fixed(v))

    def bell(self, name: str, *shape: int, exponent: int = 0) -> F32:
        """An input, filled as the round says."""
        if self._shape.fill == "bell":
            return super().bell(name, *shape, exponent=exponent)
        if not all(shape):
            return super().bell(name, *shape)
        return _fixed(filled(self._stream, name, shape, self._shape.fill))


def _fixed(array: F32) -> F32:
    array.flags.writeable = False
    return array


class Bits(Bench):
    """Only what is equal bit for bit is judged here.

    R5 also has outputs that are close, by a tolerance that cancelling inputs exceed, and drawn values may cancel.
    Kernel 13's outputs are held to their bits by its own contract.
    """

    def close(self, what: str, got: F32, want: F32, axes: str, *, nmse: float, max_rms: float) -> None:
        """All of it must be written."""
        self.compared += 1
        unwritten = is_poison(got) | is_poison(want)
        if unwritten.any():
            self._add(what, f"{int(unwritten.sum())} elements were never written", got, want, axes)


class RelationTarget:
    """One relation."""

    def __init__(self, relation: Relation, contract: Contract, names: Mapping[str, Sequence[str]]) -> None:
        self.name = relation.name
        self.kernels = relation.entries
        self._relation, self._contract, self._names = relation, contract, names

    def draw(self, choices: Choices) -> Shape:
        """A shape; the relation's own code makes the inputs."""
        numbers = {name: choices.integer(name, 0, most - 1) for name, most in _NUMBERS.items()}
        fill = choices.pick("fill", MODEST)
        return Shape(numbers, choices.pick("S", (0, 1)), fill, choices.integer("data", 0, 65535))

    def run(self, drawn: Shape, loaded: Loaded) -> Failure | None:
        """One round of the relation."""
        draw = Drawn(self.name, drawn)
        bench = Bits(loaded)
        try:
            self._relation.check(bench, draw)
        except SsmtoolError as error:
            if error.exit_code != 1:
                raise
            return faulted(self.name, self.kernels, _told(draw), error)
        return self._failure(bench.unequal, draw) if bench.unequal else None

    def _failure(self, unequal: list[Unequal], draw: Drawn) -> Failure:
        first = unequal[0]
        failure = Failure(
            self.name, Kind("relation", first.what.partition(" ")[0]), self.kernels, _told(draw),
            f"{self._relation.title}: {first.what}: {first.message}",
        )  # fmt: skip
        for each in unequal:
            failure.arrays[f"{each.what}.got"], failure.arrays[f"{each.what}.want"] = each.got, each.want
            found = patterns(each.got, each.want, each.want, each.axes)
            if found:
                failure.looks_like.append(f"{each.what}: {'; '.join(found)}")
        return failure

    def simplified(self, failure: Failure, loaded: Loaded, *, tries: int, until: float) -> Failure:
        """The launch of the round that is itself wrong, as a case with simpler data; else the round, with both sides.

        A kernel without a reference is held to the other side.
        """
        recorder = Recorder(loaded, self._names)
        again = self.run(self.draw(Replayed(failure.choices)), recorder)
        if again is None or time.monotonic() >= until:
            return failure
        for case in recorder.cases(self.name):
            found = by_contract(self._contract, self.name, case, loaded)
            if found is not None:
                # The relation is what failed; the case is what shows it to verify.
                found.target, found.shape = again.target, again.shape
                found.message = f"{again.message}; of its launches that of {case.kernels[0]} is wrong: {found.message}"
                found.arrays = again.arrays
                return found
        return recorder.against_each_other(again)


def _told(draw: Drawn) -> str:
    """The numbers that the round used."""
    words = {"size": "S", "key_heads": "K-heads", "groups": "V-heads of each", "length": "n"}
    return ", ".join(f"{words.get(name, name)} {value}" for name, value in draw.met.items() if " " not in name)
