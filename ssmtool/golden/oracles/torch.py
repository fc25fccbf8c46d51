"""PyTorch's own functionals: convolution, norms, gates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ssmtool.golden.oracles import shapes
from ssmtool.golden.oracles.foreign import import_torch, version_of

if TYPE_CHECKING:
    from ssmtool.golden.oracles import Oracle
    from ssmtool.golden.reference.bound import Bound


def oracle() -> Oracle:
    """Raises SsmtoolError where torch is missing."""
    from ssmtool.golden.oracles import Oracle

    torch = import_torch()
    conv = partial(shapes.convolve, partial(_convolve, torch))
    norm = partial(shapes.qknorm, partial(_l2, torch))
    return Oracle(
        name="torch",
        versions=version_of("torch"),
        formulas={
            "fc_ssm_conv1d_silu": conv,
            "fc_ssm_conv1d_silu_seq": conv,
            "fc_ssm_conv1d_silu_slots": partial(conv, many=True),
            "fc_ssm_gated_norm": partial(_gated, torch),
            "fc_sigmoid": partial(_sigmoid, torch),
            "fc_ssm_decay_gate": partial(_gate, torch),
            "fc_ssm_decay_gate_nx": partial(_gate, torch),
            "fc_ssm_qknorm_gqa": norm,
            "fc_ssm_qknorm_gqa_nx": norm,
        },
        forms={},
    )


def _convolve(torch: Any, x: Any, history: Any, weight: Any) -> tuple[Any, Any]:
    functional = torch.nn.functional
    samples = torch.cat([torch.from_numpy(history), torch.from_numpy(x)], dim=-1)
    filters = torch.from_numpy(weight)[:, None]
    out = functional.silu(functional.conv1d(samples, filters, groups=weight.shape[0]))
    return out.numpy(), samples[..., samples.shape[-1] - history.shape[-1] :].numpy()


def _l2(torch: Any, vectors: Any, eps: float) -> Any:
    return torch.nn.functional.normalize(torch.from_numpy(vectors), dim=-1, eps=eps).numpy()


def _gated(torch: Any, launch: Bound) -> None:
    functional = torch.nn.functional
    size, heads = launch.int("state_size"), launch.grid[0]
    y, z = (torch.from_numpy(launch.array(name, heads, size).copy()) for name in ("y", "z"))
    weight = torch.from_numpy(launch.array("weight", size).copy())
    out = functional.rms_norm(y, (size,), weight, eps=float(launch.float("eps"))) * functional.silu(z)
    launch.array("gated", heads, size)[...] = out.numpy()


def _sigmoid(torch: Any, launch: Bound) -> None:
    n = launch.int("n")
    if n > 0:
        x = launch.array("x", n)
        x[...] = torch.sigmoid(torch.from_numpy(x.copy())).numpy()


def _gate(torch: Any, launch: Bound) -> None:
    many = launch.where.endswith("_nx")
    total = launch.int("total" if many else "n")
    if total <= 0:
        return
    heads = launch.int("n_heads") if many else total
    alpha = torch.from_numpy(launch.array("alpha", total // heads, heads).copy())
    dt, a = (torch.from_numpy(launch.array(name, heads).copy()) for name in ("ssm_dt", "ssm_a"))
    launch.array("g", total // heads, heads)[...] = (a * torch.nn.functional.softplus(alpha + dt)).numpy()
