"""Makes the numba-cuda file: python numba_kernel.py, in this folder."""

import math
from pathlib import Path

from numba import cuda, float32


def saxpy(a, x, y):
    """A local array indexed at run time, a transcendental, and an integer division."""
    i = cuda.grid(1)
    t = cuda.local.array(4, float32)
    for k in range(4):
        t[k] = a * k
    if i < x.size:
        y[i] = math.exp(x[i]) * t[i % 4] + y[i // (i + 1)]


ptx, _ = cuda.compile_ptx(saxpy, (float32, float32[::1], float32[:]), cc=(7, 5))
Path("numba-cuda-0.30-sm75.ptx").write_text(ptx)
