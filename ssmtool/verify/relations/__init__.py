"""Relations between kernels that must hold bit for bit, on random inputs: R1 to R12 of docs/kernels.md.

They need no reference: two ways to compute the same must leave the same bits, on any device. `RELATIONS` lists them in
order; each is one function that draws its inputs, runs both ways on a `Bench`, and tells it what must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ssmtool.verify.contract import FAST_ENTRIES

if TYPE_CHECKING:
    from ssmtool.verify.relations.bench import Bench
    from ssmtool.verify.relations.draw import Draw

REC, REC_SEQ = "fc_ssm_recurrence", "fc_ssm_recurrence_seq"
UNROLL, WARP = "fc_ssm_recurrence_seq_unroll128", "fc_ssm_recurrence_seq_warp"
REC_SLOTS, TWO_PASS = "fc_ssm_recurrence_slots", "fc_ssm_recurrence_slots_2pass"
CONV, CONV_SEQ, CONV_SLOTS = "fc_ssm_conv1d_silu", "fc_ssm_conv1d_silu_seq", "fc_ssm_conv1d_silu_slots"
GATE, GATE_NX, SIGMOID, NORM = "fc_ssm_decay_gate", "fc_ssm_decay_gate_nx", "fc_sigmoid", "fc_ssm_gated_norm"
SLOTS_WARP, WARP_MULTI, DECODE_STEP = FAST_ENTRIES
QKNORM, QKNORM_NX = "fc_ssm_qknorm_gqa", "fc_ssm_qknorm_gqa_nx"


@dataclass(frozen=True)
class Relation:
    """One relation: `name` is `R1/recurrence`, `entries` are the kernels that it needs."""

    name: str
    title: str
    entries: tuple[str, ...]
    check: Callable[[Bench, Draw], None]

    @property
    def rule(self) -> str:
        """`R1`."""
        return self.name.partition("/")[0]


def all_relations() -> tuple[Relation, ...]:
    """Every relation, R1 first."""
    from ssmtool.verify.relations import chunks, equals, fast, heads, nothing, positions, slots

    found = [
        each
        for module in (positions, equals, slots, chunks, heads, nothing, fast)
        for each in module.RELATIONS
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: (int(each.rule[1:]), each.name)))
