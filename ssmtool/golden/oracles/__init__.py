"""Other people's code as the judge of the reference: the same cases, computed on the CPU in float64.

| oracle | what | kernels |
|---|---|---|
| transformers | the PyTorch functions of Qwen3-Next's model | recurrence, convolution, gated norm, q/k norm |
| transformers | that model's layer, but for its projections | decode step |
| fla | the naive functions of flash-linear-attention | recurrence, gated norm, decay gate |
| fla | the same, and PyTorch's functionals for the rest | decode step |
| torch | PyTorch's own functionals | convolution, norms, gates |
| python | the standard library's `math` | convolution, norms, gates |

Only the formulas are theirs. Which argument of ours is which of theirs, transpositions and the order of heads are set
out in the adapters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.golden.case import Buffer, CaseError, GoldenCase
from ssmtool.golden.reference import KERNELS, execute
from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules

Formula = Callable[[Bound], None]

ORACLES = ("transformers", "fla", "torch", "python")
# Sum of squared differences over sum of squares, in each group, both sides in float64.
AGREEMENT = 1e-12
_TINY = 1e-300
# A convention of cases about something that frameworks do otherwise, or that float64 has no trace of.
OWN_RULE = "own_rule"


@dataclass(frozen=True)
class Oracle:
    """`versions` says whose code it is; `formulas` are by entry; `forms` are conventions it has otherwise."""

    name: str
    versions: str
    formulas: Mapping[str, Formula]
    forms: Mapping[str, str]


@dataclass(frozen=True)
class Agreement:
    """One case by one oracle. `nmse` is the worst group's of the worst buffer; `skipped` says why there is none."""

    case: str
    oracle: str
    nmse: float = 0.0
    buffer: str = ""
    skipped: str = ""

    @property
    def ok(self) -> bool:
        """Whether the two agree; a case that was not computed does not count."""
        return not self.skipped and self.nmse <= AGREEMENT


@functools.lru_cache
def load(name: str) -> Oracle:
    """The oracle. Raises SsmtoolError, saying what to install, where its packages are missing or are others."""
    from ssmtool.golden.oracles import fla, python, torch, transformers

    makers = {"transformers": transformers, "fla": fla, "torch": torch, "python": python}
    if name not in makers:
        raise SsmtoolError(f"no oracle is named {name}; there are: {', '.join(ORACLES)}")
    made: Oracle = makers[name].oracle()
    return made


def judge(case: GoldenCase, oracle: Oracle) -> Agreement:
    """The case's first run that the oracle knows, by the oracle and by the reference."""
    known = [run for run in case.meta.runs if set(run.entries) <= set(oracle.formulas)]
    if not known:
        return Agreement(case.meta.name, oracle.name, skipped="has no such kernel")
    if reason := _other_form(case, oracle):
        return Agreement(case.meta.name, oracle.name, skipped=reason)
    rules = Rules(dict(case.meta.conventions))
    ours = execute(
        case, known[0], {entry: functools.partial(_ours, formula, rules) for entry, (formula, _) in KERNELS.items()}
    )
    try:
        theirs = execute(case, known[0], oracle.formulas)
    except CaseError:
        raise
    except Exception as error:  # their code, in a release that this adapter was not written for
        raise SsmtoolError(f"{oracle.name} ({oracle.versions}): {type(error).__name__}: {error}") from None
    worst = max(
        (_nmse(ours[name], theirs[name], buffer), name)
        for name, buffer in case.meta.buffers.items()
        if buffer.after != "any"
    )
    return Agreement(case.meta.name, oracle.name, *worst)


def _ours(formula: Callable[[Bound, Rules], None], rules: Rules, launch: Bound) -> None:
    formula(launch, rules)


def _other_form(case: GoldenCase, oracle: Oracle) -> str:
    """Why the oracle may differ: by its form of eps, or in what the contract alone settles. The case says so."""
    if OWN_RULE in case.meta.conventions:
        return f"{OWN_RULE}: {case.meta.conventions[OWN_RULE]}"
    for mistake, form in oracle.forms.items():
        if mistake in case.meta.exposes:
            return f"has another form: {form}"
    return ""


def _nmse(ours: NDArray[Any], theirs: NDArray[Any], buffer: Buffer) -> float:
    """The worst group's; infinite where NaN, infinities or what was never written are not in the same places."""
    odd = ~np.isfinite(ours)
    if not np.array_equal(ours[odd], theirs[odd], equal_nan=True) or not np.isfinite(theirs[~odd]).all():
        return float("inf")
    a, b = (np.where(odd, 0.0, each).reshape(buffer.stored_shape) for each in (ours, theirs))
    order = [buffer.axes.index(axis) for axis in buffer.group]
    rest = tuple(axis for axis in range(a.ndim) if axis not in order)
    squares, energy = ((a - b) ** 2).sum(axis=rest), (a * a).sum(axis=rest)
    nmse = np.where(squares > 0, squares / np.maximum(energy, _TINY), 0.0)
    return float(np.max(nmse))
