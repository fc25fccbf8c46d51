"""Makes the CuPy file: python cupy_kernel.py CUDA_INCLUDE_FOLDER (CuPy's headers need those of CCCL)."""

import sys
from pathlib import Path

import cupy
from cupy.cuda import compiler

SOURCE = r"""
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
extern "C" __global__ void scale(CArray<complex<float>, 1, 1, 1> x, CArray<complex<float>, 1, 1, 1> y,
                                 complex<float> a, CIndexer<1> ind) {
    CUPY_FOR(i, ind.size()) { ind.set(i); y[ind.get()] = x[ind.get()] * exp(a) / x[ind.get()]; }
}"""
INCLUDES = (Path(cupy.__file__).parent / "_core/include", Path(sys.argv[1]), Path(sys.argv[1]) / "cccl")
program = compiler._NVRTCProgram(SOURCE, "scale.cu")
ptx = program.compile((*(f"-I{folder}" for folder in INCLUDES), "-std=c++17", "--gpu-architecture=compute_75"))[0]
Path("cupy-14-sm75.ptx").write_bytes(ptx if isinstance(ptx, bytes) else ptx.encode())
