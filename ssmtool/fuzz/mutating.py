"""A golden vector as a target: its launches on other inputs, judged by the contract or by a user's formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.target import CaseTarget
from ssmtool.fuzz.values import FILLS, MODEST, filled
from ssmtool.golden import GoldenCase
from ssmtool.golden.generator import Stream
from ssmtool.verify.loaded import Loaded

# What becomes of an input; as it is comes first.
_WAYS = ("as it is", "as it is", "zeros", "scaled", "scaled", "turned", "filled", "filled")


class VectorTarget(CaseTarget):
    """One vector. `judge` says whether a case of its launches fails."""

    def __init__(
        self, case: GoldenCase, judge: Callable[[str, GoldenCase, Loaded], Failure | None], *, special: bool
    ) -> None:
        self.name = case.meta.name
        self.kernels = case.kernels
        meta = msgspec.structs.replace(case.meta, exposes=(), buffers={
            name: msgspec.structs.replace(buffer, nan=0, inf=0) for name, buffer in case.meta.buffers.items()
        })  # fmt: skip
        self._case = GoldenCase(meta, case.before, {})
        self._judge, self._fills = judge, FILLS if special else MODEST

    def draw(self, choices: Choices) -> GoldenCase:
        """The vector's launches with some inputs changed."""
        stream = Stream(f"fuzz/vector/{choices.integer('data', 0, 65535)}")
        before = {name: self._changed(choices, stream, name, array) for name, array in self._case.before.items()}
        return replace(self._case, before=before)

    def _changed(self, choices: Choices, stream: Stream, name: str, array: NDArray[Any]) -> NDArray[Any]:
        way = choices.pick(f"way of {name}", _WAYS) if array.dtype == np.float32 else "as it is"
        if way == "zeros":
            return np.zeros_like(array)
        if way == "scaled":
            with np.errstate(over="ignore"):
                return np.asarray(np.ldexp(array, choices.integer(f"exponent of {name}", -12, 4)))
        if way == "turned":  # along the last axis
            return np.ascontiguousarray(np.roll(array, 1, axis=-1))
        if way == "filled":
            return filled(stream, name, array.shape, choices.pick(f"fill of {name}", self._fills))
        return array

    def judge(self, case: GoldenCase, loaded: Loaded) -> Failure | None:
        """As the contract, or the user's formula, has it."""
        return self._judge(self.name, case, loaded)
