"""Record what an NVIDIA card answers: every scalar instruction form on edge inputs, and its approximation units.

Run on a machine with a driver that still takes sm_37 PTX, CuPy and NumPy:

    python tools/numerics/measure_h200.py OUT_FOLDER

Writes `silicon.npz` (one row of result bits for each form of `tests/execute/numerics/variants.py`, and the names of
the forms that the driver's assembler rejects, with the card and driver), `units_*.npz` (full sweeps of the
approximate units over whole binades, stored as second differences of the result bits, lzma), and
`sparse.npz` (the units at a stride over all 2^32 inputs, and both approximate divisions on pairs).
Nothing here decides what is right: the files are evidence, the tables and tests are made from them elsewhere.
"""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "execute" / "numerics"))

from variants import CASES, Variant, inputs, mix64, variants, width  # noqa: E402

HEADER = ".version 7.4\n.target sm_37\n.address_size 64\n"
SWEEPS = {
    "ex2": (0x3F800000, 0xBF800000, 0x3F000000),
    "rcp": (0x3F800000,),
    "rsqrt": (0x3F800000, 0x40000000),
    "sqrt": (0x3F800000, 0x40000000),
    "lg2": (0x3F800000, 0x3F000000, 0x40000000, 0x3E800000),
    "sin": (0x3F000000, 0x3F800000, 0x40000000, 0x40800000),
    "cos": (0x3F000000, 0x3F800000, 0x40000000, 0x40800000),
}
STRIDE = 32771
PAIRS = 1 << 17


def register(kind: str) -> str:
    """The untyped register class a kind lives in."""
    bits = width(kind)
    return ".b64" if bits == 64 else ".b16" if bits == 16 else ".b32"


