"""A script that writes a vector for another kernel: parameters filled in, the formula left to its author."""

from __future__ import annotations

from collections.abc import Sequence

# PTX type of a parameter -> type of an argument. A 64-bit integer is an address as a rule: pointers have no type of
# their own in PTX that compilers before CUDA 12 write.
_SCALARS = {"f32": "float32", "f64": "float64", "u32": "int32", "s32": "int32", "b32": "int32", "s64": "int64"}

_TEMPLATE = '''"""Writes golden/{entry}/small.npz: what {entry} must compute. Needs NumPy alone.

Edit the lines marked EDIT: sizes, inputs, which buffers are outputs, and above all the formula.
"""

import json
from pathlib import Path

import numpy as np

n = 1000  # EDIT: sizes, small and odd: a last block that is partly filled finds more
random = np.random.default_rng(1)

# EDIT: the buffers that are there before the launch, with the names of their axes.
given = {{
{given}}}
# The kernel reads float32, so what is given is rounded first: the formula is of those numbers, in float64.
given = {{name: np.ascontiguousarray(array, np.float32) for name, array in given.items()}}
exact = {{name: array.astype(np.float64) for name, array in given.items()}}

# EDIT: what the kernel must compute, of `exact`, from its contract and not from its source.
expected = {{
{expected}}}

launch = {{
    "entry": "{entry}",
    "grid": [-(-n // 256), 1, 1],  # EDIT
    "block": [256, 1, 1],  # EDIT
    "shared_bytes": 0,  # dynamic shared memory
    "args": [
{args}    ],
}}

buffers = {{}}
for name, array in given.items():
    # "unchanged" is checked bit for bit. A buffer that is read and written: "after": "expected" with a policy.
    buffers[name] = {{"shape": array.shape, "axes": ["i"], "before": "given", "after": "unchanged"}}
for name, array in expected.items():
    # Policies: recurrence, convolution, norm, elementwise, exact, or one of your own under "policies".
    output = {{"shape": array.shape, "axes": ["i"], "before": "poison", "after": "expected", "policy": "elementwise"}}
    buffers[name] = buffers.get(name, {{}}) | output | ({{"before": "given"}} if name in given else {{}})

case = {{
    "format": "ssmtool-golden-1",
    "name": "{entry}/small",
    "title": "EDIT: what this case is there for",
    "contract": "1",
    "buffers": buffers,
    "runs": [{{"name": "{entry}", "launches": [launch]}}],
    "provenance": {{"note": "written by " + Path(__file__).name}},
}}
arrays = {{"case": np.frombuffer(json.dumps(case).encode(), np.uint8)}}
arrays |= {{f"before.{{name}}": array for name, array in given.items()}}
arrays |= {{f"after.{{name}}": np.asarray(array, np.float64).astype(np.float32) for name, array in expected.items()}}
path = Path("golden") / (case["name"] + ".npz")
path.parent.mkdir(parents=True, exist_ok=True)
np.savez(path, **arrays)
print(f"wrote {{path}}; now: ssmtool golden check {{path}}")
'''


def script(entry: str, parameters: Sequence[tuple[str, str]]) -> str:
    """A Python script for the kernel; `parameters` are (name, PTX type), in order.

    Without parameters it has an output `y` and an input `x`. It runs as it is, and expects zeros of the first buffer.
    """
    known = list(parameters) or [("y", "u64"), ("x", "u64"), ("n", "u32")]
    pointers = [name for name, kind in known if kind not in _SCALARS]
    output, inputs = (pointers[0] if pointers else "y"), pointers[1:]
    given = "".join(f'    "{name}": random.standard_normal(n),\n' for name in inputs)
    args = []
    for name, kind in known:
        if kind in _SCALARS:
            # A float argument is rounded to its type as well, and the formula needs it so.
            value = {"float32": "float(np.float32(1.0))", "float64": "1.0"}.get(_SCALARS[kind], "n")
            args.append(f'        {{"name": "{name}", "type": "{_SCALARS[kind]}", "value": {value}}},  # EDIT\n')
        else:
            args.append(f'        {{"name": "{name}", "buffer": "{name}"}},\n')
    return _TEMPLATE.format(
        entry=entry, given=given, expected=f'    "{output}": np.zeros(n),\n', args="".join(args)
    )  # fmt: skip
