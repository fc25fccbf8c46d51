"""PTX as NVRTC, nvcc, clang, numba-cuda, CuPy and Triton write it: right results, or refused by name."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT
from ssmtool.execute import Module, UnsupportedError
from ssmtool.execute.layout import Mode
from ssmtool.execute.lower import lower

PRODUCERS = sorted((Path(__file__).parent / "producers").glob("*.ptx"))
CORPUS = ROOT / "tests/ptx/corpus"
RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def narrow_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run as vectors of 64 threads, several to a block: LLVM takes six times as long for one of 256.

    How wide a block may be is not what these tests are about.
    """
    monkeypatch.setattr("ssmtool.execute.program.kernel.WIDTHS", (64,))


@pytest.fixture(scope="module", params=PRODUCERS, ids=lambda path: path.stem)
def small(request: pytest.FixtureRequest) -> Module:
    path: Path = request.param
    return Module(path.read_text(), path.name)


def module(name: str) -> Module:
    return Module((CORPUS / f"{name}.ptx").read_text(), f"{name}.ptx")


# -- one source, six compilers


def test_saxpy(small: Module) -> None:
    # Small integers: whether the compiler fuses or not, the bits are the same.
    x, y = (RANDOM.integers(-100, 100, 1000).astype(np.float32) for _ in range(2))
    wanted = 3 * x + y
    small.launch("saxpy", 8, 128, [y, x, 3.0, 1000])
    assert np.array_equal(y, wanted)


@pytest.mark.parametrize("block", [32, 128, 256])
def test_block_sum(small: Module, block: int) -> None:
    x = RANDOM.integers(-100, 100, (5, 777)).astype(np.float32)
    out = np.zeros(5, np.float32)
    small.launch("block_sum", 5, block, [out, x, 777])
    assert np.array_equal(out, x.sum(1))


def test_transpose(small: Module) -> None:
    matrix = RANDOM.integers(-30000, 30000, (37, 50)).astype(np.int16)
    out = np.zeros((50, 37), np.int16)
    small.launch("transpose", (4, 3), (16, 16), [out, matrix, 37, 50])
    assert np.array_equal(out, matrix.T)


def test_collatz(small: Module) -> None:
    steps, peak = np.zeros(300, np.uint32), np.zeros(300, np.uint64)
    small.launch("collatz", 3, 128, [steps, peak, 300])
    for i in range(300):
        x, count, top = i + 1, 0, i + 1
        while x != 1 and count < 1000:
            x = 3 * x + 1 if x & 1 else x // 2
            count, top = count + 1, max(top, x)
        assert (steps[i], peak[i]) == (count, top), i


def test_polynomial(small: Module) -> None:
    x = RANDOM.integers(-4, 5, 100).astype(np.float64)
    degree = RANDOM.integers(0, 8, 100).astype(np.int32)
    y = np.zeros(100)
    small.launch("polynomial", 4, 32, [y, x, degree, 100])
    sums = [sum((k - 3) * x[i] ** k for k in range(degree[i] + 1)) for i in range(100)]
    assert np.array_equal(y, np.array(sums) / (1 + degree))


def test_argmax_through_a_struct_by_value(small: Module) -> None:
    x = RANDOM.integers(0, 9, (64, 21)).astype(np.float32)
    out = np.zeros(64, np.dtype([("key", np.int32), ("value", np.float32)]))
    small.launch("argmax", 1, 64, [out, x, 21])
    assert np.array_equal(out["key"], x.argmax(1))
    assert np.array_equal(out["value"], x.max(1))


def test_bytes(small: Module) -> None:
    given = np.arange(256, dtype=np.uint8).view(np.int8)
    out = np.zeros(256, np.uint8)
    small.launch("bytes", 2, 32, [out, given, 256, 3])
    for value, got in zip(given.tolist(), out.tolist(), strict=True):
        third = abs(value) // 3 * (1 if value >= 0 else -1)
        ways = [value << 3, value >> 3, (value & 255) % 11, third, ~value, value * value, abs(value), 0]
        assert got == ways[value & 7] & 255, value


# -- what others wrote


@pytest.mark.parametrize("name", ["nvrtc-11.4-sm37", "nvrtc-11.8-sm52", "nvcc-13.0-sm75"])
class TestFeatures:
    def test_vectors(self, name: str) -> None:
        x = RANDOM.random((300, 4), np.float32)
        y = np.zeros_like(x)
        module(name).launch("vectors", 2, 256, [x, y, 300])
        assert np.array_equal(y, x[:, ::-1])

    def test_an_array_in_local_memory(self, name: str) -> None:
        x = np.array([2, -4, 8], np.float32)
        y = np.zeros(6, np.float32)
        module(name).launch("history", 1, 1, [x, y, 6, 3])
        h = x.tolist()
        for j in range(6):
            total = sum(h[(i + j) % 3] * (1.0, 2.5, -0.0)[i] for i in range(3))
            h[j % 3] = total
            assert y[j] == total

    def test_a_reduction_with_shuffles_atomics_and_both_kinds_of_shared_memory(self, name: str) -> None:
        made = module(name)
        x = RANDOM.integers(-9, 9, 5000).astype(np.float32)
        y = np.full(1, 10, np.float32)
        made.launch("reduce", 1, 1024, [x, y, 5000], shared_bytes=4096)
        warps = [sum(float(x[i::1024].sum()) for i in range(32 * w, 32 * w + 32)) for w in range(2)]
        assert y[0] == 10 + warps[0] + warps[1]
        assert made.variable("counter") == 5000