def kernel(name: str, v: Variant) -> str:
    """One entry that applies `v` to row %tid of its three 64-bit operand arrays."""
    text = v.text
    lines = [f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po) {{"]
    lines += [".reg .b32 i; .reg .b64 base, off;", "mov.u32 i, %tid.x; mul.wide.u32 off, i, 8;"]
    for place, kind in zip("abc", v.operands, strict=False):
        r = register(kind)
        lines += [f".reg {r} o{place}; ld.param.u64 base, [p{place}]; add.u64 base, base, off;"]
        lines += [f"ld.global{r} o{place}, [base];"]
        text = text.replace("%" + place, "o" + place)
    r = register(v.result)
    lines += [f".reg {r} res; mov{r} res, 0;" if r != ".b16" else ".reg .b16 res; mov.b16 res, 0;"]
    lines += ["{", text.replace("%d", "res"), "}"]
    lines += [f"ld.param.u64 base, [po]; add.u64 base, base, off; st.global{r} [base], res;", "ret; }"]
    return "\n".join(lines)


def load(text: str):  # noqa: ANN201 - CuPy has no stubs
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

    def operand(kind: str, position: int):  # noqa: ANN202
        if (kind, position) not in device:
            device[kind, position] = cp.asarray(inputs(kind, position))
        return device[kind, position]

    def run(module, index: int, v: Variant) -> None:  # noqa: ANN001
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
    return (
        f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 po) {{\n"
        ".reg .b32 i, n, t, x, y; .reg .b64 base, off;\n"
        "mov.u32 i, %ctaid.x; mov.u32 n, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, n, t; mul.wide.u32 off, i, 4;\n"
        "ld.param.u64 base, [pa]; add.u64 base, base, off; ld.global.b32 x, [base];\n"
        "ld.param.u64 base, [pb]; add.u64 base, base, off; ld.global.b32 y, [base];\n"
        f"{op} y, x, y;\n"
        "ld.param.u64 base, [po]; add.u64 base, base, off; st.global.b32 [base], y; ret; }"
    )


def sweep(fn, first: int, step: int, count: int, dtype=np.uint32):  # noqa: ANN001, ANN201
    import cupy as cp

    out = cp.zeros(count, dtype)
    fn((count // 256,), (256,), (np.uint32(first), np.uint32(step), out))
    return cp.asnumpy(out)


def pack(values: np.ndarray) -> bytes:
    """lzma of the second differences (mod 2^32) as zigzag bytes, escape-free: int8 when they fit, else int32."""
    d = np.diff(np.diff(values.astype(np.int64), prepend=0), prepend=0)
    small = d[2:]
    if np.abs(small).max(initial=0) < 128:
        body = small.astype(np.int8).tobytes()
        tag = b"1"
    else:
        body, tag = small.astype("<i8").astype("<i4").tobytes(), b"4"
    return tag + d[:2].astype("<i8").tobytes() + lzma.compress(body, preset=4)


def pair_inputs() -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors: near one, any bits, and divisors at both ends of the exponent range."""
    k = np.arange(PAIRS, dtype=np.uint64)
    a, b = mix64(k * np.uint64(2) + np.uint64(11)), mix64(k * np.uint64(2) + np.uint64(12))
    which = k % np.uint64(4)
    near = np.uint64(0x7FFFFF)
    x = np.where(which == 0, a & near | np.uint64(0x3F800000), a >> np.uint64(32))
    y = np.where(which == 0, b & near | np.uint64(0x3F800000), b >> np.uint64(32))
    y = np.where(
        which == 2, (b & near) | (np.uint64(248) + (b >> np.uint64(40)) % np.uint64(8)) << np.uint64(23), y
    )
    y = np.where(which == 3, (b & near) | ((b >> np.uint64(40)) % np.uint64(4)) << np.uint64(23), y)
    return x.astype(np.uint32), y.astype(np.uint32)


def main(folder: Path) -> None:
    import cupy as cp

    began = time.time()
    text = HEADER
    ops = [f"{u}.approx{f}.f32" for u in SWEEPS for f in (".ftz", "")]
    for k, op in enumerate(ops):
        text += unit_kernel(f"u{k}", op) + "\n"
    ops64 = ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"]
    for k, op in enumerate(ops64):
        text += unit64_kernel(f"w{k}", op) + "\n"
    pairs = ["div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32"]
    for k, op in enumerate(pairs):
        text += pair_kernel(f"p{k}", op) + "\n"
    module = load(text)
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    stamp = np.array([driver, time.strftime("%Y-%m-%d"), "PTX 7.4, sm_37, JIT by the driver"])
    print(driver, time.time() - began)

    jobs: dict[str, np.ndarray] = {}
    for unit, firsts in SWEEPS.items():
        k = ops.index(f"{unit}.approx.ftz.f32")
        for first in firsts:
            got = sweep(module.get_function(f"u{k}"), first, 1, 1 << 23)
            plain = sweep(module.get_function(f"u{k + 1}"), first, 1, 1 << 23)
            print(unit, hex(first), "ftz and plain differ at", int((got != plain).sum()))
            jobs[f"{unit}_{first:08x}"] = got
    sparse = {"stamp": stamp}
    count = (1 << 32) // STRIDE // 256 * 256
    for k, op in enumerate(ops):
        sparse[re.sub(r"\W", "_", op)] = sweep(module.get_function(f"u{k}"), 0, STRIDE, count)
    x, y = (cp.asarray(v) for v in pair_inputs())
    for k, op in enumerate(pairs):
        out = cp.zeros(PAIRS, cp.uint32)
        module.get_function(f"p{k}")((PAIRS // 256,), (256,), (x, y, out))
        sparse[re.sub(r"\W", "_", op)] = cp.asnumpy(out)
    for k, op in enumerate(ops64):
        name = re.sub(r"\W", "_", op)
        wide = sweep(module.get_function(f"w{k}"), 0x3FF00000, 1, 1 << 21, np.uint64)
        sparse[name + "_hi"] = (wide >> np.uint64(32)).astype(np.uint32)
        low = wide.astype(np.uint32)
        print(op, "low words nonzero:", int((low != 0).sum()))
        if k == 2:
            sparse[name + "_lo"] = low[::16]
        anywhere = sweep(module.get_function(f"w{k}"), 0, STRIDE, count, np.uint64)
        sparse[name] = anywhere
    print("swept", time.time() - began)
    with ProcessPoolExecutor(14) as pool:
        futures = {name: pool.submit(pack, v) for name, v in jobs.items()}
        found = silicon()
        print("sampled", time.time() - began)
        found["stamp"] = stamp
        np.savez_compressed(folder / "silicon.npz", **found)
        np.savez_compressed(folder / "sparse.npz", **sparse)
        for unit in SWEEPS:
            packed = {
                n: np.frombuffer(f.result(), np.uint8) for n, f in futures.items() if n.startswith(unit + "_")
            }
            if unit in ("rcp", "sqrt"):
                continue
            if unit == "rsqrt":
                packed |= {
                    n: np.frombuffer(f.result(), np.uint8)
                    for n, f in futures.items()
                    if n[:4] in ("rcp_", "sqrt")
                }
            np.savez(folder / f"units_{unit}.npz", stamp=stamp, **packed)
            print(unit, sum(v.size for v in packed.values()), time.time() - began)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
