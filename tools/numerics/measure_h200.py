"""Record what an NVIDIA card answers: every scalar instruction form on edge inputs, and its approximation units.

Run on a machine with a driver that still takes sm_37 PTX, CuPy and NumPy:

    python tools/numerics/measure_h200.py OUT_FOLDER

Writes `silicon_h200.npz`, `units_h200.npz` and `edges_h200.npz`, described in tests/execute/numerics/measured/
README.md. Nothing here decides what is right: the files are evidence, tables and tests are made from them elsewhere.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from execute.numerics.measured import STRIDE, THINNED

from ssmtool.probe.inputs import CASES, inputs, pairs
from ssmtool.probe.variants import Variant, register, variants

HEADER = ".version 7.4\n.target sm_37\n.address_size 64\n"
SWEEPS = {
    "ex2": (0x3F800000, 0xBF800000),
    "rcp": (0x3F800000,),
    "rsqrt": (0x3F800000, 0x40000000),
    "sqrt": (0x3F800000, 0x40000000),
    "lg2": (0x3F800000, 0x40000000, 0x3F000000),
    "sin": (0x3F800000,),
    "cos": (0x3F000000, 0x3F800000),
}
OPS = [f"{unit}.approx{ftz}.f32" for unit in SWEEPS for ftz in (".ftz", "")]
OPS64 = ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"]
DIVISIONS = ["div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32"]
PAIRS = 8192


def key(op: str) -> str:
    """An opcode as an array's name."""
    return op.replace(".", "_")


