"""Compare a card with the NumPy model of its units over all 2^32 inputs, and record the stress cases.

    python tools/numerics/compare_h200.py OUT_FOLDER

Prints one line a unit (how many of 2^32 inputs differ) and writes them to `exhaustive.json`; writes hashes of the
answers of `stress.forms()` on `stress.stress()` inputs to `stress_h200.json`. Needs CuPy and a driver that takes
sm_37 PTX. CuPy compiles f32 arithmetic with subnormals flushed, so without .ftz the count includes the inputs whose
scaling meets a subnormal.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools" / "numerics")]

import measure_h200 as measure  # noqa: E402
from execute.numerics import unit_reference as reference  # noqa: E402

from ssmtool.probe import stress  # noqa: E402

UNITS = ("ex2", "rcp", "rsqrt", "sqrt", "lg2", "sin", "cos")
CHUNK = 1 << 25


def exhaustive() -> dict[str, Any]:
    """Count differing inputs for every unit, with and without .ftz."""
    import cupy as cp

    ops = [(u, f) for u in UNITS for f in (".ftz", "")]
    module = measure.load(
        measure.HEADER + "\n".join(measure.unit_kernel(f"u{k}", f"{u}.approx{f}.f32") for k, (u, f) in enumerate(ops))
    )
    report: dict[str, Any] = {}
    for k, (unit, ftz) in enumerate(ops):
        bare = f"mufu_{unit}" if ftz and unit not in ("sin", "cos") else unit
        model = getattr(reference, bare)
        wrong, examples, began = 0, [], time.time()
        kernel = module.get_function(f"u{k}")
        got = cp.zeros(CHUNK, cp.uint32)
        for first in range(0, 1 << 32, CHUNK):
            kernel((CHUNK // 256,), (256,), (np.uint32(first), np.uint32(1), got))
            x = cp.arange(first, first + CHUNK, dtype=cp.int64)
            want = model(cp, x)
            bad = cp.nonzero(got.astype(cp.int64) != want)[0]
            wrong += int(bad.size)
            if bad.size and len(examples) < 8:
                examples += [[hex(int(x[i])), hex(int(got[i])), hex(int(want[i]))] for i in bad[:2].tolist()]
        name = f"{unit}.approx{ftz}.f32"
        report[name] = {"inputs": 1 << 32, "different": wrong, "examples": examples}
        print(name, "different:", wrong, examples, round(time.time() - began, 1), "s", flush=True)
    return report


def record(folder: Path) -> None:
    """Run the stress forms, 256 cases a block, and keep a hash of each form's results."""
    import cupy as cp

    forms = stress.forms()
    inputs: dict[tuple[str, ...], list[Any]] = {}
    hashes = {}
    for start in range(0, len(forms), 64):
        group = forms[start : start + 64]
        texts = [measure.kernel(f"k{i}", v) for i, v in enumerate(group)]
        whole = [t.replace("mov.u32 i, %tid.x;", BLOCKED) for t in texts]
        module = measure.load(measure.HEADER + "\n".join(whole))
        for i, v in enumerate(group):
            if v.operands not in inputs:
                inputs[v.operands] = [cp.asarray(a) for a in stress.stress(v.operands)]
            args = (inputs[v.operands] * 3)[:3] if len(v.operands) < 3 else inputs[v.operands]
            out = cp.zeros(stress.CASES, cp.uint64)
            module.get_function(f"k{i}")((stress.CASES // 256,), (256,), (*args, out))
            hashes[v.name] = stress.digest(cp.asnumpy(out))
    (folder / "stress_h200.json").write_text(json.dumps({"cases": stress.CASES, "sha256": hashes}, indent=0))
    print(len(hashes), "stress forms", flush=True)


BLOCKED = ".reg .b32 blk, n; mov.u32 i, %tid.x; mov.u32 blk, %ctaid.x; mov.u32 n, %ntid.x; mad.lo.u32 i, blk, n, i;"


def main(folder: Path) -> None:
    """Stress first: it is quick, and survives a time limit."""
    record(folder)
    report = exhaustive()
    (folder / "exhaustive.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
