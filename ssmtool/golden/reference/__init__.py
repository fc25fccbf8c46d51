"""What the kernels must compute: one readable formula each, in float64, written from their contract (docs/kernels.md).

`run(case)` carries out a case's launches with these formulas. Nothing here looks at CUDA source or PTX.
"""

from __future__ import annotations

import functools
import io
import tokenize
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import POISON, Buffer, CaseError, GoldenCase, Run, is_poison, poisoned
from ssmtool.golden.reference import convolution, fast, gates, norms, recurrence
from ssmtool.golden.reference.bound import Bound
from ssmtool.golden.reference.rules import Rules

Array = NDArray[Any]
Kernel = Callable[[Bound, Rules], None]

_STEP = ("s", "q", "k", "v", "g", "beta", "y", "state_size")
_SEQ = (*_STEP, "n_v_heads", "n", "scale", "snaps")
_SLOTS = (*_STEP, "n_v_heads", "scale")
_CONV = ("qkv", "weight", "conv_state", "out", "conv_dim", "conv_kernel")
_GATE = ("alpha", "ssm_dt", "ssm_a", "g")
_QKNORM = ("n_k_heads", "kv_groups", "S", "key_dim")
_DECODE = (
    "s", "qkv", "conv_weight", "conv_state", "alpha", "ssm_dt", "ssm_a", "beta", "z", "norm_weight", "gated",
    "n_k_heads", "kv_groups", "state_size", "conv_kernel", "scale", "qk_eps", "norm_eps",
)  # fmt: skip

# entry -> (its formula, its parameters in order); the loader's order.
KERNELS: dict[str, tuple[Kernel, tuple[str, ...]]] = {
    "fc_ssm_recurrence": (recurrence.recurrence, (*_STEP, "scale")),
    "fc_ssm_conv1d_silu": (convolution.conv1d_silu, _CONV),
    "fc_ssm_gated_norm": (norms.gated_norm, ("y", "weight", "z", "gated", "state_size", "eps")),
    "fc_sigmoid": (gates.sigmoid, ("x", "n")),
    "fc_ssm_decay_gate": (gates.decay_gate, (*_GATE, "n")),
    "fc_ssm_qknorm_gqa": (norms.qknorm_gqa, ("conv_out", "qg", "kg", *_QKNORM, "eps")),
    "fc_ssm_conv1d_silu_seq": (convolution.conv1d_silu_seq, (*_CONV, "n", "snaps")),
    "fc_ssm_recurrence_seq": (recurrence.recurrence_seq, _SEQ),
    "fc_ssm_recurrence_seq_unroll128": (recurrence.recurrence_seq_special, _SEQ),
    "fc_ssm_recurrence_seq_warp": (recurrence.recurrence_seq_special, _SEQ),
    "fc_ssm_conv1d_silu_slots": (convolution.conv1d_silu_slots, _CONV),
    "fc_ssm_recurrence_slots": (recurrence.recurrence_slots, _SLOTS),
    "fc_ssm_recurrence_slots_2pass": (recurrence.recurrence_slots_two_pass, _SLOTS),
    "fc_ssm_decay_gate_nx": (gates.decay_gate_nx, (*_GATE, "n_heads", "total")),
    "fc_ssm_qknorm_gqa_nx": (norms.qknorm_gqa_nx, ("conv_out", "qg", "kg", "vg", *_QKNORM, "val_dim", "eps")),
    "fc_ssm_recurrence_slots_warp": (fast.recurrence_slots_warp, _SLOTS),
    "fc_ssm_recurrence_seq_warp_multi": (fast.recurrence_seq_warp_multi, _SEQ),
    "fc_ssm_decode_step": (fast.decode_step, _DECODE),
}
# Modules that every vector's hash is of. Any other counts where a kernel of it runs: it may change without all files.
_HASHED = ("arithmetic", "convolution", "gates", "norms", "recurrence", "rules")

# A poisoned element of the arithmetic's own type: the file's poison does not survive a conversion for certain.
_MARKS = {np.dtype(np.float64): 0x7FF8 << 48 | POISON, np.dtype(np.float32): POISON}


def knows(case: GoldenCase) -> bool:
    """Whether every kernel of the case has a formula here."""
    return all(entry in KERNELS for entry in case.kernels)


def run(
    case: GoldenCase, which: Run | None = None, *, rules: Rules | None = None, dtype: type = np.float64
) -> dict[str, Array]:
    """Every buffer after a run of the case (the first, or `which`), in the buffers' own types, the file's rows only.

    `rules` are the contract's unless a mistake is asked for. `dtype` float32 restates the kernels' own roundings, all
    but those inside exp and log1p. Raises CaseError for a kernel without a formula, and for launches that do not fit
    their buffers.
    """
    rules = rules or Rules(dict(case.meta.conventions))
    formulas = {entry: functools.partial(_with_rules, formula, rules) for entry, (formula, _) in KERNELS.items()}
    memory = execute(case, which, formulas, dtype)
    with np.errstate(all="ignore"):
        return {name: _narrowed(memory[name], buffer) for name, buffer in case.meta.buffers.items()}


def execute(
    case: GoldenCase, which: Run | None, formulas: Mapping[str, Callable[[Bound], None]], dtype: type = np.float64
) -> dict[str, Array]:
    """Every buffer, flat and in `dtype`, after a run by these formulas, each called with a launch's arguments.

    Raises CaseError for a kernel that has none.
    """
    chosen = which or case.meta.runs[0]
    memory = {name: _widened(case.stored_image(name), np.dtype(dtype)) for name in case.meta.buffers}
    with np.errstate(all="ignore"):
        for launch in chosen.launches:
            if launch.entry not in formulas:
                raise CaseError(f"no formula is known for {launch.entry}", path=case.path)
            formulas[launch.entry](Bound(launch, KERNELS[launch.entry][1], memory))
    return memory


def _with_rules(formula: Kernel, rules: Rules, launch: Bound) -> None:
    formula(launch, rules)


def _widened(image: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(invalid="ignore"):
        flat = image.reshape(-1).astype(dtype)
    unsigned = f"<u{dtype.itemsize}"
    flat.view(unsigned)[is_poison(image).reshape(-1)] = _MARKS[dtype]
    return flat


def _narrowed(flat: Array, buffer: Buffer) -> Array:
    kept = flat.view(f"<u{flat.dtype.itemsize}") == _MARKS[flat.dtype]
    image = flat.astype(buffer.dtype)
    image[kept] = poisoned((1,), buffer.dtype)[0]
    return image.reshape(buffer.stored_shape)


def reference_hash(entries: Iterable[str] = ()) -> str:
    """SHA-256 of the formulas, without comments, docstrings and blanks: what a vector of these kernels was made by."""
    homes = {KERNELS[entry][0].__module__.rpartition(".")[2] for entry in entries}
    return _hash_of((*_HASHED, *sorted(homes.difference(_HASHED))))


@functools.cache
def _hash_of(modules: tuple[str, ...]) -> str:
    import hashlib

    digest = hashlib.sha256()
    for name in modules:
        text = resources.files(__name__).joinpath(f"{name}.py").read_text("utf-8")
        digest.update(" ".join([name, *_program(text)]).encode())
    return digest.hexdigest()


def _program(text: str) -> list[str]:
    """The tokens that do something. No f-strings there: Python 3.12 cuts them otherwise than 3.11."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    words, starts = [], True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and starts:
            continue
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            starts = True
        if token.type not in skipped:
            words.append(token.string)
            starts = False
    return words
