"""Writes golden/vec_axpy/small.npz: what vec_axpy must compute. Needs NumPy alone.

From `ssmtool golden new`, with sizes, inputs and the formula filled in. Run it in the project's folder.
"""

import json
from pathlib import Path

import numpy as np

n, a = 1000, 2.5  # the last block is partly filled
random = np.random.default_rng(1)

# The buffers that are there before the launch, with the names of their axes.
given = {
    "y": random.standard_normal(n).astype(np.float32),
    "x": random.standard_normal(n).astype(np.float32),
}

# What the kernel must compute, in float64, from its contract and not from its source.
expected = {
    "y": a * given["x"].astype(np.float64) + given["y"],
}

launch = {
    "entry": "vec_axpy",
    "grid": [-(-n // 256), 1, 1],
    "block": [256, 1, 1],
    "shared_bytes": 0,  # dynamic shared memory
    "args": [
        {"name": "y", "buffer": "y"},
        {"name": "x", "buffer": "x"},
        {"name": "a", "type": "float32", "value": a},
        {"name": "n", "type": "int32", "value": n},
    ],
}

buffers = {}
for name, array in given.items():
    # "unchanged" is checked bit for bit. A buffer that is read and written: "after": "expected" with a policy.
    buffers[name] = {"shape": array.shape, "axes": ["i"], "before": "given", "after": "unchanged"}
for name, array in expected.items():
    output = {"shape": array.shape, "axes": ["i"], "before": "poison", "after": "expected", "policy": "elementwise"}
    buffers[name] = buffers.get(name, {}) | output | ({"before": "given"} if name in given else {})

case = {
    "format": "ssmtool-golden-1",
    "name": "vec_axpy/small",
    "title": "y = a*x + y in place, the last block partly filled",
    "contract": "1",
    "buffers": buffers,
    "runs": [{"name": "vec_axpy", "launches": [launch]}],
    "provenance": {"note": "written by " + Path(__file__).name},
}
arrays = {"case": np.frombuffer(json.dumps(case).encode(), np.uint8)}
arrays |= {f"before.{name}": np.ascontiguousarray(array, np.float32) for name, array in given.items()}
arrays |= {f"after.{name}": np.asarray(array, np.float64).astype(np.float32) for name, array in expected.items()}
path = Path("golden") / (case["name"] + ".npz")
path.parent.mkdir(parents=True, exist_ok=True)
np.savez(path, **arrays)
print(f"wrote {path}; now: ssmtool golden check {path}")
