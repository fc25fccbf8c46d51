"""After hypothesis's search: a smaller case and simpler data, as long as it fails in the same way.

The case is cut down to what is wrong, one axis after the other. Then whole inputs become zero, one, or rounded; then
parts of them zero, halves first and single rows last (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.narrow import narrowed
from ssmtool.fuzz.vector import smaller
from ssmtool.golden import GoldenCase

Array = NDArray[Any]
Judge = Callable[[GoldenCase], Failure | None]
# Pieces that an input is cut into at last.
_FINEST = 64


def minimised(failure: Failure, judge: Judge, *, tries: int, until: float) -> Failure:
    """The failure with simpler inputs: at most so many runs, and no new one after `until` (of time.monotonic)."""
    work = _Minimiser(failure, judge, tries, until)
    while work.cut():
        pass
    if failure.case is not None:
        while work.pass_over(list(failure.case.before)):
            pass
    return work.failure


class _Minimiser:
    """The simplest failure so far, and what may still be spent."""

    def __init__(self, failure: Failure, judge: Judge, tries: int, until: float) -> None:
        self.failure = failure
        self._judge, self._left, self._until = judge, tries, until

    def cut(self) -> bool:
        """Try to cut one axis; whether that went."""
        return any(self._judged(case) for case in narrowed(self.failure))

    def pass_over(self, names: list[str]) -> bool:
        """Try every input; whether any became simpler."""
        changed = [self._simplify(name) for name in names]
        return any(changed)

    def _now(self, name: str) -> Array:
        assert self.failure.case is not None
        return np.asarray(self.failure.case.before[name])

    def _take(self, name: str, array: Array) -> bool:
        """Whether the failure stays with this input; it is then kept."""
        if array.tobytes() == self._now(name).tobytes():
            return False
        assert self.failure.case is not None
        return self._judged(replace(self.failure.case, before={**self.failure.case.before, name: array}))

    def _judged(self, case: GoldenCase) -> bool:
        """Whether the case fails in the same way; it is then kept."""
        if self._left <= 0 or time.monotonic() >= self._until:
            return False
        self._left -= 1
        try:
            found = self._judge(case)
        except SsmtoolError:
            return False
        if found is None or not smaller(found, self.failure):
            return False
        self.failure = found
        return True

    def _simplify(self, name: str) -> bool:
        start = self._now(name)
        if self._take(name, np.zeros_like(start)):
            return True
        if (start == 1).all():
            return False
        changed = self._take(name, np.ones_like(start))
        if not changed:
            changed = self._rounded(name) | self._zeroed(name)
        return changed

    def _rounded(self, name: str) -> bool:
        array = self._now(name)
        if array.dtype.kind != "f":
            return False
        changed = False
        for simpler in (np.rint, _few_bits):
            array = self._now(name)
            with np.errstate(all="ignore"):
                wanted = np.where(np.isfinite(array), simpler(array), array).astype(array.dtype)
            changed |= self._take(name, wanted)
        return changed

    def _zeroed(self, name: str) -> bool:
        """Make pieces of the flat array zero: halves, quarters, and so on."""
        pieces, size, changed = 2, self._now(name).size, False
        while pieces <= min(_FINEST, size):
            for part in np.array_split(np.arange(size), pieces):
                array = self._now(name).copy()
                array.reshape(-1)[part] = 0
                changed |= self._take(name, array)
            pieces *= 2
        return changed


def _few_bits(array: Array) -> Array:
    mantissa, exponent = np.frexp(array)
    return np.asarray(np.ldexp(np.rint(mantissa * 16) / 16, exponent))
