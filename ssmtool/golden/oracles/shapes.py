"""What the adapters share: our launches as the tensors that PyTorch models use.

Their axes are [batch, position, head, ...] and their state is [batch, head, key index, value index]: the transpose of
ours, whose rows are over the value index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ssmtool.golden.reference.bound import Bound

# (q, k, v, g, beta, scale, initial state) -> (outputs, final state), all tensors in float64.
Delta = Callable[..., tuple[Any, Any]]


def one(delta: Delta, torch: Any, launch: Bound) -> None:
    """Kernel 1."""
    _positions(delta, torch, launch, heads=launch.grid[1], n=1, has_snaps=False)


def seq(delta: Delta, torch: Any, launch: Bound) -> None:
    """Kernels 8, 9, 10 and 17; a launch for each position where there are snapshots."""
    n, size = launch.int("n"), launch.int("state_size")
    if launch.where == "fc_ssm_recurrence_seq_warp_multi" and (launch.grid[0] not in (4, 8) or launch.block[0] != 128):
        return
    if n > 0 and (launch.where == "fc_ssm_recurrence_seq" or size == 128):
        _positions(delta, torch, launch, heads=launch.int("n_v_heads"), n=n, has_snaps=not launch.is_null("snaps"))


def slots(delta: Delta, torch: Any, launch: Bound) -> None:
    """Kernels 12, 13 and 16: users are the batch."""
    size, heads = launch.int("state_size"), launch.int("n_v_heads")
    if launch.where == "fc_ssm_recurrence_slots_warp":
        warps = launch.grid[0] * (launch.block[0] // 32)
        if size != 128 or warps not in (16, 32, 64):
            return
    users = min(launch.grid[2], launch.room("s").size // (heads * size * size))
    state = launch.array("s", users, heads, size, size)
    q, k, v = (torch.from_numpy(launch.array(name, users, 1, heads, size).copy()) for name in ("q", "k", "v"))
    g, beta = (torch.from_numpy(launch.array(name, users, 1, heads).copy()) for name in ("g", "beta"))
    y, final = delta(q, k, v, g, beta, float(launch.float("scale")), _theirs(torch, state))
    launch.array("y", users, heads, size)[...] = y[:, 0].numpy()
    state[...] = final.numpy().swapaxes(-1, -2)


def _positions(delta: Delta, torch: Any, launch: Bound, *, heads: int, n: int, has_snaps: bool) -> None:
    size = launch.int("state_size")
    state = launch.array("s", heads, size, size)
    q, k, v = (torch.from_numpy(launch.array(name, 1, n, heads, size).copy()) for name in ("q", "k", "v"))
    g, beta = (torch.from_numpy(launch.array(name, 1, n, heads).copy()) for name in ("g", "beta"))
    y = launch.array("y", n, heads, size)
    length = 1 if has_snaps else n
    for start in range(0, n, length):
        part = slice(start, start + length)
        inputs = (each[:, part] for each in (q, k, v, g, beta))
        out, final = delta(*inputs, float(launch.float("scale")), _theirs(torch, state[None]))
        y[part] = out[0].numpy()
        state[...] = final[0].numpy().swapaxes(-1, -2)
        if has_snaps:
            launch.array("snaps", n, heads, size, size)[start] = state


def _theirs(torch: Any, state: Any) -> Any:
    return torch.from_numpy(state.swapaxes(-1, -2).copy())


def convolve(step: Callable[[Any, Any, Any], tuple[Any, Any]], launch: Bound, *, many: bool = False) -> None:
    """Kernels 2, 7 and 11 by `step`: samples [user, channel, position], history, weight -> outputs, new history.

    All of them are NumPy arrays.
    """
    channels, taps = launch.int("conv_dim"), launch.int("conv_kernel")
    is_seq = launch.where == "fc_ssm_conv1d_silu_seq"
    n, users = (launch.int("n") if is_seq else 1), 1
    if n <= 0 or taps < 1 or (is_seq and taps > 4):
        return
    if many:
        users = min(launch.grid[1], launch.room("conv_state").size // (channels * (taps - 1)))
    # [n][user][channel]; at most one of the two is more than 1.
    x = launch.array("qkv", n, users, channels)
    out = launch.array("out", n, users, channels)
    room = launch.array("conv_state", users, channels, taps - 1)
    weight = launch.array("weight", channels, taps).copy()
    length = 1 if is_seq and not launch.is_null("snaps") else n
    for start in range(0, n, length):
        part = slice(start, start + length)
        y, history = step(x[part].transpose(1, 2, 0).copy(), room.copy(), weight)
        out[part] = y.transpose(2, 0, 1)
        room[...] = history
        if length < n or (is_seq and not launch.is_null("snaps")):
            launch.array("snaps", n, channels, taps - 1)[start] = room[0]


def qknorm(norm: Callable[[Any, float], Any], launch: Bound) -> None:
    """Kernels 6 and 15 by `norm`: vectors [n, head, i] and eps. K-heads are repeated as whole blocks: interleaved."""
    many = launch.where.endswith("_nx")
    heads, groups, size = launch.int("n_k_heads"), launch.int("kv_groups"), launch.int("S")
    key_dim, n = launch.int("key_dim"), (launch.grid[1] if many else 1)
    val_dim = launch.int("val_dim") if many else 0
    row = launch.array("conv_out", n, 2 * key_dim + val_dim)
    for name, start in (("qg", 0), ("kg", key_dim)):
        vectors = row[:, start : start + heads * size].reshape(n, heads, size)
        normed = norm(vectors.copy(), float(launch.float("eps")))
        out = launch.array(name, n, groups, heads, size)
        for group in range(groups):
            out[:, group] = normed
    if many:
        launch.array("vg", n, val_dim)[...] = row[:, 2 * key_dim :]
