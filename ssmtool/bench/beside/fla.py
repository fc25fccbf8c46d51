"""flash-linear-attention's gated delta rule: `--beside fla`, or `fla:fused` and `fla:chunk` alone.

Needs torch, triton and fla-core (or flash-linear-attention). Prefills are one sequence of `positions`, decode steps a
batch of `users` of one position, with the initial state in and the final state out; fp32 throughout. Its layout of the
state is [key][value], ours [value][key]; where a release takes ours too (`state_v_first`), both are timed.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from ssmtool.bench.beside.api import DECODE, PREFILL, Peer, Task
from ssmtool.bench.beside.load import BesideError

_INSTALL = "pip install torch triton fla-core, on a machine whose card they support"


def prepare() -> None:
    """Import what is needed. Raises BesideError that says what is missing."""
    _libraries()


def beside(task: Task) -> list[Peer]:
    """The fused recurrent kernel and, over positions, the chunked one."""
    return [*fused(task), *chunk(task)]


def fused(task: Task) -> list[Peer]:
    """`fused_recurrent_gated_delta_rule`: one launch, plain fp32."""
    if task.kind not in (PREFILL, DECODE) or task.snapshots:
        return []
    function = _libraries()[1].fused_recurrent_gated_delta_rule
    peers = [_peer("fla fused recurrent", function, task, {}, versions())]
    if "state_v_first" in inspect.signature(function).parameters:
        peers.append(_peer("fla fused recurrent, state as ours", function, task, {"state_v_first": True}, versions()))
    return peers


def chunk(task: Task) -> list[Peer]:
    """`chunk_gated_delta_rule`: several launches, products of 64 positions by the tensor cores."""
    if task.kind != PREFILL or task.snapshots:
        return []
    function = _libraries()[1].chunk_gated_delta_rule
    precision = os.environ.get("TRITON_F32_DEFAULT", "tf32")
    note = f"{versions()}; the chunked kernels' products of fp32 in {precision} (TRITON_F32_DEFAULT)"
    solve = getattr(importlib.import_module(function.__module__ + "_fwd"), "SOLVE_TRIL_DOT_PRECISION", None)
    if solve is not None:
        note += f", those of the triangular solve in {getattr(solve, 'value', solve)} whatever it says"
    return [_peer(f"fla chunked, {precision}", function, task, {}, note)]


def versions() -> str:
    """`torch 2.11.0, triton 3.6.0, fla-core 0.6.0`, as far as they are installed."""
    there = {name.lower(): name for each in metadata.distributions() if (name := each.metadata["Name"])}
    wanted = ("torch", "triton", "fla-core", "flash-linear-attention")
    return ", ".join(f"{name} {metadata.version(there[name])}" for name in wanted if name in there)


@functools.lru_cache(maxsize=1)
def _libraries() -> tuple[Any, Any]:
    """torch, and the module with the two functions. Raises BesideError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both speak at import of what concerns training
            torch = importlib.import_module("torch")
            importlib.import_module("triton")
            rule = importlib.import_module("fla.ops.gated_delta_rule")
    except ImportError as error:
        raise BesideError(f"--beside fla: {error}", hint=_INSTALL) from None
    if not torch.cuda.is_available():
        raise BesideError("--beside fla: this torch sees no card of CUDA", hint=_INSTALL)
    # Neither has a part in these kernels, which are Triton's; they are off lest a release does something by torch.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch, rule


def _peer(name: str, function: Callable[..., Any], task: Task, options: Mapping[str, Any], note: str) -> Peer:
    torch, _ = _libraries()
    batch, length = (1, task.positions) if task.kind == PREFILL else (task.users, 1)
    ours_first = bool(options.get("state_v_first"))

    def on_card(array: Any, *shape: int) -> Any:
        return torch.tensor(array, dtype=torch.float32, device=torch.device("cuda", task.device)).reshape(shape)

    per_row = {key: on_card(task.inputs[key], batch, length, task.heads, task.size) for key in ("q", "k", "v")}
    per_head = {key: on_card(task.inputs[key], batch, length, task.heads) for key in ("g", "beta")}
    given = on_card(task.inputs["s"], batch, task.heads, task.size, task.size)
    given = given if ours_first else given.transpose(-1, -2).contiguous()
    state = given.clone()
    results: list[Any] = [None, None]

    def run() -> None:
        with torch.no_grad():
            results[:] = function(
                **per_row, **per_head, scale=task.scale, initial_state=state, output_final_state=True, **options
            )

    def outputs() -> dict[str, Any]:
        y, final = results
        return {
            "y": y.cpu().numpy(),
            "s": (final if ours_first else final.transpose(-1, -2)).contiguous().cpu().numpy(),
        }

    # `state` is not changed; put back all the same, so that it lies in the L2 as ours does.
    return Peer(name, run, lambda: state.copy_(given), outputs, note)
