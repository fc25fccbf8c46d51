"""Writes golden/vec_softmax/small.npz: what vec_softmax must compute. Needs NumPy alone.

From `ssmtool golden new`, with sizes, inputs and the formula filled in. Run it in the project's folder.
"""

import json
from pathlib import Path

import numpy as np

rows, columns = 7, 45  # more columns than lanes, and no multiple of them
random = np.random.default_rng(1)

# The buffers that are there before the launch, with the names of their axes.
given = {
    # Up to about 90: exp alone would overflow.
    "x": (30 * random.standard_normal((rows, columns))).astype(np.float32),
}

x = given["x"].astype(np.float64)
power = np.exp(x - x.max(axis=1, keepdims=True))

# What the kernel must compute, in float64, from its contract and not from its source.
expected = {
    "x": power / power.sum(axis=1, keepdims=True),
}

launch = {
    "entry": "vec_softmax",
    "grid": [rows, 1, 1],
    "block": [32, 1, 1],
    "args": [
        {"name": "x", "buffer": "x"},
        {"name": "columns", "type": "int32", "value": columns},
    ],
}

buffers = {}
for name, array in given.items():
    # "unchanged" is checked bit for bit. A buffer that is read and written: "after": "expected" with a policy.
    buffers[name] = {"shape": array.shape, "axes": ["row", "i"][-array.ndim :], "before": "given", "after": "unchanged"}
for name, array in expected.items():
    # A small exponent is as far off as the largest one in absolute terms: each row is judged as a whole.
    output = {
        "shape": array.shape,
        "axes": ["row", "i"][-array.ndim :],
        "before": "poison",
        "after": "expected",
        "policy": "softmax",
        "group": ["row"],
    }
    buffers[name] = buffers.get(name, {}) | output | ({"before": "given"} if name in given else {})

case = {
    "format": "ssmtool-golden-1",
    "name": "vec_softmax/small",
    "title": "large values: exp alone would overflow",
    "contract": "1",
    "policies": {"softmax": {"nmse": 1e-12, "max_rms": 1e-5}},
    "buffers": buffers,
    "runs": [{"name": "vec_softmax", "launches": [launch]}],
    "provenance": {"note": "written by " + Path(__file__).name},
}
arrays = {"case": np.frombuffer(json.dumps(case).encode(), np.uint8)}
arrays |= {f"before.{name}": np.ascontiguousarray(array, np.float32) for name, array in given.items()}
arrays |= {f"after.{name}": np.asarray(array, np.float64).astype(np.float32) for name, array in expected.items()}
path = Path("golden") / (case["name"] + ".npz")
path.parent.mkdir(parents=True, exist_ok=True)
np.savez(path, **arrays)
print(f"wrote {path}; now: ssmtool golden check {path}")
