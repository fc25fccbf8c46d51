"""The naive PyTorch functions of flash-linear-attention, by Songlin Yang and others.

They take the logarithm of -ssm_a (A_log); ours is an fp32 number already out of it, so its float64 logarithm is given.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ssmtool.golden.oracles import block, shapes
from ssmtool.golden.oracles.foreign import folder_of, import_torch, in_double, version_of

if TYPE_CHECKING:
    from ssmtool.golden.oracles import Oracle
    from ssmtool.golden.reference.bound import Bound


def oracle() -> Oracle:
    """Raises SsmtoolError where torch or fla is missing, or is a release without these functions."""
    from ssmtool.golden.oracles import Oracle

    torch = import_torch()
    folder = folder_of("fla")
    namespace = {"torch": torch, "F": torch.nn.functional}
    gdn = folder / "ops" / "gated_delta_rule"
    delta = in_double(gdn / "naive.py", ("naive_recurrent_gated_delta_rule",), namespace)
    gate = in_double(gdn / "gate.py", ("naive_gdn_gate",), namespace)["naive_gdn_gate"]
    norm = in_double(folder / "modules" / "norm" / "layernorm_gated.py", ("rms_norm_ref",), namespace)["rms_norm_ref"]
    one, seq, slots = (
        partial(each, partial(_delta, delta["naive_recurrent_gated_delta_rule"]), torch)
        for each in (shapes.one, shapes.seq, shapes.slots)
    )
    step = block.chain(
        torch,
        partial(_delta, delta["naive_recurrent_gated_delta_rule"]),
        lambda alpha, a, dt: gate(alpha[:, None], torch.log(-a), dt, output_dtype=torch.float64)[:, 0],
        lambda y, z, weight, eps: norm(y, weight, None, z=z, eps=eps, norm_before_gate=True),
    )
    return Oracle(
        name="fla",
        versions=f"{version_of('fla-core')}, {version_of('torch')}",
        formulas={
            "fc_ssm_recurrence": one,
            "fc_ssm_recurrence_seq": seq,
            "fc_ssm_recurrence_seq_unroll128": seq,
            "fc_ssm_recurrence_seq_warp": seq,
            "fc_ssm_recurrence_seq_warp_multi": seq,
            "fc_ssm_recurrence_slots": slots,
            "fc_ssm_recurrence_slots_warp": slots,
            "fc_ssm_recurrence_slots_2pass": slots,
            "fc_ssm_gated_norm": partial(_gated, norm, torch),
            "fc_ssm_decay_gate": partial(_gate, gate, torch),
            "fc_ssm_decay_gate_nx": partial(_gate, gate, torch),
            "fc_ssm_decode_step": partial(block.decode_step, step, torch),
        },
        forms={},
    )


def _delta(
    theirs: Any, q: Any, k: Any, v: Any, g: Any, beta: Any, scale: float, state: Any
) -> tuple[Any, Any]:  # fmt: skip
    result: tuple[Any, Any] = theirs(
        q=q, k=k, v=v, beta=beta, g=g, scale=scale, initial_state=state, output_final_state=True
    )
    return result


def _gated(theirs: Any, torch: Any, launch: Bound) -> None:
    size, heads = launch.int("state_size"), launch.grid[0]
    y, z = (torch.from_numpy(launch.array(name, heads, size).copy()) for name in ("y", "z"))
    weight = torch.from_numpy(launch.array("weight", size).copy())
    out = theirs(y, weight, None, z=z, eps=float(launch.float("eps")), norm_before_gate=True)
    launch.array("gated", heads, size)[...] = out.numpy()


def _gate(theirs: Any, torch: Any, launch: Bound) -> None:
    many = launch.where.endswith("_nx")
    total = launch.int("total" if many else "n")
    if total <= 0:
        return
    heads = launch.int("n_heads") if many else total
    alpha = torch.from_numpy(launch.array("alpha", total // heads, heads).copy())
    dt, a = (torch.from_numpy(launch.array(name, heads).copy()) for name in ("ssm_dt", "ssm_a"))
    out = theirs(alpha, torch.log(-a), dt, output_dtype=torch.float64)
    launch.array("g", total // heads, heads)[...] = out.numpy()
