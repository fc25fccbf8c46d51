"""A script that writes a vector for another kernel: parameters filled in, the formula left to its author."""

from __future__ import annotations

from collections.abc import Sequence

from ssmtool.golden.signature import Parameter

# Without parameters: an output, an input and a length.
PLACEHOLDER = (
    Parameter("y", "float32", buffer=True, stored=True, sure=False),
    Parameter("x", "float32", buffer=True, loaded=True, sure=False),
    Parameter("n", "int32", sure=False),
)

_TEMPLATE = '''"""Writes golden/{entry}/small.npz: what {entry} must compute. Needs NumPy alone.

Edit the lines marked EDIT: sizes, inputs, which buffers are outputs, and above all the formula.
"""

import json
from pathlib import Path

import numpy as np

title = "EDIT: what this case is there for"
n = 1000  # EDIT: sizes, small and odd: a last block that is partly filled finds more
random = np.random.default_rng(1)

# Types of the buffers' elements.
dtypes = {{
{dtypes}}}
# EDIT: the buffers that are there before the launch, with the names of their axes.
given = {{
{given}}}
# The kernel reads rounded numbers, so what is given is rounded first: the formula is of those, in float64.
given = {{name: np.ascontiguousarray(array, dtypes[name]) for name, array in given.items()}}
exact = {{name: array.astype(np.float64 if array.dtype.kind == "f" else np.int64) for name, array in given.items()}}

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

# How far a result may be off, by buffer; see docs/vectors.md. One with less than `elementwise` and `exact` says why.
#   elementwise   8 ulp for each element: a formula of one element. Integers: exact
#   norm          16 ulp for each element: one norm, then products
#   convolution   NMSE 1e-12 and 1e-5 of the RMS: sums of a handful of products
#   recurrence    NMSE 1e-11 and 1e-4 of the RMS: long sums, whose order is free
#   exact         the bits: copies
# A sum whose terms cancel is many ulp off and right: give reductions a policy of sums, or one of your own such as
#   policies = {{"reduction": {{"nmse": 1e-12, "max_rms": 1e-5}}}}
policies = {{}}
policy = {{
{policy}}}

buffers = {{}}
for name, array in given.items():
    # "unchanged" is checked bit for bit. A buffer that is read and written stands in `expected` as well.
    buffers[name] = {{"shape": array.shape, "axes": ["i"], "before": "given", "after": "unchanged"}}
for name, array in expected.items():
    output = {{"shape": array.shape, "axes": ["i"], "before": "poison", "after": "expected", "policy": policy[name]}}
    buffers[name] = buffers.get(name, {{}}) | output | ({{"before": "given"}} if name in given else {{}})
for name, buffer in buffers.items():
    buffer["dtype"] = dtypes[name]

case = {{
    "format": "ssmtool-golden-1",
    "name": "{entry}/small",
    "title": title,
    "contract": "1",
    "buffers": buffers,
    "policies": policies,
    "runs": [{{"name": "{entry}", "launches": [launch]}}],
    "provenance": {{"note": "written by " + Path(__file__).name}},
}}
if title.startswith("EDIT"):
    raise SystemExit(f"{{__file__}}: nothing is written: its title and formula are still those of the template (EDIT)")
arrays = {{"case": np.frombuffer(json.dumps(case).encode(), np.uint8)}}
arrays |= {{f"before.{{name}}": array for name, array in given.items()}}
for name, array in expected.items():
    arrays[f"after.{{name}}"] = rounded = np.asarray(array).astype(dtypes[name])
    if rounded.dtype.kind in "iu" and not np.array_equal(rounded, array):
        raise SystemExit(f"expected {{name!r}}: not all are numbers of {{dtypes[name]}}: round and clip them")
path = Path("golden") / (case["name"] + ".npz")
path.parent.mkdir(parents=True, exist_ok=True)
np.savez(path, **arrays)
print(f"wrote {{path}}; now: ssmtool golden check {{path}}")
'''

_DRAWN = {
    "float16": "random.standard_normal(n)",
    "float32": "random.standard_normal(n)",
    "float64": "random.standard_normal(n)",
    "int8": "random.integers(-127, 128, n)",
    "uint8": "random.integers(0, 256, n)",
}


def script(entry: str, parameters: Sequence[Parameter] = PLACEHOLDER) -> str:
    """A Python script for the kernel. It writes nothing before its title is edited, and expects zeros of each output.

    Buffers that are loaded are given, those that are stored expected, so one in place is both. What is a guess is
    marked EDIT.
    """
    buffers = [each for each in parameters if each.buffer]
    outputs = [each for each in buffers if each.stored]
    return _TEMPLATE.format(
        entry=entry,
        dtypes="".join(f'    "{each.name}": "{each.dtype}",{_mark(each)}\n' for each in buffers),
        given="".join(f'    "{each.name}": {_drawn(each.dtype)},\n' for each in buffers if each.loaded),
        expected="".join(f'    "{each.name}": np.zeros(n),\n' for each in outputs),
        policy="".join(f'    "{each.name}": "{_policy(each.dtype)}",\n' for each in outputs),
        args="".join(_argument(each) for each in parameters),
    )


def _drawn(dtype: str) -> str:
    return _DRAWN.get(dtype, "random.integers(0, 100, n)")


def _policy(dtype: str) -> str:
    return "elementwise" if dtype.startswith("float") else "exact"


def _mark(each: Parameter) -> str:
    """A guess is told: what is behind a call or a typedef, neither PTX nor C shows."""
    return "" if each.sure else "  # EDIT: a guess, as is whether it is read or written"


def _argument(each: Parameter) -> str:
    if each.buffer:
        return f'        {{"name": "{each.name}", "buffer": "{each.name}"}},\n'
    # A float argument is rounded to its type as well, and the formula needs it so.
    value = {"float32": "float(np.float32(1.0))", "float64": "1.0"}.get(each.dtype, "n")
    guess = "" if each.sure else ": its type is a guess"
    return f'        {{"name": "{each.name}", "type": "{each.dtype}", "value": {value}}},  # EDIT{guess}\n'
