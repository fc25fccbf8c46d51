"""Launch shapes, the ground for occupancy and cost: the user's, and those of the 15 kernels by docs/kernels.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ssmtool.audit.names import no_entry
from ssmtool.errors import SsmtoolError
from ssmtool.project import LaunchSettings
from ssmtool.ptx import Function

_FLOAT = 4
# Block of the kernels that take one element a thread.
_FLAT = 256


# What a device of compute capability 3.0 or later launches ("Technical Specifications per Compute Capability", CUDA C
# Programming Guide): grid and block by axis, threads a block, and shared memory a block may have without opting in.
_GRID_LIMITS = (2**31 - 1, 65_535, 65_535)
_BLOCK_LIMITS = (1024, 1024, 64)
_THREADS = 1024
_SHARED = 48 * 1024

_SIZES = r"\d+(?:,\d+){0,2}"
_FORM = re.compile(rf"\s*(?P<kernel>\S+)=(?P<grid>{_SIZES})/(?P<block>{_SIZES})(?:/(?P<shared>\d+))?\s*", re.ASCII)
_EXAMPLE = "--launch my_kernel=128,32/256/1024 for a grid of 128 x 32, 256 threads a block, 1024 shared bytes"

Sizes = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel's launch: `grid` in blocks and `block` in threads (x, y, z), dynamic shared bytes.

    `kernel` may be a shell pattern in a launch that the user gave. An `optional` one may fit nothing: settings speak of
    the project's kernels, not of any file that is audited.
    """

    kernel: str
    grid: Sizes
    block: Sizes
    dynamic_shared_bytes: int = 0
    optional: bool = False

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def threads(self) -> int:
        """Threads in a block."""
        x, y, z = self.block
        return x * y * z


