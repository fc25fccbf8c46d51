"""Drives hypothesis: it draws the bytes of each round, and shrinks those of the first that fails.

hypothesis is given one string of bytes of a fixed length and nothing else. Its integers and floats are now and then
constants of the code around, which an installed ssmtool has other ones of than a checkout; bytes of this length are
not. So the same seed makes the same rounds on every machine, with the same release of hypothesis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.choices import TAPE_BYTES, Choices, Replayed
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.target import Target
from ssmtool.fuzz.vector import smaller
from ssmtool.verify.loaded import Loaded


@dataclass(frozen=True)
class Limits:
    """How far a failure is shrunk: rounds and seconds of hypothesis's search, and of the data's simplification."""

    tries: int = 300
    seconds: float = 20.0
    data_tries: int = 150
    data_seconds: float = 10.0


class _FailsError(Exception):
    """A round of the kind looked for failed."""


class Search:
    """Rounds of one target: `rounds` that ran, the smallest `failure` so far, and the number of the first, `at`.

    `problem` is what kept a round from being judged. All of it stays readable after an interruption.
    """

    def __init__(self, target: Target, loaded: Loaded, limits: Limits, stop: Callable[[], bool]) -> None:
        self.rounds = 0
        self.at: int | None = None
        self.failure: Failure | None = None
        self.problem: SsmtoolError | None = None
        self._target, self._loaded, self._limits, self._stop = target, loaded, limits, stop
        self._smallest = b""
        self._seen: dict[tuple[Any, ...], bool] = {}
        self._tries = 0
        self._until = 0.0

    def run(self, seed: int, rounds: int) -> None:
        """Search. Raises what is a bug of ssmtool's own, and KeyboardInterrupt."""
        from hypothesis import HealthCheck, Phase, Verbosity, given, settings
        from hypothesis import seed as seeded
        from hypothesis.errors import HypothesisException
        from hypothesis.strategies import binary

        _keep_out_of_the_way()
        test = given(binary(min_size=TAPE_BYTES, max_size=TAPE_BYTES))(self._round)
        test = settings(
            max_examples=rounds,
            phases=(Phase.generate, Phase.shrink),
            # Nothing is kept from run to run: a failure is saved as a vector.
            database=None,
            derandomize=False,
            # A kernel's first round compiles it. The other checks are about strategies, and this one cannot fail them.
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # It would go on to look for failures of other kinds: the caller does, in other batches.
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
        )(test)
        try:
            seeded(seed)(test)()
        except _FailsError:
            pass
        except HypothesisException:
            # The failing round passed when it was run again, on a card that races for one: it has failed all the same.
            if self.failure is None:
                raise

    def _round(self, tape: bytes) -> None:
        if self._over():
            # Past the end nothing new is run: what is known to fail does, everything else passes, and the search ends.
            if self._known(tape):
                raise _FailsError
            return
        choices = Choices(tape)
        try:
            drawn = self._target.draw(choices)
        except SsmtoolError as error:
            self.problem = error
            return
        key = tuple(choices.made.items())
        fails = self._seen.get(key)
        if fails is None:
            fails = self._seen[key] = self._try(drawn, choices, tape)
        elif fails and tape < self._smallest:
            self._smallest = tape
        if fails:
            raise _FailsError

    def _try(self, drawn: Any, choices: Choices, tape: bytes) -> bool:
        try:
            failure = self._target.run(drawn, self._loaded)
        except SsmtoolError as error:
            self.problem = error
            return False
        if self.failure is None:
            self.rounds += 1
        else:
            self._tries += 1
        if failure is None or (self.failure is not None and not smaller(failure, self.failure)):
            return False
        failure.choices, failure.values = dict(choices.made), dict(choices.values)
        if self.failure is None:
            self.at = self.rounds
            self._until = time.monotonic() + self._limits.seconds
        if self.failure is None or tape < self._smallest:
            self.failure, self._smallest = failure, tape
        return True

    def _known(self, tape: bytes) -> bool:
        if self.failure is None:
            return False
        choices = Choices(tape)
        self._target.draw(choices)
        return self._seen.get(tuple(choices.made.items()), False)

    def _over(self) -> bool:
        if self.problem is not None:
            return True
        if self.failure is None:
            return self._stop()
        return self._tries >= self._limits.tries or time.monotonic() >= self._until

    def simplify(self) -> None:
        """Smaller numbers, then simpler data in the smallest failing round, after the search."""
        if self.failure is not None:
            self._lower()
            until = time.monotonic() + self._limits.data_seconds
            choices, values = self.failure.choices, self.failure.values
            self.failure = self._target.simplified(
                self.failure, self._loaded, tries=self._limits.data_tries, until=until
            )  # fmt: skip
            self.failure.choices, self.failure.values = choices, values

    def _lower(self) -> None:
        """Numbers of several bytes, by bisection: hypothesis lowers each byte by itself, and stops at 256 for 250."""
        assert self.failure is not None
        choices = Replayed(self.failure.choices)
        self._target.draw(choices)
        for name, (low, high) in choices.bounds.items():
            below, value = low, self.failure.choices.get(name, low)
            while high - low > 255 and name != "data" and below < value:
                middle = (below + value) // 2
                if self._fails_with({**self.failure.choices, name: middle}):
                    value = middle
                else:
                    below = middle + 1

    def _fails_with(self, made: Mapping[str, int]) -> bool:
        """Whether the round of these choices fails in the same way; it is then the smallest."""
        if self._tries >= self._limits.tries or time.monotonic() >= self._until:
            return False
        self._tries += 1
        choices = Replayed(made)
        try:
            failure = self._target.run(self._target.draw(choices), self._loaded)
        except SsmtoolError:
            return False
        if failure is None or self.failure is None or not smaller(failure, self.failure):
            return False
        failure.choices, failure.values = dict(choices.made), dict(choices.values)
        self.failure = failure
        return True


def _keep_out_of_the_way() -> None:
    """Hypothesis notes the constants of the code around in a folder: not in the user's current one."""
    from hypothesis.configuration import set_hypothesis_home_dir

    from ssmtool.execute.cache import cache_dir

    set_hypothesis_home_dir(cache_dir() / "hypothesis")


def require_hypothesis() -> None:
    """Raise SsmtoolError where hypothesis is not installed: it comes with an extra."""
    import importlib

    try:
        importlib.import_module("hypothesis")
    except ModuleNotFoundError:
        raise SsmtoolError(
            "fuzzing needs hypothesis, which is not installed", hint="pip install 'ssmtool[fuzz]'"
        ) from None
