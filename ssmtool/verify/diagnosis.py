"""Why a run is wrong, in words: which known mistake gives the same output, and what the wrong elements look like.

A mistake is named only if every buffer agrees with the reference that makes it, and not with the one that does not;
where several fit they are all named. On a case that cannot tell two mistakes apart, both are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.golden import ArrayResult, GoldenCase, Run, compare_array
from ssmtool.golden.mistakes import mistakes_for, run_mistaken
from ssmtool.golden.reference import knows
from ssmtool.verify.patterns import patterns

Array = NDArray[Any]

# One case with fifty mistakes must not take longer than the verification itself.
_MOST_ELEMENTS = 400_000
_MOST_NAMED = 3


class Purse:
    """Seconds that all diagnoses of a verification may take together; after that only patterns are looked for."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._lock = threading.Lock()

    @property
    def empty(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    def spend(self, seconds: float) -> None:
        """Take from what is left."""
        with self._lock:
            self._left -= seconds


def explain(
    case: GoldenCase, run: Run, after: Mapping[str, Array], results: list[ArrayResult], purse: Purse | None = None
) -> list[str]:
    """Sentences about a wrong run, the most telling first; none if nothing fits."""
    words = []
    elements = sum(buffer.nbytes // 4 for buffer in case.meta.buffers.values()) * len(run.launches)
    if knows(case) and elements <= _MOST_ELEMENTS and not (purse and purse.empty):
        started = time.perf_counter()
        fitting = fitting_mistakes(case, run, after)
        if purse:
            purse.spend(time.perf_counter() - started)
        if fitting:
            words.append(f"Your output equals the reference with {', or with '.join(fitting[:_MOST_NAMED])}")
    for result in results:
        expected = None if result.ok else case.expected(result.name)
        if expected is None:
            continue
        got = stored(case, result.name, after[result.name])
        found = patterns(got, expected, case.stored_image(result.name), case.meta.buffers[result.name].axes)
        if found:
            words.append(f"{result.name}: {'; '.join(found)}")
    return words


def fitting_mistakes(case: GoldenCase, run: Run, after: Mapping[str, Array]) -> list[str]:
    """What `Mistake.says` of every known mistake whose reference leaves what this run left, within the policies."""
    found = []
    for mistake in mistakes_for(case, run):
        try:
            mistaken = run_mistaken(case, mistake, run)
        except (SsmtoolError, ValueError, IndexError, ArithmeticError):
            continue  # a mistake that this case's shape has no room for
        if all(
            compare_array(case, name, after[name], against=mistaken[name]).ok
            for name, buffer in case.meta.buffers.items()
            if buffer.after != "any"
        ):
            found.append(mistake.says)
    return found


def stored(case: GoldenCase, name: str, array: Array) -> Array:
    """The rows of a buffer that the case speaks of, in their shape."""
    buffer = case.meta.buffers[name]
    if buffer.rows is None or array.shape == buffer.stored_shape:
        return array.reshape(buffer.stored_shape)
    rows: Array = array.reshape(buffer.shape)[list(buffer.rows)]
    return rows