def kernel(name: str, v: Variant) -> str:
    """One entry that applies `v` to row %tid of its three 64-bit operand arrays."""
    text = v.text
    lines = [f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po) {{"]
    lines += [".reg .b32 i; .reg .b64 base, off;", "mov.u32 i, %tid.x; mul.wide.u32 off, i, 8;"]
    for place, kind in zip("abc", v.operands, strict=False):
        r = "." + register(kind)
        lines += [f".reg {r} o{place}; ld.param.u64 base, [p{place}]; add.u64 base, base, off;"]
        lines += [f"ld.global{r} o{place}, [base];"]
        text = text.replace("%" + place, "o" + place)
    r = "." + register(v.result)
    lines += [f".reg {r} res; mov{r} res, 0;" if r != ".b16" else ".reg .b16 res; mov.b16 res, 0;"]
    lines += ["{", text.replace("%d", "res"), "}"]
    lines += [f"ld.param.u64 base, [po]; add.u64 base, base, off; st.global{r} [base], res;", "ret; }"]
    return "\n".join(lines)


def load(text: str) -> Any:
    """A loaded module of PTX text."""
    from cupy.cuda import function

    module = function.Module()
    module.load(text.encode())
    return module


def silicon() -> dict[str, np.ndarray]:
    """Run every form; rejected ones are listed by name."""
    import cupy as cp

    forms = variants()
    device = {}
    results: dict[str, np.ndarray] = {}
    rejected: list[str] = []

    def operand(kind: str, position: int) -> Any:
        if (kind, position) not in device:
            device[kind, position] = cp.asarray(inputs(kind, position))
        return device[kind, position]

    def run(module: Any, index: int, v: Variant) -> None:
        out = cp.zeros(CASES, cp.uint64)
        args = [operand(kind, i) for i, kind in enumerate(v.operands)]
        while len(args) < 3:
            args.append(args[0])
        module.get_function(f"k{index}")((1,), (CASES,), (*args, out))
        results[v.name] = cp.asnumpy(out)

    def group(members: list[tuple[int, Variant]]) -> None:
        text = HEADER + "\n".join(kernel(f"k{i}", v) for i, v in members)
        try:
            module = load(text)
        except Exception as error:  # the driver's refusal is the datum here
            if len(members) == 1:
                rejected.append(members[0][1].name)
                if len(rejected) <= 40:
                    print("rejected", members[0][1].name, str(error)[:90])
                return
            half = len(members) // 2
            group(members[:half])
            group(members[half:])
            return
        for i, v in members:
            run(module, i, v)

    numbered = list(enumerate(forms))
    for start in range(0, len(numbered), 128):
        group(numbered[start : start + 128])
    names = [v.name for v in forms if v.name in results]
    print(len(names), "forms ran,", len(rejected), "rejected")
    table = np.array([results[n] for n in names])
    planes = {f"byte{k}": (table >> np.uint64(8 * k)).astype(np.uint8) for k in range(8)}
    return {"names": np.array(names), "rejected": np.array(rejected), **planes}


def unit_kernel(name: str, op: str) -> str:
    """An f32 unit over first, first + step, ..."""
    return (
        f".visible .entry {name}(.param .u32 first, .param .u32 step, .param .u64 po) {{\n"
        ".reg .b32 i, n, t, s, x, y; .reg .b64 base, off;\n"
        "mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t;\n"
        "ld.param.u32 x, [first]; ld.param.u32 s, [step]; mad.lo.u32 x, i, s, x;\n"
        f"{op} y, x;\n"
        "mul.wide.u32 off, i, 4; ld.param.u64 base, [po]; add.u64 base, base, off; st.global.b32 [base], y; ret; }"
    )


def unit64_kernel(name: str, op: str) -> str:
    """The f64 units see only the high word; the low word of the input is set to all ones."""
    return (
        f".visible .entry {name}(.param .u32 first, .param .u32 step, .param .u64 po) {{\n"
        ".reg .b32 i, n, t, s, x, y; .reg .b64 base, off, v;\n"
        "mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t;\n"
        "ld.param.u32 x, [first]; ld.param.u32 s, [step]; mad.lo.u32 x, i, s, x;\n"
        f"mov.b32 y, 0xffffffff; mov.b64 v, {{y, x}}; {op} v, v;\n"
        "mul.wide.u32 off, i, 8; ld.param.u64 base, [po]; add.u64 base, base, off; st.global.b64 [base], v; ret; }"
    )


def pair_kernel(name: str, op: str) -> str:
    """A two-operand f32 instruction over arrays."""
    return (
        f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 po) {{\n"
        ".reg .b32 i, n, t, x, y; .reg .b64 base, off;\n"
        "mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t; mul.wide.u32 off, i, 4;\n"
        "ld.param.u64 base, [pa]; add.u64 base, base, off; ld.global.b32 x, [base];\n"
        "ld.param.u64 base, [pb]; add.u64 base, base, off; ld.global.b32 y, [base];\n"
        f"{op} y, x, y;\n"
        "ld.param.u64 base, [po]; add.u64 base, base, off; st.global.b32 [base], y; ret; }"
    )


def sweep(fn: Any, first: int, step: int, count: int, dtype: Any = np.uint32) -> Any:
    """Run a unit kernel over count inputs."""
    import cupy as cp

    blocks = -(-count // 256)
    out = cp.zeros(blocks * 256, dtype)
    fn((blocks,), (256,), (np.uint32(first), np.uint32(step), out))
    return cp.asnumpy(out)[:count]


def pack(values: np.ndarray) -> bytes:
    """Second differences as lzma: a tag (1 or 4 bytes each), the first two of them, the rest."""
    d = np.diff(np.diff(values.astype(np.int64), prepend=0), prepend=0)
    small = d[2:]
    if np.abs(small).max(initial=0) < 128:
        body = small.astype(np.int8).tobytes()
        tag = b"1"
    else:
        body, tag = small.astype("<i8").astype("<i4").tobytes(), b"4"
    return tag + d[:2].astype("<i8").tobytes() + lzma.compress(body, preset=4)


def unit_sweeps(folder: Path, stamp: np.ndarray, module: Any, pool: ProcessPoolExecutor) -> None:
    """Whole binades of the units, packed side by side."""
    futures = {}
    for k, unit in enumerate(SWEEPS):
        for first in SWEEPS[unit]:
            got = sweep(module.get_function(f"u{2 * k}"), first, 1, 1 << 23)
            plain = sweep(module.get_function(f"u{2 * k + 1}"), first, 1, 1 << 23)
            print(unit, hex(first), "ftz and plain differ at", int((got != plain).sum()))
            futures[f"{unit}_{first:08x}"] = pool.submit(pack, got)
    packed = {name: np.frombuffer(future.result(), np.uint8) for name, future in futures.items()}
    np.savez(folder / "units_h200.npz", stamp=stamp, **packed)


def unit_edges(folder: Path, stamp: np.ndarray, module: Any) -> None:
    """Inputs of every exponent for every unit, pairs for the divisions, high words for the f64 units."""
    import cupy as cp

    step = STRIDE * THINNED
    count = (1 << 32) // step // 16 * 16
    found = {"stamp": stamp}
    for k, op in enumerate(OPS):
        found[key(op)] = sweep(module.get_function(f"u{k}"), 0, step, count)
    x, y = (cp.asarray(v) for v in pairs(PAIRS))
    for k, op in enumerate(DIVISIONS):
        out = cp.zeros(PAIRS, cp.uint32)
        module.get_function(f"p{k}")((PAIRS // 256,), (256,), (x, y, out))
        found[key(op)] = cp.asnumpy(out)
    for k, op in enumerate(OPS64):
        found[key(op)] = sweep(module.get_function(f"w{k}"), 0, step, count, np.uint64)
        near = sweep(module.get_function(f"w{k}"), 0x3FF00000, 64, 1 << 15, np.uint64)
        found[key(op) + "_hi"] = (near >> np.uint64(32)).astype(np.uint32)
        found[key(op) + "_lo"] = near.astype(np.uint32)
    np.savez_compressed(folder / "edges_h200.npz", **found)


def main(folder: Path) -> None:
    """Sweep the units, sample the forms, write the files."""
    texts = [unit_kernel(f"u{k}", op) for k, op in enumerate(OPS)]
    texts += [unit64_kernel(f"w{k}", op) for k, op in enumerate(OPS64)]
    texts += [pair_kernel(f"p{k}", op) for k, op in enumerate(DIVISIONS)]
    module = load(HEADER + "\n".join(texts))
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    card = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    stamp = np.array([card, time.strftime("%Y-%m-%d"), "PTX 7.4, sm_37, JIT by the driver"])
    print(*stamp)
    with ProcessPoolExecutor() as pool:
        unit_sweeps(folder, stamp, module, pool)
    unit_edges(folder, stamp, module)
    np.savez_compressed(folder / "silicon_h200.npz", stamp=stamp, **silicon())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
