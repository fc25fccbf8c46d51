"""The launch shapes of the 15 kernels, as docs/kernels.md has them: the ground for occupancy and cost."""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT = 4
# Block of the kernels that take one element a thread.
_FLAT = 256


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel's launch: `grid` in blocks (x, y, z), `block` in threads (one dimension), dynamic shared bytes."""

    kernel: str
    grid: tuple[int, int, int]
    block: int
    dynamic_shared_bytes: int = 0

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        x, y, z = self.grid
        return x * y * z


def contract_launches(
    *, n_v_heads: int = 32, n_k_heads: int = 16, state_size: int = 128, positions: int = 128, slots: int = 64
) -> tuple[Launch, ...]:
    """The 15 launches, in the loader's order, for a prefill of `positions` and a decode step of `slots` users.

    Kernel 3 may have 256 or `state_size` threads a block; the larger is listed. Kernels 9 and 10 do their work only at
    `state_size` 128. The defaults are the reference shape.
    """
    heads, size = n_v_heads, state_size
    channels = _ceil((2 * n_k_heads + n_v_heads) * size, _FLAT)
    row = size * _FLOAT
    return (
        Launch("fc_ssm_recurrence", (size, heads, 1), size, row),
        Launch("fc_ssm_conv1d_silu", (channels, 1, 1), _FLAT),
        Launch("fc_ssm_gated_norm", (heads, 1, 1), _FLAT, _FLAT * _FLOAT),
        Launch("fc_sigmoid", (_ceil(heads, _FLAT), 1, 1), _FLAT),
        Launch("fc_ssm_decay_gate", (_ceil(heads, _FLAT), 1, 1), _FLAT),
        Launch("fc_ssm_qknorm_gqa", (n_k_heads, 1, 1), size, 2 * row),
        Launch("fc_ssm_conv1d_silu_seq", (channels, 1, 1), _FLAT),
        Launch("fc_ssm_recurrence_seq", (size, heads, 1), size, row),
        Launch("fc_ssm_recurrence_seq_unroll128", (size, heads, 1), 128, 128 * _FLOAT),
        Launch("fc_ssm_recurrence_seq_warp", (_ceil(size, 4), heads, 1), 128, 2 * positions * _FLOAT),
        Launch("fc_ssm_conv1d_silu_slots", (channels, slots, 1), _FLAT),
        Launch("fc_ssm_recurrence_slots", (size, heads, slots), size, row),
        Launch("fc_ssm_recurrence_slots_2pass", (size, heads, slots), size, 3 * row),
        Launch("fc_ssm_decay_gate_nx", (_ceil(heads * positions, _FLAT), 1, 1), _FLAT),
        Launch("fc_ssm_qknorm_gqa_nx", (n_k_heads, positions, 1), size, 2 * row),
    )


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)