def parse_launch(text: str) -> Launch:
    """The launch of one `--launch KERNEL=GRID/BLOCK[/SHARED]`. Raises SsmtoolError for another form or size."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise SsmtoolError(f'"{text}" is not of the form KERNEL=X[,Y[,Z]]/X[,Y[,Z]][/SHARED]', hint=_EXAMPLE)

    def sizes(part: str) -> list[int]:
        # More digits than any size has: cut, so that what int() refuses is refused here as too large.
        return [int(size[:20]) for size in match[part].split(",")]

    return _checked(match["kernel"], sizes("grid"), sizes("block"), int((match["shared"] or "0")[:20]))


def settings_launches(settings: Iterable[LaunchSettings], *, optional: bool) -> list[Launch]:
    """The launches of `[[tool.ssmtool.launch]]`. Raises SsmtoolError for sizes that no device launches."""

    def sizes(given: int | tuple[int, ...]) -> Sequence[int]:
        return (given,) if isinstance(given, int) else given

    return [
        replace(_checked(each.kernel, sizes(each.grid), sizes(each.block), each.shared), optional=optional)
        for each in settings
    ]


def _checked(kernel: str, grid: Sequence[int], block: Sequence[int], shared: int) -> Launch:
    for what, sizes, limits in (("grid", grid, _GRID_LIMITS), ("block", block, _BLOCK_LIMITS)):
        if not 1 <= len(sizes) <= 3:
            raise SsmtoolError(f"launch of {kernel}: a {what} has 1 to 3 sizes, not {len(sizes)}")
        for axis, size, limit in zip("xyz", sizes, limits, strict=False):
            if not 1 <= size <= limit:
                raise SsmtoolError(f"launch of {kernel}: {what} size {axis} is {size}; it may be 1 to {limit}")
    launch = Launch(kernel, _three(grid), _three(block), shared)
    if launch.threads > _THREADS:
        raise SsmtoolError(f"launch of {kernel}: {launch.threads} threads a block; at most {_THREADS} can be launched")
    if not 0 <= shared <= _SHARED:
        raise SsmtoolError(f"launch of {kernel}: {shared} shared bytes; a block may have 0 to {_SHARED}")
    return launch


def _three(sizes: Sequence[int]) -> Sizes:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def launches_of(entries: Iterable[Function], given: Sequence[Launch]) -> dict[str, Launch]:
    """Entry name -> its launch: the last one given that fits its name, else the contract's.

    Raises SsmtoolError for a launch that fits no entry, and for a block that the kernel's own `.reqntid` or `.maxntid`
    forbids.
    """
    functions = {function.name: function for function in entries}
    known = (*contract_launches(), *fast_launches())
    found = {launch.kernel: launch for launch in known if launch.kernel in functions}
    for launch in given:
        names = [name for name in functions if fnmatchcase(name, launch.kernel)]
        if not names and not launch.optional:
            raise SsmtoolError(f"launch of {launch.kernel}: {no_entry(launch.kernel, functions)}")
        for name in names:
            _fits(functions[name], launch)
            found[name] = replace(launch, kernel=name)
    return found


def _fits(function: Function, launch: Launch) -> None:
    """Raise when the kernel's own directives forbid the block."""
    shown = " x ".join(map(str, launch.block))
    required = function.directive("reqntid")
    if required is not None and required.numbers and _three(required.numbers) != launch.block:
        wanted = " x ".join(map(str, _three(required.numbers)))
        raise SsmtoolError(f"launch of {function.name}: a block of {shown}, but .reqntid wants {wanted}")
    most = function.directive("maxntid")
    if most is not None and most.numbers:
        limit = math.prod(most.numbers)
        if launch.threads > limit:
            raise SsmtoolError(f"launch of {function.name}: {launch.threads} threads a block, .maxntid allows {limit}")


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
        Launch("fc_ssm_recurrence", (size, heads, 1), (size, 1, 1), row),
        Launch("fc_ssm_conv1d_silu", (channels, 1, 1), (_FLAT, 1, 1)),
        Launch("fc_ssm_gated_norm", (heads, 1, 1), (_FLAT, 1, 1), _FLAT * _FLOAT),
        Launch("fc_sigmoid", (_ceil(heads, _FLAT), 1, 1), (_FLAT, 1, 1)),
        Launch("fc_ssm_decay_gate", (_ceil(heads, _FLAT), 1, 1), (_FLAT, 1, 1)),
        Launch("fc_ssm_qknorm_gqa", (n_k_heads, 1, 1), (size, 1, 1), 2 * row),
        Launch("fc_ssm_conv1d_silu_seq", (channels, 1, 1), (_FLAT, 1, 1)),
        Launch("fc_ssm_recurrence_seq", (size, heads, 1), (size, 1, 1), row),
        Launch("fc_ssm_recurrence_seq_unroll128", (size, heads, 1), (128, 1, 1), 128 * _FLOAT),
        Launch("fc_ssm_recurrence_seq_warp", (_ceil(size, 4), heads, 1), (128, 1, 1), 2 * positions * _FLOAT),
        Launch("fc_ssm_conv1d_silu_slots", (channels, slots, 1), (_FLAT, 1, 1)),
        Launch("fc_ssm_recurrence_slots", (size, heads, slots), (size, 1, 1), row),
        Launch("fc_ssm_recurrence_slots_2pass", (size, heads, slots), (size, 1, 1), 3 * row),
        Launch("fc_ssm_decay_gate_nx", (_ceil(heads * positions, _FLAT), 1, 1), (_FLAT, 1, 1)),
        Launch("fc_ssm_qknorm_gqa_nx", (n_k_heads, positions, 1), (size, 1, 1), 2 * row),
    )


def fast_launches(*, n_v_heads: int = 32, n_k_heads: int = 16, slots: int = 64) -> tuple[Launch, ...]:
    """The launches of the fast kernels (docs/kernels.md, 16 to 18) for a decode step of `slots` users; S is 128."""
    parts = 2 + 2 * (n_v_heads // n_k_heads)
    return (
        Launch("fc_ssm_recurrence_slots_warp", (16, n_v_heads, slots), (32, 1, 1)),
        Launch("fc_ssm_recurrence_seq_warp_multi", (4, n_v_heads, 1), (128, 1, 1)),
        Launch("fc_ssm_decode_step", (n_k_heads, slots, 1), (512, 1, 1), parts * 128 * _FLOAT),
    )


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)
