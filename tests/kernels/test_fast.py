"""R10 to R12: the fast kernels' bits against the kernels they stand for, on the executor with every check."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.launches import F32, KINDS, SCALE, Rows, S, launch, rows, same, scan, spoil, step, unwritten

SEQ, MULTI = "fc_ssm_recurrence_seq", "fc_ssm_recurrence_seq_warp_multi"
SLOTS, WARP = "fc_ssm_recurrence_slots", "fc_ssm_recurrence_slots_warp"
EPS = 1e-6


def multi(x: Rows, *, snaps: bool, size: int = S, blocks: int = 4) -> list[F32]:
    return scan(MULTI, (blocks, x.g.shape[1]), 0, x, snaps=snaps, size=size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("snaps", [True, False])
def test_eight_and_four_rows_a_warp_give_kernel_8s_bits(kind: str, snaps: bool) -> None:
    x = rows(19, 2, kind)
    expected = scan(SEQ, (S, 2), 4 * S, x, snaps=snaps)
    for blocks in (4, 8):
        for got, want in zip(multi(x, snaps=snaps, blocks=blocks), expected, strict=True):
            assert same(got, want)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 49])
def test_every_count_around_groups_of_four_and_the_staged_sixteen(n: int) -> None:
    """The last group and stage are short, and what is fetched ahead must end with the positions."""
    x = rows(n, 1)
    expected = scan(SEQ, (S, 1), 4 * S, x, snaps=False)
    for blocks in (4, 8):
        for got, want in zip(multi(x, snaps=False, blocks=blocks), expected, strict=True):
            assert same(got, want)


@pytest.mark.parametrize("cut", [1, 2, 16, 20])
def test_any_split_is_one_run(cut: int) -> None:
    x = rows(21, 2)
    whole = multi(x, snaps=True)
    first = multi(Rows(x.s, **x.part(0, cut)), snaps=True)
    second = multi(Rows(first[2][-1], **x.part(cut, 21)), snaps=True)  # R6: from a snapshot
    assert same(second[0], whole[0])
    assert same(np.concatenate([first[1], second[1]]), whole[1])
    assert same(np.concatenate([first[2], second[2]]), whole[2])


@pytest.mark.parametrize(("n", "size", "blocks"), [(0, S, 4), (3, 64, 4), (3, S, 16), (3, S, 2)])
def test_no_position_or_another_state_size_or_shape_writes_nothing(n: int, size: int, blocks: int) -> None:
    x = rows(n, 1)
    s, y, images = multi(x, snaps=True, size=size, blocks=blocks)
    assert same(s, x.s)
    assert same(y, unwritten(*y.shape))
    assert same(images, unwritten(*images.shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("blocks", "block"), [(16, 32), (4, 128), (32, 32), (8, 128), (64, 32), (16, 128)])
def test_rows_of_slots_give_kernel_12s_bits_at_2_4_and_8_a_warp(kind: str, blocks: int, block: int) -> None:
    x = rows(3, 2, kind)
    states = np.stack([x.s, x.s[::-1], -x.s])
    got = step(WARP, (blocks, 2, 3), block, 0, states, x)
    for one, other in zip(got, step(SLOTS, (S, 2, 3), S, 4 * S, states, x), strict=True):
        assert same(one, other)


@pytest.mark.parametrize(("blocks", "block", "size"), [(16, 32, 64), (2, 32, S), (128, 32, S), (16, 16, S)])
def test_another_shape_or_state_size_writes_nothing(blocks: int, block: int, size: int) -> None:
    x = rows(1, 1)
    s, y = step(WARP, (blocks, 1, 1), block, 0, x.s[None], x, size=size)
    assert same(s, x.s[None])
    assert same(y, unwritten(1, 1, S))


def token(users: int, key_heads: int, groups: int, kind: str) -> dict[str, F32]:
    """Inputs of a whole decode step, as projected."""
    rng = np.random.default_rng([users, key_heads, groups])
    heads, channels = key_heads * groups, (2 + groups) * key_heads * S

    def normal(*shape: int) -> F32:
        return rng.standard_normal(shape).astype(np.float32)

    x = {
        "s": normal(users, heads, S, S),
        "qkv": normal(users, channels),
        "conv_weight": normal(channels, 4),
        "conv_state": normal(users, channels, 3),
        "alpha": 8 * normal(users, heads),
        "ssm_dt": normal(heads),
        "ssm_a": -np.exp(normal(heads)),
        "beta": 5 * normal(users, heads),
        "z": normal(users, heads, S),
        "norm_weight": normal(S),
    }
    if kind == "special":
        spoil(rng, *x.values())
    elif kind == "zero":
        x["qkv"][:], x["conv_state"][:] = 0, -0.0  # norms of 0: max(norm, eps) tells
    elif kind == "small norms":
        x["qkv"] *= np.float32(1e-4)
        x["conv_state"] *= np.float32(1e-4)
    elif kind == "strong decay":
        x["alpha"][:], x["ssm_a"][:] = -200, -np.inf  # inf * 0
    return x


def chain(x: dict[str, F32], users: int, key_heads: int, groups: int) -> list[F32]:
    """State, history and gated output of 11, 15, 14, 4, 12 and 3, one after the other."""
    heads, channels = key_heads * groups, x["qkv"].shape[1]
    s, history, beta = x["s"].copy(), x["conv_state"].copy(), x["beta"].copy()
    out, g = unwritten(users, channels), unwritten(users, heads)
    q, k, v, y, gated = (unwritten(users, heads, S) for _ in range(5))
    launch("fc_ssm_conv1d_silu_slots", (-(-channels // 256), users), 256, qkv=x["qkv"], weight=x["conv_weight"],
           conv_state=history, out=out, conv_dim=channels, conv_kernel=4)  # fmt: skip
    launch("fc_ssm_qknorm_gqa_nx", (key_heads, users), S, 8 * S, conv_out=out, qg=q, kg=k, vg=v, n_k_heads=key_heads,
           kv_groups=groups, S=S, key_dim=key_heads * S, val_dim=heads * S, eps=EPS)  # fmt: skip
    launch("fc_ssm_decay_gate_nx", (1,), 256, alpha=x["alpha"], ssm_dt=x["ssm_dt"], ssm_a=x["ssm_a"], g=g,
           n_heads=heads, total=users * heads)  # fmt: skip
    launch("fc_sigmoid", (1,), 256, x=beta, n=users * heads)
    launch(SLOTS, (S, heads, users), S, 4 * S, s=s, q=q, k=k, v=v, g=g, beta=beta, y=y, state_size=S, n_v_heads=heads,
           scale=float(SCALE))  # fmt: skip
    launch("fc_ssm_gated_norm", (users * heads,), 256, 1024, y=y, weight=x["norm_weight"], z=x["z"], gated=gated,
           state_size=S, eps=EPS)  # fmt: skip
    return [s, history, gated]


def fused(x: dict[str, F32], users: int, key_heads: int, groups: int, block: int = 512, **other: int) -> list[F32]:
    s, history, gated = x["s"].copy(), x["conv_state"].copy(), unwritten(users, key_heads * groups, S)
    scalars = {"n_k_heads": key_heads, "kv_groups": groups, "state_size": S, "conv_kernel": 4} | other
    launch("fc_ssm_decode_step", (key_heads, users), block, (2 + 2 * groups) * S * 4,
           **x | {"s": s, "conv_state": history, "gated": gated}, **scalars, scale=float(SCALE), qk_eps=EPS,
           norm_eps=EPS)  # fmt: skip
    return [s, history, gated]


@pytest.mark.parametrize("kind", ["plain", "special", "zero", "small norms", "strong decay"])
@pytest.mark.parametrize(("users", "key_heads", "groups"), [(1, 2, 2), (3, 1, 2), (2, 2, 1), (1, 1, 3)])
def test_the_decode_step_is_the_chain_of_single_kernels(kind: str, users: int, key_heads: int, groups: int) -> None:
    x = token(users, key_heads, groups, kind)
    want = chain(x, users, key_heads, groups)
    for block in (512, 128):
        for got, expected in zip(fused(x, users, key_heads, groups, block), want, strict=True):
            assert same(got, expected)


@pytest.mark.parametrize("other", [{"state_size": 64}, {"conv_kernel": 3}])
def test_a_decode_step_of_another_shape_writes_nothing(other: dict[str, int]) -> None:
    x = token(1, 1, 2, "plain")
    s, history, gated = fused(x, 1, 1, 2, **other)
    assert same(s, x["s"])
    assert same(history, x["conv_state"])
    assert same(gated, unwritten(1, 2, S))