@pytest.mark.parametrize("name", ["nvrtc-11.4-sm37-lineinfo", "nvcc-13.0-sm75-lineinfo"])
def test_a_switch_and_a_recursion_that_became_a_loop(name: str) -> None:
    x = np.arange(33, dtype=np.float32)
    n = np.array([1, 2, 3, 4, -1, 7] * 6, np.int32)[:33]
    module(name).launch("clang_kernel", 1, 32, [x, n, 3])
    i = np.arange(33, dtype=np.float32)
    assert np.array_equal(x[:32], i[:32] ** 3 + i[1:] ** 2)
    assert n[:32].tolist() == [{1: 6, 2: 8, 3: 77}.get(value, -1) for value in ([1, 2, 3, 4, -1, 7] * 6)[:32]]


def test_numba() -> None:
    made = module("numba-cuda-0.30-sm75")
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    y = np.full(32, 2, np.float32)

    def array(data: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[object]:
        """numba's parameters of a one-dimensional array."""
        return [None, None, data.size, 4, data, data.size, 4]

    made.launch(made.entries[0], 1, 32, [3.0, *array(x), *array(y)])
    assert np.allclose(y, np.exp(x) * 3 * (np.arange(32) % 4) + 2, rtol=1e-6)


def test_triton() -> None:
    rows = RANDOM.random((3, 200), np.float32) * 8
    out = np.zeros_like(rows)
    module("triton-3.9-softmax-sm75").launch("softmax_rows", 3, 128, [rows, out, 200, None, None], shared_bytes=64)
    e = np.exp(rows.astype(np.float64) - rows.max(1, keepdims=True))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_cupy() -> None:
    x, y = np.full(40, 2 + 1j, np.complex64), np.zeros(40, np.complex64)

    def array(data: np.ndarray[tuple[int], np.dtype[np.complex64]]) -> bytes:
        """CuPy's CArray of one dimension: data, size, shape, strides."""
        return struct.pack("<4q", data.ctypes.data, data.size, data.size, 8)

    a = struct.pack("<2f", 0.5, 0.25)
    made = module("cupy-14-sm75")
    made.launch("scale", 2, 32, [array(x), array(y), a, struct.pack("<3q", 40, 40, 0)], reachable=[x, y])
    assert np.allclose(y, np.exp(0.5 + 0.25j), rtol=1e-6)


def test_the_audit_s_corpus() -> None:
    corpus = ROOT / "tests/audit/corpus"
    tiers = Module((corpus / "tiers.ptx").read_text())
    values = RANDOM.integers(-8, 8, (16, 32)).astype(np.float32)
    out = np.zeros(32, np.float32)
    tiers.launch("promoted", 1, 32, [out, values, 32])
    assert np.array_equal(out, (values * values[::-1]).sum(0))
    history = Module((corpus / "history.ptx").read_text())
    x, weight = RANDOM.random((9, 70), np.float32), RANDOM.random((70, 4), np.float32)
    results = []
    for entry in ("generic", "fast"):
        state, out, snaps = (
            np.ones((70, 3), np.float32),
            np.zeros((9, 70), np.float32),
            np.zeros((9, 70, 3), np.float32),
        )
        history.launch(entry, 2, 64, [x, weight, state, out, 70, 4, 9, snaps])
        results.append(b"".join(each.tobytes() for each in (state, out, snaps)))
        padded = np.concatenate([np.ones((3, 70), np.float32), x])
        sums = sum(padded[k : k + 9] * weight[:, k] for k in range(4))
        assert np.allclose(out, sums / (1 + np.exp(-sums)), rtol=1e-5)
    assert results[0] == results[1]


REFUSED = {
    "clang-14-sm20-debug": "recursion",
    "clang-14-sm37": "recursion",
    "nvrtc-11.4-sm35-debug": "recursion",
    "llvmlite-0.50-sm35": "external has no body",
    "nvcc-13.0-sm100a-tcgen05": r"tcgen05\.alloc",
    "nvcc-13.0-sm80-textures": r"tex\.2d",
    "nvcc-13.0-sm90a-tma-wgmma": r"mbarrier\.init",
    "triton-3.9-matmul-sm80": "ldmatrix",
    "triton-3.9-matmul-sm100": r"tcgen05\.alloc",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_is_refused_by_name_and_line(name: str) -> None:
    made = module(name)
    with pytest.raises(UnsupportedError, match=REFUSED[name]) as caught:
        lower(made.ptx, made.entries[0], (32, 1, 1), Mode())
    assert caught.value.line is not None
    assert str(caught.value.path).endswith(f"{name}.ptx")
