"""Makes the Triton files: python triton_kernels.py, in this folder."""

# Triton kernels name their compile-time constants in capitals.
# ruff: noqa: N803

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax_rows(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.arange(0, BM)
    j = tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for s in range(0, K, BK):
        acc += tl.dot(tl.load(a + i[:, None] * K + (s + k)[None, :]), tl.load(b + (s + k)[:, None] * BN + j[None, :]))
    tl.store(c + i[:, None] * BN + j[None, :], acc)


def compile_to(name, source, capability):
    """Write the PTX of one kernel for one compute capability."""
    Path(f"triton-3.9-{name}-sm{capability}.ptx").write_text(
        triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["ptx"]
    )


SOFTMAX = ASTSource(
    fn=softmax_rows,
    signature={"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 256},
)
MATMUL = ASTSource(
    fn=matmul,
    signature={
        "a": "*fp16",
        "b": "*fp16",
        "c": "*fp32",
        "K": "i32",
        "BM": "constexpr",
        "BN": "constexpr",
        "BK": "constexpr",
    },
    constexprs={"BM": 64, "BN": 16, "BK": 32},
)
compile_to("softmax", SOFTMAX, 75)
compile_to("matmul", MATMUL, 80)
compile_to("matmul", MATMUL, 100)
