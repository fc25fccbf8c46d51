"""Run all 15 kernels of the checked-in header on several devices and compare every output bit by bit.

    python tools/device/compare_kernels.py OUT.json cpu,cuda-bindings:0,ctypes:0 [quick]

The first device is what the others are compared with. Inputs are normal numbers, and once more with infinities, NaNs,
subnormals and large numbers among them. Prints a table by kernel, outputs that the executor labels exact apart from
those that rest on a model of ex2; exit code 1 when any bit differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ssmtool.audit.inputs import read_input  # noqa: E402
from ssmtool.device import Comparison, Launch, compare_devices, open_devices  # noqa: E402
from ssmtool.files import write_atomic  # noqa: E402

Array = NDArray[Any]
# (v-heads, k-heads, S, positions or slots)
SHAPES = ((32, 16, 128, 7), (4, 2, 128, 17), (4, 2, 64, 3), (6, 3, 32, 2), (2, 1, 16, 1))
QUICK = SHAPES[1:3]
ODD = (np.nan, np.inf, -np.inf, 1e-40, -1e-42, 3e38, -0.0, 88.5, -104.0)


class Inputs:
    """Buffers of normal numbers; `wild` ones hold every kind of odd number as well."""

    def __init__(self, seed: int, wild: bool) -> None:
        self._generator = np.random.default_rng(seed)
        self._wild = wild

    def __call__(self, *shape: int, scale: float = 1.0) -> Array:
        """An input of a shape."""
        array = (self._generator.standard_normal(shape) * scale).astype(np.float32)
        if self._wild and array.size:
            flat = array.reshape(-1)
            places = self._generator.integers(0, flat.size, max(1, flat.size // 97))
            flat[places] = np.resize(np.array(ODD, np.float32), places.size)
        return array

    @staticmethod
    def out(*shape: int) -> Array:
        """An output, poisoned: an element that is not written stays this NaN."""
        return np.full(shape, 0x7FC0BEEF, np.uint32).view(np.float32)


def recurrences(x: Inputs, heads: int, size: int, n: int) -> Iterator[Launch]:
    """Kernels 1, 8, 9, 10, 12, 13."""
    scale = float(np.float32(size) ** np.float32(-0.5))
    wide = heads * size
    state, q, k, v = x(heads * size * size), x(n, wide, scale=0.1), x(n, wide, scale=0.1), x(n, wide)
    g, beta = -np.abs(x(n, heads)), np.abs(x(n, heads, scale=0.3))
    one = [state, q[0], k[0], v[0], g[0], beta[0], x.out(wide), size, scale]
    yield Launch("fc_ssm_recurrence", (size, heads), size, one, 4 * size)
    for name, grid, block, shared in (
        ("fc_ssm_recurrence_seq", (size, heads), size, 4 * size),
        ("fc_ssm_recurrence_seq_unroll128", (size, heads), size, 4 * size),
        ("fc_ssm_recurrence_seq_warp", (max(size // 4, 1), heads), 128, 8 * n),
    ):
        snaps = x.out(n, heads * size * size)
        args = [state, q, k, v, g, beta, x.out(n, wide), size, heads, n, scale, snaps]
        yield Launch(name, grid, block, args, shared)
        yield Launch(name, grid, block, [*args[:-1], None], shared)
    slots = x(n, heads * size * size)
    for name, floats in (("fc_ssm_recurrence_slots", 1), ("fc_ssm_recurrence_slots_2pass", 3)):
        args = [slots, q, k, v, g, beta, x.out(n, wide), size, heads, scale]
        yield Launch(name, (size, heads, n), size, args, 4 * size * floats)


def convolutions(x: Inputs, heads: int, groups: int, size: int, n: int) -> Iterator[Launch]:
    """Kernels 2, 7, 11, for every length of the convolution."""
    wide = (heads + 2 * groups) * size
    blocks = -(-wide // 256)
    for taps in (4, 3, 2, 1):
        qkv, weight, history = x(n, wide), x(wide, taps), x(wide, taps - 1)
        yield Launch("fc_ssm_conv1d_silu", blocks, 256, [qkv[0], weight, history, x.out(wide), wide, taps])
        seq = [qkv, weight, history, x.out(n, wide), wide, taps, n]
        yield Launch("fc_ssm_conv1d_silu_seq", blocks, 256, [*seq, x.out(n, wide, taps - 1)])
        yield Launch("fc_ssm_conv1d_silu_seq", blocks, 256, [*seq, None])
        slots = [qkv, weight, x(n, wide, taps - 1), x.out(n, wide), wide, taps]
        yield Launch("fc_ssm_conv1d_silu_slots", (blocks, n), 256, slots)


def others(x: Inputs, heads: int, groups: int, size: int, n: int) -> Iterator[Launch]:
    """Kernels 3, 4, 5, 6, 14, 15."""
    wide, keys = heads * size, groups * size
    for block in {size, 256}:
        args = [x(wide), x(size), x(wide), x.out(wide), size, 1e-6]
        yield Launch("fc_ssm_gated_norm", heads, block, args, 4 * block)
    count = n * heads
    yield Launch("fc_sigmoid", -(-count // 256), 256, [x(count, scale=20.0), count])
    gate = [x(heads, scale=8.0), x(heads), -np.abs(x(heads)), x.out(heads), heads]
    yield Launch("fc_ssm_decay_gate", -(-heads // 256), 256, gate)
    gates = [x(count, scale=8.0), x(heads), -np.abs(x(heads)), x.out(count), heads, count]
    yield Launch("fc_ssm_decay_gate_nx", -(-count // 256), 256, gates)
    repeat = heads // groups
    qk = [x(2 * keys + wide, scale=1e-3), x.out(wide), x.out(wide), groups, repeat, size, keys, 1e-6]
    yield Launch("fc_ssm_qknorm_gqa", groups, size, qk, 8 * size)
    outs = [x.out(n, wide) for _ in range(3)]
    args = [x(n, 2 * keys + wide), *outs, groups, repeat, size, keys, wide, 1e-6]
    yield Launch("fc_ssm_qknorm_gqa_nx", (groups, n), size, args, 8 * size)


def launches(quick: bool) -> Iterator[tuple[str, Launch]]:
    """(shape, launch) of all."""
    for wild in (False, True):
        for heads, groups, size, n in QUICK if quick else SHAPES:
            x = Inputs(heads * 1000 + size, wild)
            called = f"{heads}x{groups} heads, S={size}, n={n}{', odd numbers' if wild else ''}"
            for launch in (
                *recurrences(x, heads, size, n),
                *convolutions(x, heads, groups, size, n),
                *others(x, heads, groups, size, n),
            ):
                yield called, launch


def main(out: Path, spec: str, quick: bool) -> int:
    """Compare, print, write; the exit code."""
    (text, *_) = read_input(str(ROOT / "generated" / "fc_cuda_ptx.h"))
    rows: dict[tuple[str, str], list[int]] = {}
    details: list[dict[str, Any]] = []
    every: list[list[Any]] = []
    with open_devices(spec) as devices:
        names = [str(each) for each in devices]
        print(*names, sep="\n")
        shapes, chosen = zip(*launches(quick), strict=True)
        found = compare_devices(text.module, chosen, devices, parameters=text.parameters)
    for shape, comparison in zip(shapes, found, strict=True):
        _count(shape, comparison, rows, details, every)
    print(f"{'kernel':34} {'label':44} {'outputs':>8} {'elements':>10} {'differ':>7}")
    for (kernel, label), row in sorted(rows.items()):
        print(f"{kernel:34} {label:44} {row[0]:8} {row[1]:10} {row[2]:7}")
    for each in details:
        print(each)
    report = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "devices": names,
        "header": text.module.version,
        "launches": len(found),
        "shapes": sorted(set(shapes)),
        "rows": [[*key, *row] for key, row in sorted(rows.items())],
        "different": details,
        "outputs": every,
    }
    write_atomic(out, (json.dumps(report, indent=None) + "\n").encode())
    print(f"{len(found)} launches on {len(names)} devices, {len(details)} differences or failures; wrote {out}")
    return 1 if details else 0


def _count(
    shape: str,
    comparison: Comparison,
    rows: dict[tuple[str, str], list[int]],
    details: list[dict[str, Any]],
    every: list[list[Any]],
) -> None:
    entry = comparison.launch.entry
    for device, error in comparison.failures.items():
        details.append({"kernel": entry, "shape": shape, "device": device, "failure": str(error)})
    for device, outputs in comparison.outputs.items():
        for output in outputs:
            written = comparison.written is None or output.buffer in comparison.written
            label = (output.evidence or "no label") if written else "input, not written"
            row = rows.setdefault((entry, label), [0, 0, 0])
            row[0] += 1
            row[1] += output.elements
            differ = output.difference.count if output.difference else 0
            every.append([entry, shape, device, output.buffer, label, output.elements, differ])
            if output.difference is not None:
                row[2] += output.difference.count
                told = {"kernel": entry, "shape": shape, "device": device, "buffer": output.buffer, "label": label}
                details.append({**told, "difference": repr(output.difference)})


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], len(sys.argv) > 3))
