"""How fast the CPU executor runs the scan kernels, against native C and a pip-installable peer.

Kernels 8, 9 and 10 at H = 32 heads, S = 128, n = 128 positions, code warm, in the three check modes; the same scan in
C (benchmarks/native/scan.c, gcc -O3 -march=native, the contract's tree order, vectorised over rows) as the limit; the
executor's compile time for the 15 kernels, cold and from its cache; memory beyond the buffers. `vgre`, when it can be
imported, is given kernel 8 through its public interface (CUDA C).

Targets, on 2 threads: kernel 10 within 1.5x and kernel 8 within 14x of native, 10^11 thread instructions a second on
kernel 10, checked mode at most twice the unchecked time, cold compile under 10 s, from cache under 0.5 s, 64 MB.
Wall times are medians of rounds in which all contestants take turns, so that a busy machine is busy for all.

    python benchmarks/execute.py [ROUNDS]
"""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ssmtool.header import read_header
from ssmtool.project import find_project

ROOT = Path(__file__).parent.parent
HEADS, SIZE, POSITIONS = 32, 128, 128
KERNELS = {
    "kernel 8": ("fc_ssm_recurrence_seq", (SIZE, HEADS), SIZE),
    "kernel 9": ("fc_ssm_recurrence_seq_unroll128", (SIZE, HEADS), SIZE),
    "kernel 10": ("fc_ssm_recurrence_seq_warp", (SIZE // 4, HEADS), 2 * POSITIONS),
}
COMPILE = """
import resource, sys, time
from ssmtool.execute import Module
module = Module(open(sys.argv[1]).read())
started = time.perf_counter()
for entry in module.entries:
    module.compile(entry, 128 if "recurrence" in entry or "qknorm" in entry else 256, check=sys.argv[2])
print(time.perf_counter() - started)
"""
PEER = """
import sys, time, numpy, vgre
from vgre.kernel import Dim3, Kernel
runtime = vgre.Runtime(); runtime.init()
s, q, k, v, g, beta, y = (numpy.zeros(c, numpy.float32) for c in (32*128*128, *[128*4096]*3, *[4096]*2, 128*4096))
kernel = Kernel("fc_ssm_recurrence_seq", open(sys.argv[1]).read())
arguments = [s, q, k, v, g, beta, y, numpy.int32(128), numpy.int32(32), numpy.int32(128), numpy.float32(1), s]
started = time.perf_counter()
runtime.launch(kernel, Dim3(128, 32), Dim3(128), arguments, 512)
runtime.synchronize()
print("seconds", time.perf_counter() - started)
"""


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a cache line, as what cudaMalloc gives does; NumPy promises 16 bytes."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Inputs:
    """Arrays of the scan; the state is copied afresh for each run."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)

        def normal(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape).astype(np.float32)

        self.state = normal(HEADS, SIZE, SIZE) * np.float32(0.1)
        q, k = normal(POSITIONS, HEADS, SIZE), normal(POSITIONS, HEADS, SIZE)
        self.q = q / np.linalg.norm(q, axis=-1, keepdims=True)
        self.k = k / np.linalg.norm(k, axis=-1, keepdims=True)
        self.v = normal(POSITIONS, HEADS, SIZE)
        self.g = -np.abs(normal(POSITIONS, HEADS))
        self.beta = (1 / (1 + np.exp(-normal(POSITIONS, HEADS)))).astype(np.float32)
        self.y = np.empty((POSITIONS, HEADS, SIZE), np.float32)
        for name, array in list(vars(self).items()):
            setattr(self, name, aligned(array))
        self.scale = np.float32(1 / np.sqrt(SIZE))


def native(inputs: Inputs, folder: str) -> Callable[[int], float]:
    """The C scan as a function of the number of threads that returns seconds."""
    library = Path(folder) / "scan.so"
    flags = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=off", "-fopenmp", "-shared", "-fPIC"]
    source = ROOT / "benchmarks" / "native" / "scan.c"
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    scan = ctypes.CDLL(str(library)).scan

    def run(threads: int) -> float:
        arrays = [aligned(inputs.state), inputs.q, inputs.k, inputs.v, inputs.g, inputs.beta, inputs.y]
        addresses = [ctypes.c_void_p(each.ctypes.data) for each in arrays]
        started = time.perf_counter()
        scan(*addresses, HEADS, POSITIONS, ctypes.c_float(inputs.scale), threads)
        return time.perf_counter() - started

    return run


def executor(inputs: Inputs, module: object, name: str, check: str) -> Callable[[int], float]:
    """One kernel as a function of the number of threads that returns the seconds of the launch."""
    entry, grid, floats = KERNELS[name]

    def run(threads: int) -> float:
        i = inputs
        arguments = [aligned(i.state), i.q, i.k, i.v, i.g, i.beta, i.y, SIZE, HEADS, POSITIONS, i.scale, None]
        started = time.perf_counter()
        module.launch(entry, grid, 128, arguments, 4 * floats, check=check, threads=threads)  # type: ignore[attr-defined]
        return time.perf_counter() - started

    return run


def instructions(inputs: Inputs, module: object, name: str) -> int:
    """Thread instructions of a launch: executed warp instructions times 32."""
    entry, grid, floats = KERNELS[name]
    i = inputs
    arguments = [aligned(i.state), i.q, i.k, i.v, i.g, i.beta, i.y, SIZE, HEADS, POSITIONS, i.scale, None]
    result = module.launch(entry, grid, 128, arguments, 4 * floats, check="none", counters=True)  # type: ignore[attr-defined]
    return 32 * int(result.counters.total)


def compile_times(ptx: Path, folder: str) -> None:
    """Cold, then from the cache, each in a process of its own."""
    environment = {**os.environ, "SSMTOOL_CACHE_DIR": folder}
    for check in ("bounds", "all", "none"):
        seconds = [
            float(subprocess.run(
                [sys.executable, "-c", COMPILE, str(ptx), check], env=environment, check=True, capture_output=True,
                text=True,
            ).stdout)
            for _ in range(2)
        ]  # fmt: skip
        print(f"compile 15 kernels, check={check}: cold {seconds[0]:.2f} s, from cache {seconds[1]:.2f} s")


def peer() -> None:
    """vgre's public interface on kernel 8's source."""
    source = ROOT / "kernels" / "ssm_gated_delta.cu"
    try:
        done = subprocess.run([sys.executable, "-c", PEER, str(source)], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        print("vgre: kernel 8 not finished in 300 s")
        return
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
    error = done.stderr.strip().splitlines()[-1:] or [""]
    print(f"vgre: {last[0] if done.returncode == 0 else 'did not run kernel 8: ' + error[0]}")


def main(rounds: int) -> None:
    """Print the table."""
    from ssmtool.execute import Module

    text = read_header(find_project(ROOT).header_path).modules[0].ptx
    inputs = Inputs()
    module = Module(text)
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / "kernels.ptx"
        ptx.write_text(text)
        limit = native(inputs, folder)
        contestants = {("native C", "-"): limit}
        for name in KERNELS:
            for check in ("none", "bounds", "all"):
                contestants[name, check] = executor(inputs, module, name, check)
        for run in contestants.values():
            run(2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for threads in (1, 2):
            times: dict[tuple[str, str], list[float]] = {each: [] for each in contestants}
            for _ in range(rounds):
                for each, run in contestants.items():
                    times[each].append(run(threads))
            base = statistics.median(times["native C", "-"])
            print(
                f"\n{threads} thread{'s' if threads > 1 else ''}: median of {rounds}, ms (least); x native; x unchecked"
            )
            for (name, check), found in times.items():
                middle = statistics.median(found)
                unchecked = statistics.median(times[name, "none"]) if check != "-" else middle
                print(
                    f"  {name:<10} check={check:<7} {middle * 1e3:8.2f} ({min(found) * 1e3:.2f})"
                    f"  {middle / base:5.2f}  {middle / unchecked:5.2f}"
                )
            if threads == 2:
                count = instructions(inputs, module, "kernel 10")
                seconds = statistics.median(times["kernel 10", "none"])
                print(f"  kernel 10: {count:.3g} thread instructions, {count / seconds:.3g} a second")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"\npeak memory grew by {grown / 1024:.1f} MB over {2 * rounds} rounds of launches")
        compile_times(ptx, folder)
    peer()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
