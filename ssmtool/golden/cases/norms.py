"""Cases of the gated norm (kernel 3) and of the norm of q and k (kernels 6 and 15)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.build import Builder
from ssmtool.golden.case import GoldenCase
from ssmtool.golden.generator import ramp

Arrays = dict[str, NDArray[Any]]
Edit = Callable[[Arrays], None]
Makers = Iterator[tuple[str, Callable[[], GoldenCase]]]

GATED, ONE, MANY = "fc_ssm_gated_norm", "fc_ssm_qknorm_gqa", "fc_ssm_qknorm_gqa_nx"
_POLICY = "norm"
_EPS = 1e-6


def gated(
    name: str, title: str, *, heads: int, size: int, blocks: Sequence[int] = (256,), edit: Edit | None = None,
    exposes: Sequence[str] = (),
) -> GoldenCase:  # fmt: skip
    """Outputs of the recurrence, normed and gated; a run for each block size."""
    b = Builder(f"gated-norm/{name}", title, exposes=exposes)
    arrays = {
        "y": b.random.bell("y", (heads, size)),
        "weight": b.random.uniform("weight", (size,), 0.5, 1.5),
        "z": b.random.bell("z", (heads, size), 1),
    }
    if edit is not None:
        edit(arrays)
    for each, axes in (("y", "h j"), ("weight", "j"), ("z", "h j")):
        b.given(each, arrays[each], axes)
    b.poison("gated", (heads, size), "h j", _POLICY, group="h")
    for block in blocks:
        b.launch(f"{GATED} block {block}", GATED, (heads,), block, block, "y", "weight", "z", "gated", size, _EPS)
    return b.case()


def qknorm(
    name: str, title: str, *, key_heads: int, groups: int, size: int, n: int = 1, many: bool = False,
    norms: Sequence[float] = (), edit: Edit | None = None, exposes: Sequence[str] = (),
) -> GoldenCase:  # fmt: skip
    """Vectors q and k, normed and repeated. `norms` are those of the K-heads, in turn over q and k."""
    own = {"own_rule": "max(NaN, eps) is eps, as CUDA's fmaxf has it"} if edit is _odd_q else {}
    b = Builder(f"qknorm/{name}", title, exposes=exposes, **own)
    key_dim, heads = key_heads * size, key_heads * groups
    val_dim = heads * size
    row = b.random.bell("conv_out", (n, 2 * key_heads, size))
    if norms:
        unit = b.random.unit("conv_out", row.shape).astype(np.float64)
        wanted = np.resize(np.array(norms), (n, 2 * key_heads, 1))
        row = (unit * wanted).astype(np.float32)
    arrays = {"conv_out": row.reshape(n, 2 * key_dim)}
    if many:
        v = b.random.bell("v", (n, val_dim))
        arrays["conv_out"] = np.concatenate([arrays["conv_out"], v], axis=1)
    if edit is not None:
        edit(arrays)
    b.given("conv_out", arrays["conv_out"], "t c")
    b.poison("qg", (n, heads, size), "t h i", _POLICY, group="h")
    b.poison("kg", (n, heads, size), "t h i", _POLICY, group="h")
    sizes = (key_heads, groups, size, key_dim)
    if many:
        b.poison("vg", (n, heads, size), "t h j", "exact")
        b.launch(MANY, MANY, (key_heads, n), size, 2 * size, "conv_out", "qg", "kg", "vg", *sizes, val_dim, _EPS)
    else:
        b.launch(ONE, ONE, (key_heads,), size, 2 * size, "conv_out", "qg", "kg", *sizes, _EPS)
    return b.case()


def _small(arrays: Arrays) -> None:
    """Heads of RMS 0.8, 1e-3 (where eps counts), 1e-5 and 0."""
    for head, factor in enumerate((1.0, 2.0**-10, 2.0**-17, 0.0)):
        arrays["y"][head] *= np.float32(factor)


def _odd_gated(arrays: Arrays) -> None:
    arrays["y"][1, 3], arrays["z"][2, 4], arrays["y"][3, 5], arrays["z"][0, 1] = np.nan, np.nan, np.inf, -np.inf


def _steep_gates(arrays: Arrays) -> None:
    arrays["z"][...] = ramp(-120, 120, arrays["z"].size).reshape(arrays["z"].shape)


def _odd_q(arrays: Arrays) -> None:
    arrays["conv_out"][0, 3] = np.nan  # q of K-head 0: its norm is then eps, only this lane is NaN
    arrays["conv_out"][0, -1] = np.inf  # k (or v) of the last head


def makers() -> Makers:
    """Name and maker of every case here."""
    part = functools.partial

    def gate(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"gated-norm/{name}", part(gated, name, title, **options)

    def qk(name: str, title: str, **options: Any) -> tuple[str, functools.partial[GoldenCase]]:
        return f"qknorm/{name}", part(qknorm, name, title, **options)

    usual = ("weight-plus-one", "gate-sigmoid", "gate-before-norm", "l2-instead-of-rms")
    yield gate("reference", "the model's dimensions, blocks of 256 and of S", heads=32, size=128, blocks=(256, 128),
               exposes=usual)  # fmt: skip
    for heads, size, blocks in ((3, 5, (256, 8)), (2, 300, (256,)), (1, 1, (256, 1)), (2, 64, (256, 64))):
        yield gate(f"s{size}", f"heads of {size}", heads=heads, size=size, blocks=blocks,
                   exposes=("gate-sigmoid",))  # fmt: skip
    yield gate("small-norms", "heads of RMS 0.8, 1e-3, 1e-5 and 0: eps counts", heads=4, size=16, edit=_small,
               exposes=("rms-eps-missing",))  # fmt: skip
    yield gate("mistake-weight", "the weight is a factor", heads=1, size=2, exposes=usual[:3])
    yield gate("steep-gates", "gates from -120 to 120", heads=2, size=64, edit=_steep_gates, exposes=("gate-sigmoid",))
    yield gate("odd-values", "NaN and infinities stay in their heads", heads=5, size=8, edit=_odd_gated,
               exposes=("nan-spread",))  # fmt: skip

    model = {"key_heads": 16, "groups": 2, "size": 128}
    wrong = ("grouped-heads", "qk-swapped", "rms-instead-of-l2")
    yield qk("reference", "the model's dimensions", exposes=wrong, **model)
    yield qk("reference-n2", "the model's dimensions, two tokens, v copied", n=2, many=True, exposes=wrong, **model)
    norms = (1e-2, 1e-3, 1e-5, 0.0, 1e-6, 3e-7)
    forms = ("l2-rsqrt-eps", "l2-eps-added", "l2-eps-squared", "l2-no-eps")
    yield qk("mistake-eps", "norms of 1e-2, 1e-3, 1e-5, 0, 1e-6 and 3e-7 tell the forms of eps apart", key_heads=3,
             groups=1, size=8, norms=norms, exposes=forms)  # fmt: skip
    yield qk("mistake-eps-nx", "the same over two tokens", key_heads=3, groups=1, size=8, n=2, many=True, norms=norms,
             exposes=forms)  # fmt: skip
    yield qk("mistake-grouped-heads", "4 V-heads of 2 K-heads", key_heads=2, groups=2, size=8, exposes=wrong)
    yield qk("mistake-grouped-heads-nx", "4 V-heads of 2 K-heads", key_heads=2, groups=2, size=8, n=2, many=True,
             exposes=(*wrong, "v-from-k"))  # fmt: skip
    for key_heads, groups, size, n in ((1, 1, 1, 1), (3, 3, 16, 4), (1, 4, 256, 3), (2, 1, 32, 17)):
        yield qk(f"s{size}-n{n}", f"{key_heads} K-heads, {groups} V-heads each, S = {size}", key_heads=key_heads,
                 groups=groups, size=size, n=n, many=True, exposes=("v-from-k",))  # fmt: skip
    yield qk("odd-values", "NaN and infinity in one lane stay in their K-head", key_heads=3, groups=2, size=8,
             edit=_odd_q)  # fmt: skip
    yield qk("odd-values-nx", "NaN and infinity in one lane stay in their K-head", key_heads=3, groups=2, size=8, n=2,
             many=True, edit=_odd_q)  # fmt: skip
