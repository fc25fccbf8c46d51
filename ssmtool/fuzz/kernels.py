"""The product's kernels as targets: random launches within their contract, judged by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.draws import DRAWERS
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.judge import Contract
from ssmtool.fuzz.target import CaseTarget
from ssmtool.fuzz.tolerance import by_contract, by_reference
from ssmtool.golden import GoldenCase
from ssmtool.verify.loaded import Loaded

Judge = Literal["contract", "policy"]


class KernelTarget(CaseTarget):
    """One kernel. `sizes` are the state sizes to choose from; the executor compiles a kernel for each."""

    def __init__(self, entry: str, sizes: Sequence[int], contract: Contract, judge: Judge = "contract") -> None:
        self.name = entry
        self.kernels = (entry,)
        self._sizes, self._contract, self._judge = sizes, contract, judge

    def draw(self, choices: Choices) -> GoldenCase:
        """A launch, or a few that go on from each other."""
        return DRAWERS[self.name](self.name, choices, self._sizes)

    def judge(self, case: GoldenCase, loaded: Loaded) -> Failure | None:
        """By the contract's operations, bit by bit; or by the tolerances of verify."""
        if self._judge == "policy":
            return by_reference(self.name, case, loaded)
        return by_contract(self._contract, self.name, case, loaded)
