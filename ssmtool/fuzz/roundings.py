"""All results that the contract allows, bit by bit.

docs/kernels.md fixes every operation and its order. What it leaves open are the last bits of `exp` and `log1p`, which
are within 2 units in the last place. So a right kernel's result is the reference's in float32, operation by operation,
for some choice of these bits; each element of an element-wise kernel has its own.
"""

# NumPy types an operation of an array and a scalar of unknown kind as Any.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden import GoldenCase, Run
from ssmtool.golden.reference import run as run_reference
from ssmtool.golden.reference.arithmetic import exp, log1p
from ssmtool.golden.reference.rules import Rules

Array = NDArray[Any]

# Units in the last place that CUDA promises for expf and log1pf.
LAST_BITS = 2
_GATES = ("fc_ssm_decay_gate", "fc_ssm_decay_gate_nx")
# Kernels whose results go through an exponential of each element.
_ELEMENTWISE = ("fc_sigmoid", "fc_ssm_gated_norm", "fc_ssm_conv1d_silu", "fc_ssm_conv1d_silu_seq",
                "fc_ssm_conv1d_silu_slots", *_GATES)  # fmt: skip
# No number in [0, infinity] is below the first, none above the second (bits of fp32).
_ZERO, _INFINITY = 0, 0x7F800000


def moved(values: Array, steps: int, exact: Array) -> Array:
    """Numbers >= 0 moved by so many representable ones, but for those that are exact."""
    bits = values.astype(np.float32).view(np.int32)
    fixed = exact | np.isnan(values)
    return np.where(fixed, bits, np.clip(bits + steps, _ZERO, _INFINITY)).astype(np.int32).view(np.float32)


def moved_exp(x: Array, steps: int) -> Array:
    """Exponentials with other last bits. That of 0 is 1, and far outside of fp32's range it is 0 or infinity."""
    with np.errstate(all="ignore"):
        return moved(exp(x), steps, (x == 0) | (np.abs(x) > 110))


class Moved(Rules):
    """The contract in float32, with other last bits of exp and log1p; `decays` has the exponentials that are known.

    `decays` maps the bits of a logarithm to those of its exponential, both fp32.
    """

    def __init__(self, exp_steps: int = 0, log_steps: int = 0, decays: Mapping[int, int] | None = None) -> None:
        super().__init__()
        self._exp, self._log, self._decays = exp_steps, log_steps, decays or {}

    def decay(self, g: Array) -> Array:
        """The kernel's own exponential where it is known."""
        values = moved_exp(g, self._exp)
        if self._decays:
            flat = values.view(np.int32).reshape(-1)
            for place, bits in enumerate(np.ascontiguousarray(g).view(np.int32).reshape(-1).tolist()):
                flat[place] = self._decays.get(bits, int(flat[place]))
        return values

    def activation(self, x: Array) -> Array:
        """The silu function."""
        return x / (1 + moved_exp(-x, self._exp))

    def gate(self, z: Array) -> Array:
        """The silu function."""
        return self.activation(z)

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + e^-x)."""
        return 1 / (1 + moved_exp(-x, self._exp))

    def softplus(self, v: Array) -> Array:
        """The function log(1 + e^v), v itself above 20."""
        power = moved_exp(np.minimum(v, np.float32(20)), self._exp)
        return np.where(v > 20, v, moved(log1p(power), self._log, power == 0))


def allowed(case: GoldenCase, run: Run, decays: Mapping[int, int]) -> Iterator[dict[str, Array]]:
    """What the run may leave, by buffer: an element, or a head, may be that of any of them; the likeliest first."""
    steps = sorted(range(-LAST_BITS, LAST_BITS + 1), key=abs)
    entries = set(run.entries)
    exps = steps if entries & set(_ELEMENTWISE) else [0]
    logs = steps if entries & set(_GATES) else [0]
    for exp_steps, log_steps in sorted(itertools.product(exps, logs), key=lambda pair: abs(pair[0]) + abs(pair[1])):
        yield run_reference(case, run, rules=Moved(exp_steps, log_steps, decays), dtype=np.float32)
