"""Qwen3-Next's PyTorch functions, from Hugging Face's transformers.

Their L2 norm is x * rsqrt(sum + eps), the contract's is x / max(norm, eps): they agree where norms are far above eps.
Their queries are always scaled by 1/sqrt(S), as ours are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ssmtool.golden.oracles import shapes
from ssmtool.golden.oracles.foreign import folder_of, import_torch, in_double, version_of

if TYPE_CHECKING:
    from ssmtool.golden.oracles import Oracle
    from ssmtool.golden.reference.bound import Bound

_NAMES = ("torch_recurrent_gated_delta_rule", "causal_conv1d_update", "l2norm", "Qwen3NextRMSNormGated")


def oracle() -> Oracle:
    """Raises SsmtoolError where torch or transformers is missing, or is a release without these functions."""
    from ssmtool.golden.oracles import Oracle

    torch = import_torch()
    path = folder_of("transformers") / "models" / "qwen3_next" / "modeling_qwen3_next.py"
    functional = torch.nn.functional
    namespace = {"torch": torch, "F": functional, "nn": torch.nn, "ACT2FN": {"silu": functional.silu}}
    theirs = in_double(path, _NAMES, namespace)
    one, seq, slots = (
        partial(each, partial(_delta, theirs["torch_recurrent_gated_delta_rule"]), torch)
        for each in (shapes.one, shapes.seq, shapes.slots)
    )
    conv = partial(shapes.convolve, partial(_convolve, theirs["causal_conv1d_update"], torch))
    norm = partial(shapes.qknorm, partial(_l2, theirs["l2norm"], torch))
    return Oracle(
        name="transformers",
        versions=f"{version_of('transformers')}, {version_of('torch')}",
        formulas={
            "fc_ssm_recurrence": one,
            "fc_ssm_recurrence_seq": seq,
            "fc_ssm_recurrence_seq_unroll128": seq,
            "fc_ssm_recurrence_seq_warp": seq,
            "fc_ssm_recurrence_slots": slots,
            "fc_ssm_recurrence_slots_2pass": slots,
            "fc_ssm_conv1d_silu": conv,
            "fc_ssm_conv1d_silu_seq": conv,
            "fc_ssm_conv1d_silu_slots": partial(conv, many=True),
            "fc_ssm_gated_norm": partial(_gated, theirs["Qwen3NextRMSNormGated"], torch),
            "fc_ssm_qknorm_gqa": norm,
            "fc_ssm_qknorm_gqa_nx": norm,
        },
        forms={"l2-rsqrt-eps": "rsqrt(sum + eps)"},
    )


def _delta(
    theirs: Any, q: Any, k: Any, v: Any, g: Any, beta: Any, scale: float, state: Any
) -> tuple[Any, Any]:  # fmt: skip
    # They divide by sqrt(S); our scale is an fp32 argument, so the rest of it goes into q.
    rest = scale * float(q.shape[-1]) ** 0.5
    result: tuple[Any, Any] = theirs(q * rest, k, v, g=g, beta=beta, initial_state=state, output_final_state=True)
    return result


def _convolve(theirs: Any, torch: Any, x: Any, history: Any, weight: Any) -> tuple[Any, Any]:
    # They keep the last state_len samples by a slice from -state_len, which for 0 is all of them: one is given more.
    kept = torch.from_numpy(history if history.shape[-1] else x[..., :1] * 0)
    y = theirs(torch.from_numpy(x), kept, torch.from_numpy(weight), None, "silu")  # changes the history in place
    return y.numpy(), kept.numpy() if history.shape[-1] else history


def _l2(theirs: Any, torch: Any, vectors: Any, eps: float) -> Any:
    return theirs(torch.from_numpy(vectors), dim=-1, eps=eps).numpy()


def _gated(theirs: Any, torch: Any, launch: Bound) -> None:
    size, heads = launch.int("state_size"), launch.grid[0]
    y, z = (torch.from_numpy(launch.array(name, heads, size).copy()) for name in ("y", "z"))
    layer = theirs(size, eps=float(launch.float("eps")))
    layer.weight = torch.nn.Parameter(torch.from_numpy(launch.array("weight", size).copy()))
    launch.array("gated", heads, size)[...] = layer.forward(y, z).detach().numpy()
