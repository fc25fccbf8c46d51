"""Qwen3-Next's PyTorch functions, from Hugging Face's transformers.

Their L2 norm is x * rsqrt(sum + eps), the contract's is x / max(norm, eps): they agree where norms are far above eps.
Their queries are always scaled by 1/sqrt(S), as ours are.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ssmtool.golden.oracles import block, shapes
from ssmtool.golden.oracles.foreign import folder_of, import_torch, in_double, version_of

if TYPE_CHECKING:
    from ssmtool.golden.oracles import Oracle
    from ssmtool.golden.reference.bound import Bound

_NAMES = (
    "torch_recurrent_gated_delta_rule",
    "causal_conv1d_update",
    "l2norm",
    "Qwen3NextRMSNormGated",
    "apply_mask_to_padding_states",
    "Qwen3NextGatedDeltaNet",
)


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
            "fc_ssm_recurrence_seq_warp_multi": seq,
            "fc_ssm_recurrence_slots": slots,
            "fc_ssm_recurrence_slots_warp": slots,
            "fc_ssm_recurrence_slots_2pass": slots,
            "fc_ssm_conv1d_silu": conv,
            "fc_ssm_conv1d_silu_seq": conv,
            "fc_ssm_conv1d_silu_slots": partial(conv, many=True),
            "fc_ssm_gated_norm": partial(_gated, theirs["Qwen3NextRMSNormGated"], torch),
            "fc_ssm_qknorm_gqa": norm,
            "fc_ssm_qknorm_gqa_nx": norm,
            "fc_ssm_decode_step": partial(block.decode_step_grouped, partial(_block, theirs, torch), torch),
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


def _block(theirs: Any, torch: Any, sizes: block.Sizes, x: block.Tensors) -> tuple[Any, Any, Any]:
    """The forward pass of their layer, its projections replaced by what they would give and take.

    Their L2 norm's eps is 1e-6 and their scale 1/sqrt(S), whatever is given here. What they project lies by K-head:
    its q, its k, and the v and z of its V-heads; then beta and alpha of those.
    """
    layer, size, heads = theirs["Qwen3NextGatedDeltaNet"], block.SIZE, sizes.key_heads * sizes.groups
    by_head = (len(x.qkv), sizes.key_heads, -1)
    q, k, v = x.qkv.split([sizes.key_dim, sizes.key_dim, heads * size], dim=-1)
    qkvz, ba = (
        torch.cat([each.reshape(by_head) for each in parts], dim=-1).flatten(1)[:, None]
        for parts in ((q, k, v, x.z), (x.beta, x.alpha))
    )
    norm = theirs["Qwen3NextRMSNormGated"](size, eps=sizes.norm_eps)
    norm.weight = torch.nn.Parameter(x.norm_weight, requires_grad=False)
    cache = _Cache(x.conv_state.clone(), x.s)
    itself = SimpleNamespace(
        layer_idx=0,
        num_k_heads=sizes.key_heads,
        num_v_heads=heads,
        head_k_dim=size,
        head_v_dim=size,
        key_dim=sizes.key_dim,
        value_dim=heads * size,
        activation="silu",
        in_proj_qkvz=lambda _: qkvz,
        in_proj_ba=lambda _: ba,
        conv1d=SimpleNamespace(weight=x.conv_weight[:, None], bias=None),
        A_log=torch.log(-x.ssm_a),
        dt_bias=x.ssm_dt,
        norm=norm,
        out_proj=lambda gated: gated,
    )
    itself.fix_query_key_value_ordering = partial(layer.fix_query_key_value_ordering, itself)
    out = layer.forward(itself, x.qkv[:, None], cache)
    return out.reshape(len(x.qkv), heads, size), cache.history, cache.state


class _Cache:
    """What their layer asks of a cache, for one layer; it changes the history in place."""

    def __init__(self, history: Any, state: Any) -> None:
        self.history, self.state = history, state

    def get_conv_state(self, *_: int, **__: int) -> Any:
        return self.history

    def get_recurrent_state(self, *_: int, **__: int) -> Any:
        return self.state

    def is_recording_past(self, _: int) -> bool:
        return False

    def update_recurrent_state(self, state: Any, _: int) -> None:
        self.state = state
