"""Writes golden/vec_rms_norm/small.npz: what vec_rms_norm must compute. Needs NumPy alone.

From `ssmtool golden new`, with sizes, inputs and the formula filled in. Run it in the project's folder.
"""

import json
from pathlib import Path

import numpy as np

rows, columns, eps = 5, 100, 1e-6  # fewer columns than threads, and no power of two
random = np.random.default_rng(1)

# The buffers that are there before the launch, with the names of their axes.
given = {
    "x": random.standard_normal((rows, columns)).astype(np.float32),
    "weight": random.standard_normal(columns).astype(np.float32),
}

x, weight = given["x"].astype(np.float64), given["weight"].astype(np.float64)

# What the kernel must compute, in float64, from its contract and not from its source.
expected = {
    "out": x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * weight,
}

launch = {
    "entry": "vec_rms_norm",
    "grid": [rows, 1, 1],
    "block": [64, 1, 1],
    "shared_bytes": 64 * 4,
    "args": [
        {"name": "out", "buffer": "out"},
        {"name": "x", "buffer": "x"},
        {"name": "weight", "buffer": "weight"},
        {"name": "columns", "type": "int32", "value": columns},
        {"name": "eps", "type": "float32", "value": eps},
    ],
}

buffers = {}
for name, array in given.items():
    # "unchanged" is checked bit for bit. A buffer that is read and written: "after": "expected" with a policy.
    buffers[name] = {"shape": array.shape, "axes": ["row", "i"][-array.ndim :], "before": "given", "after": "unchanged"}
for name, array in expected.items():
    output = {
        "shape": array.shape,
        "axes": ["row", "i"][-array.ndim :],
        "before": "poison",
        "after": "expected",
        "policy": "norm",
    }
    buffers[name] = buffers.get(name, {}) | output | ({"before": "given"} if name in given else {})

case = {
    "format": "ssmtool-golden-1",
    "name": "vec_rms_norm/small",
    "title": "rows that are no power of two, and a block smaller than a row",
    "contract": "1",
    "buffers": buffers,
    "runs": [{"name": "vec_rms_norm", "launches": [launch]}],
    "provenance": {"note": "written by " + Path(__file__).name},
}
arrays = {"case": np.frombuffer(json.dumps(case).encode(), np.uint8)}
arrays |= {f"before.{name}": np.ascontiguousarray(array, np.float32) for name, array in given.items()}
arrays |= {f"after.{name}": np.asarray(array, np.float64).astype(np.float32) for name, array in expected.items()}
path = Path("golden") / (case["name"] + ".npz")
path.parent.mkdir(parents=True, exist_ok=True)
np.savez(path, **arrays)
print(f"wrote {path}; now: ssmtool golden check {path}")
