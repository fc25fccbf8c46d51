"""Kernel 18 by other people's code: our launch as tensors, one chain of their functions, or a whole block of theirs.

Our V-heads are interleaved, vh = r * n_k_heads + kh; models in PyTorch keep those of one K-head side by side,
kh * kv_groups + r. Their blocks are given everything in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ssmtool.golden.reference.bound import Bound

SIZE = 128
TAPS = 4


@dataclass
class Tensors:
    """The buffers of one token, in float64. u is users, h V-heads, c channels; states are [u h key value]."""

    s: Any  # [u h i j]: key index before value index
    qkv: Any  # [u c]
    conv_weight: Any  # [c tap]
    conv_state: Any  # [u c age]
    alpha: Any  # [u h]
    ssm_dt: Any  # [h]
    ssm_a: Any  # [h]
    beta: Any  # [u h]
    z: Any  # [u h j]
    norm_weight: Any  # [j]


@dataclass(frozen=True)
class Sizes:
    """The scalar arguments."""

    key_heads: int
    groups: int
    scale: float
    qk_eps: float
    norm_eps: float

    @property
    def key_dim(self) -> int:
        """Channels of q, and of k."""
        return self.key_heads * SIZE


# (sizes, tensors) -> gated [u h j], new history [u c age], new state [u h i j]
Block = Callable[[Sizes, Tensors], tuple[Any, Any, Any]]


def decode_step(block: Block, torch: Any, launch: Bound) -> None:
    """The launch by `block`, the V-heads in our order."""
    _run(launch, lambda sizes, given: block(sizes, given), torch)


def decode_step_grouped(block: Block, torch: Any, launch: Bound) -> None:
    """The launch by a block that keeps the V-heads of one K-head side by side."""

    def theirs(sizes: Sizes, given: Tensors) -> tuple[Any, Any, Any]:
        heads = sizes.key_heads * sizes.groups
        # order[kh * groups + r] = r * key_heads + kh, and back.
        order = np.arange(heads).reshape(sizes.groups, sizes.key_heads).T.reshape(-1)
        back = np.argsort(order)
        qk = np.arange(2 * sizes.key_dim)
        v = 2 * sizes.key_dim + np.arange(heads * SIZE).reshape(heads, SIZE)
        channels, channels_back = (np.concatenate([qk, v[each].reshape(-1)]) for each in (order, back))
        of_heads = {name: getattr(given, name)[:, order] for name in ("s", "alpha", "beta", "z")}
        of_heads |= {name: getattr(given, name)[order] for name in ("ssm_dt", "ssm_a")}
        turned = replace(
            given,
            **of_heads,
            qkv=given.qkv[:, channels],
            conv_weight=given.conv_weight[channels],
            conv_state=given.conv_state[:, channels],
        )
        gated, history, state = block(sizes, turned)
        return gated[:, back], history[:, channels_back], state[:, back]

    _run(launch, theirs, torch)


def _run(launch: Bound, block: Block, torch: Any) -> None:
    if launch.int("state_size") != SIZE or launch.int("conv_kernel") != TAPS:
        return
    sizes = Sizes(launch.int("n_k_heads"), launch.int("kv_groups"), *map(float, map(launch.float, _SCALARS)))
    heads = sizes.key_heads * sizes.groups
    channels = 2 * sizes.key_dim + heads * SIZE
    users = min(launch.grid[1], launch.room("s").size // (heads * SIZE * SIZE))
    shapes = {
        "s": (users, heads, SIZE, SIZE),
        "qkv": (users, channels),
        "conv_weight": (channels, TAPS),
        "conv_state": (users, channels, TAPS - 1),
        "alpha": (users, heads),
        "ssm_dt": (heads,),
        "ssm_a": (heads,),
        "beta": (users, heads),
        "z": (users, heads, SIZE),
        "norm_weight": (SIZE,),
    }
    ours = {name: launch.array(name, *shape) for name, shape in shapes.items()}
    given = Tensors(**{each.name: torch.from_numpy(ours[each.name].copy()) for each in fields(Tensors)})
    given.s = given.s.transpose(-1, -2).contiguous()
    gated, history, state = block(sizes, given)
    launch.array("gated", users, heads, SIZE)[...] = gated.numpy()
    ours["conv_state"][...] = history.numpy()
    ours["s"][...] = state.numpy().swapaxes(-1, -2)


_SCALARS = ("scale", "qk_eps", "norm_eps")


def chain(torch: Any, delta: Any, gate: Any, norm: Any) -> Block:
    """Convolution, L2 norm and sigmoid by PyTorch's functionals; delta rule, decay gate and gated norm by these.

    `delta` takes (q, k, v, g, beta, scale, state), `gate` (alpha, ssm_a, ssm_dt), `norm` (y, z, weight, eps).
    """
    functional = torch.nn.functional

    def block(sizes: Sizes, x: Tensors) -> tuple[Any, Any, Any]:
        samples = torch.cat([x.conv_state, x.qkv[..., None]], dim=-1)
        row = functional.silu(functional.conv1d(samples, x.conv_weight[:, None], groups=x.qkv.shape[1]))[..., 0]
        q, k, v = row.split([sizes.key_dim, sizes.key_dim, row.shape[1] - 2 * sizes.key_dim], dim=-1)
        # Tiled as whole blocks of K-heads: interleaved.
        q, k = (
            functional.normalize(each.unflatten(-1, (-1, SIZE)), dim=-1, eps=sizes.qk_eps).tile(1, sizes.groups, 1)
            for each in (q, k)
        )
        inputs = (q, k, v.unflatten(-1, (-1, SIZE)), gate(x.alpha, x.ssm_a, x.ssm_dt), torch.sigmoid(x.beta))
        y, state = delta(*(each[:, None] for each in inputs), sizes.scale, x.s)
        return norm(y[:, 0], x.z, x.norm_weight, sizes.norm_eps), samples[..., 1:], state

    return block
