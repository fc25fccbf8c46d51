"""Kernels 4, 5 and 14: the sigmoid of beta, and the logarithm of the decay."""

from __future__ import annotations

from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules


def sigmoid(launch: Bound, rules: Rules) -> None:
    """In place."""
    n = rules.positions(launch.int("n"))
    if n > 0:
        x = launch.array("x", n)
        x[...] = rules.result(rules.sigmoid(x))


def decay_gate(launch: Bound, rules: Rules) -> None:
    """One position: every head has its ssm_dt and ssm_a."""
    n = rules.positions(launch.int("n"))
    if n > 0:
        _gate(launch, rules, n, n)


def decay_gate_nx(launch: Bound, rules: Rules) -> None:
    """Positions times heads, position-major."""
    total = rules.positions(launch.int("total"))
    if total > 0:
        _gate(launch, rules, total, launch.int("n_heads"))


def _gate(launch: Bound, rules: Rules, total: int, heads: int) -> None:
    head = rules.gate_heads(total, heads)
    v = rules.biased(launch.array("alpha", total), launch.array("ssm_dt", heads)[head])
    g = rules.log_decay(launch.array("ssm_a", heads)[head], rules.softplus(v))
    launch.array("g", total)[...] = rules.result(g)
