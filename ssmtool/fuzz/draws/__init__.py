"""Random launches of the product's kernels, within their contract (docs/kernels.md): one module for each family."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.draws import convolution, decode, gates, norms, recurrence
from ssmtool.golden import GoldenCase

# What draws a launch of an entry: (entry, choices, state sizes to choose from).
Drawer = Callable[[str, Choices, Sequence[int]], GoldenCase]

DRAWERS: dict[str, Drawer] = {
    "fc_ssm_recurrence": recurrence.positions,
    "fc_ssm_conv1d_silu": convolution.positions,
    "fc_ssm_gated_norm": norms.gated,
    "fc_sigmoid": gates.sigmoid,
    "fc_ssm_decay_gate": gates.gate,
    "fc_ssm_qknorm_gqa": norms.qknorm,
    "fc_ssm_conv1d_silu_seq": convolution.positions,
    "fc_ssm_recurrence_seq": recurrence.positions,
    "fc_ssm_recurrence_seq_unroll128": recurrence.positions,
    "fc_ssm_recurrence_seq_warp": recurrence.positions,
    "fc_ssm_conv1d_silu_slots": convolution.users,
    "fc_ssm_recurrence_slots": recurrence.users,
    "fc_ssm_recurrence_slots_2pass": recurrence.users,
    "fc_ssm_decay_gate_nx": gates.gate,
    "fc_ssm_qknorm_gqa_nx": norms.qknorm,
    "fc_ssm_recurrence_slots_warp": recurrence.users,
    "fc_ssm_recurrence_seq_warp_multi": recurrence.positions,
    "fc_ssm_decode_step": decode.step,
}

__all__ = ["DRAWERS", "Drawer"]
