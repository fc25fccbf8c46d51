"""The standard library's `math`, element by element: `fsum`, `hypot`, the C library's `exp` and `log1p`."""

from __future__ import annotations

import math
import platform
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ssmtool.golden.oracles import shapes

if TYPE_CHECKING:
    from ssmtool.golden.oracles import Oracle
    from ssmtool.golden.reference.bound import Bound


def oracle() -> Oracle:
    """Always there."""
    from ssmtool.golden.oracles import Oracle

    norm = partial(shapes.qknorm, _l2)
    conv = partial(shapes.convolve, _convolve)
    return Oracle(
        name="python",
        versions=f"Python {platform.python_version()}, {' '.join(platform.libc_ver()).strip() or platform.system()}",
        formulas={
            "fc_ssm_conv1d_silu": conv,
            "fc_ssm_conv1d_silu_seq": conv,
            "fc_ssm_conv1d_silu_slots": partial(conv, many=True),
            "fc_sigmoid": _sigmoid,
            "fc_ssm_gated_norm": _gated,
            "fc_ssm_decay_gate": _gate,
            "fc_ssm_decay_gate_nx": _gate,
            "fc_ssm_qknorm_gqa": norm,
            "fc_ssm_qknorm_gqa_nx": norm,
        },
        forms={},
    )


def _expit(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def _convolve(x: Any, history: Any, weight: Any) -> tuple[Any, Any]:
    samples = np.concatenate([history, x], axis=-1)
    out, taps = np.empty_like(x), weight.shape[1]
    for user, channel in np.ndindex(x.shape[:2]):
        row, filters = samples[user, channel].tolist(), weight[channel].tolist()
        for t in range(x.shape[2]):
            products = [a * b for a, b in zip(row[t : t + taps], filters, strict=True)]
            acc = math.fsum(products) if all(map(math.isfinite, products)) else sum(products)
            out[user, channel, t] = acc * _expit(acc)
    return out, samples[..., samples.shape[-1] - history.shape[-1] :]


def _l2(vectors: Any, eps: float) -> Any:
    out = np.empty_like(vectors)
    for index in np.ndindex(vectors.shape[:-1]):
        norm = max(math.hypot(*vectors[index].tolist()), eps)
        out[index] = [each / norm for each in vectors[index].tolist()]
    return out


def _sigmoid(launch: Bound) -> None:
    n = launch.int("n")
    if n > 0:
        x = launch.array("x", n)
        x[...] = [_expit(each) for each in x.tolist()]


def _gated(launch: Bound) -> None:
    size, heads = launch.int("state_size"), launch.grid[0]
    out, eps = launch.array("gated", heads, size), float(launch.float("eps"))
    weight = launch.array("weight", size).tolist()
    for h, (y, z) in enumerate(
        zip(launch.array("y", heads, size).tolist(), launch.array("z", heads, size).tolist(), strict=True)
    ):
        root = math.sqrt(math.fsum(each * each for each in y) / size + eps)
        out[h] = [a / root * w * b * _expit(b) for a, w, b in zip(y, weight, z, strict=True)]


def _gate(launch: Bound) -> None:
    many = launch.where.endswith("_nx")
    total = launch.int("total" if many else "n")
    if total <= 0:
        return
    heads = launch.int("n_heads") if many else total
    dt, a = launch.array("ssm_dt", heads).tolist(), launch.array("ssm_a", heads).tolist()
    out = launch.array("g", total)
    for index, alpha in enumerate(launch.array("alpha", total).tolist()):
        v = alpha + dt[index % heads]
        # log(1 + e^v) without overflow, and without the contract's branch at 20: they differ by e^-20 there.
        out[index] = a[index % heads] * (max(v, 0.0) + math.log1p(math.exp(-abs(v))))
