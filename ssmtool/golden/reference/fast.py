"""Kernels 16 to 18: 12 and 8 by warps of several rows, for the shapes of theirs, and the whole decode step."""

from __future__ import annotations

from ssmtool.golden.reference import recurrence
from ssmtool.golden.reference.arithmetic import tree_sum
from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules

_SPECIAL = 128
_TAPS = 4
_WARP = 32
# Rows of the state that a warp of kernels 16 and 17 may take; the launch's shape says which.
_SLOT_ROWS = (2, 4, 8)
_SEQ_ROWS = (4, 8)
_SEQ_THREADS = 128


def recurrence_slots_warp(launch: Bound, rules: Rules) -> None:
    """Kernel 12 for S = 128. The grid is (128 / (rows * warps of a block), n_v_heads, K), any other does nothing."""
    warps = launch.grid[0] * (launch.block[0] // _WARP)
    if rules.guarded(launch.int("state_size"), _SPECIAL) and warps in [_SPECIAL // rows for rows in _SLOT_ROWS]:
        recurrence.recurrence_slots(launch, rules)


def recurrence_seq_warp_multi(launch: Bound, rules: Rules) -> None:
    """Kernel 8 for S = 128. The grid is (128 / (rows * 4 warps), n_v_heads), the block 128; any other does nothing."""
    warps = launch.grid[0] * (_SEQ_THREADS // _WARP)
    if launch.block[0] == _SEQ_THREADS and warps in [_SPECIAL // rows for rows in _SEQ_ROWS]:
        recurrence.recurrence_seq_special(launch, rules)


def decode_step(launch: Bound, rules: Rules) -> None:
    """One token of K users, from the projections to the gated output. The grid is (n_k_heads, K).

    Convolution, L2 norm of q and k and their repetition, decay gate, sigmoid of beta, delta rule, gated norm. Only s,
    conv_state and gated are written. Another S than 128 and a filter of other than 4 taps do nothing.
    """
    size, taps = launch.int("state_size"), launch.int("conv_kernel")
    if not (rules.guarded(size, _SPECIAL) and rules.guarded(taps, _TAPS)):
        return
    key_heads, groups = launch.int("n_k_heads"), launch.int("kv_groups")
    heads, key_dim = key_heads * groups, key_heads * size
    channels = 2 * key_dim + heads * size
    users = rules.slots(launch.grid[1], launch.room("s").size // (heads * size * size))

    x, room = launch.array("qkv", users, channels), launch.array("conv_state", users, channels, taps - 1)
    history = rules.load(room)
    row = rules.activation(rules.convolve(history, x, launch.array("conv_weight", channels, taps)))
    rules.store(room, rules.final_history(history, x[None], rules.push(history, x, row)))
    row = rules.result(row)

    of_v_head = rules.key_heads(key_heads, groups)
    normed = []
    for part in rules.order(row[:, :key_dim], row[:, key_dim : 2 * key_dim]):
        vectors = part.reshape(users, key_heads, size)
        inv = rules.l2(tree_sum(vectors * vectors), launch.float("qk_eps"), size)[..., None]
        normed.append(rules.result((vectors * inv)[:, of_v_head]))
    v = rules.values(row, key_dim).reshape(users, heads, size)

    head = rules.gate_heads(users * heads, heads).reshape(users, heads)
    biased = rules.biased(launch.array("alpha", users, heads), launch.array("ssm_dt", heads)[head])
    g = rules.result(rules.log_decay(launch.array("ssm_a", heads)[head], rules.softplus(biased)))
    beta = rules.result(rules.sigmoid(launch.array("beta", users, heads)))

    s = launch.array("s", users, heads, size, size)
    state = rules.load(s)
    y = rules.result(rules.step(state, normed[0], normed[1], v, g, beta, launch.float("scale")))
    rules.store(s, rules.result(state))

    inv = rules.rms(tree_sum(y * y), launch.float("norm_eps"), size)[..., None]
    gated = rules.gated(y, inv, launch.array("norm_weight", size), launch.array("z", users, heads, size))
    launch.array("gated", users, heads, size)[...] = rules.result(gated)
