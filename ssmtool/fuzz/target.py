"""What is fuzzed: anything that draws a round from choices and says whether it fails."""

from __future__ import annotations

from typing import Any, Protocol

from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.minimise import minimised
from ssmtool.golden import GoldenCase
from ssmtool.verify.loaded import Loaded


class Target(Protocol):
    """`name` is a kernel's or a relation's; `kernels` are those that it launches."""

    name: str
    kernels: tuple[str, ...]

    def draw(self, choices: Choices) -> Any:
        """A round: whatever `run` takes. Nothing is launched."""

    def run(self, drawn: Any, loaded: Loaded) -> Failure | None:
        """Launch and judge. Raises SsmtoolError where it could not be judged."""

    def simplified(self, failure: Failure, loaded: Loaded, *, tries: int, until: float) -> Failure:
        """A failure of the same kind with simpler data, or the same."""


class CaseTarget:
    """A target whose rounds are cases: their data can be simplified one by one."""

    name: str
    kernels: tuple[str, ...]

    def draw(self, choices: Choices) -> GoldenCase:
        """A case without expectations."""
        raise NotImplementedError

    def judge(self, case: GoldenCase, loaded: Loaded) -> Failure | None:
        """Run the case and judge what it leaves."""
        raise NotImplementedError

    def run(self, drawn: GoldenCase, loaded: Loaded) -> Failure | None:
        """As the protocol says."""
        return self.judge(drawn, loaded)

    def simplified(self, failure: Failure, loaded: Loaded, *, tries: int, until: float) -> Failure:
        """As the protocol says."""
        return minimised(failure, lambda case: self.judge(case, loaded), tries=tries, until=until)
