"""Sources with the usual headers compile with NVRTC, which has none, and to the same numbers as with a real nvcc."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ssmtool.toolchain import Compiler, CompileRequest
from ssmtool.toolchain.nvrtc import HEADERS, Nvrtc

# Each body stores what its header defines; the PTX then holds the values as literals.
CASES = {
    "stdint.h": "uint64_t a = UINT64_MAX; int32_t b = INT32_MAX; o[0] = a; o[1] = b + sizeof(uint_fast16_t);",
    "cstdint": "std::uint64_t a = UINT64_C(5000000000); int64_t b = INT64_MIN; o[0] = a; o[1] = (uintptr_t)b;",
    "stddef.h": "struct S { int a; double b; }; size_t n = offsetof(S, b); ptrdiff_t d = 3; o[0] = n; o[1] = d;",
    "cstddef": "std::size_t n = 7; std::nullptr_t z = nullptr; o[0] = n; o[1] = z == NULL;",
    "limits.h": "o[0] = INT_MAX; o[1] = ULLONG_MAX - LONG_MAX + CHAR_BIT + SHRT_MIN;",
    "climits": "o[0] = UINT_MAX; o[1] = LLONG_MIN;",
    "float.h": "o[0] = BITS32(FLT_MAX); o[1] = BITS64(DBL_EPSILON); o[2] = BITS32(FLT_MIN);",
    "cfloat": "o[0] = BITS32(FLT_EPSILON); o[1] = FLT_MANT_DIG + DBL_MAX_EXP; o[2] = BITS64(DBL_MAX);",
    "stdbool.h": "bool b = true; o[0] = b ? 5 : 6;",
    "math.h": "o[0] = BITS32(INFINITY); o[1] = BITS32(NAN) == 0x7fc00000; o[2] = BITS64(M_PI);",
    "cmath": "float x = o[3]; o[0] = std::sqrt(x) + std::fabs(x) + std::exp(x); o[1] = std::isnan(x) || std::isinf(x);",
    "assert.h": "assert(o[0] != 3); o[1] = 2;",
    "cassert": "assert(o[0] != 3); o[1] = 2;",
    "stdio.h": 'if (o[0] == 3) printf("three %d\\n", 3); o[1] = 2;',
    "cuda_runtime.h": "dim3 d(1, 2, 3); float4 f = make_float4(1, 2, 3, 4); o[0] = d.y + f.z; o[1] = INT_MAX;",
    "device_launch_parameters.h": "o[0] = threadIdx.x + blockDim.y;",
    "math_constants.h": "o[0] = BITS32(CUDART_INF_F); o[1] = BITS64(CUDART_PI_LO);",
}
PREAMBLE = "#define BITS32(x) __float_as_int(x)\n#define BITS64(x) __double_as_longlong(x)\n"


def kernel(header: str, body: str) -> str:
    return f'{PREAMBLE}#include <{header}>\nextern "C" __global__ void k(long long *o) {{\n{body}\n}}\n'


@pytest.mark.parametrize("header", CASES)
def test_header_compiles_with_both_compilers(
    header: str, compiler: Compiler, request_for: Callable[..., CompileRequest]
) -> None:
    result = compiler.compile(request_for(kernel(header, CASES[header])))
    assert ".visible .entry k(" in result.ptx
    assert ".target sm_37" in result.ptx


def literals(ptx: str) -> list[str]:
    """The 64-bit values stored, which need no knowledge of how a compiler names registers."""
    return sorted(re.findall(r"mov\.[ufb]\d+ \s*%\w+, (-?\w+);", ptx))


@pytest.mark.parametrize(
    "header", ["stdint.h", "cstdint", "stddef.h", "limits.h", "float.h", "cfloat", "math_constants.h"]
)
def test_header_gives_the_values_of_the_real_one(
    header: str, nvrtc: Nvrtc, nvcc: Compiler, request_for: Callable[..., CompileRequest]
) -> None:
    request = request_for(kernel(header, CASES[header]))
    ours = literals(nvrtc.compile(request).ptx)
    assert ours
    assert ours == literals(nvcc.compile(request).ptx)


def test_types_have_the_size_and_sign_the_host_gives_them(
    nvrtc: Nvrtc, request_for: Callable[..., CompileRequest]
) -> None:
    checks = [
        f"static_assert(sizeof({sign}int{bits}_t) == {bits // 8} && (({sign}int{bits}_t)-1 < 0) == {signed});"
        for sign, signed in (("", "true"), ("u", "false"))
        for bits in (8, 16, 32, 64)
    ]
    checks += ['static_assert(sizeof(intptr_t) == sizeof(void *) && sizeof(int_fast16_t) == 8, "");']
    nvrtc.compile(request_for(kernel("stdint.h", "\n".join(checks))))


def test_every_math_constant_equals_the_one_of_the_real_header(
    nvrtc: Nvrtc, nvcc: Compiler, request_for: Callable[..., CompileRequest]
) -> None:
    names = re.findall(r"#define (CUDART_\w+)", (HEADERS / "math_constants.h").read_text(encoding="utf-8"))
    assert len(names) > 90
    ints = ("CUDART_REMQUO_BITS_F", "CUDART_REMQUO_MASK_F")
    stores = "\n".join(
        f"o[{i}] = {name};" if name in ints else f"o[{i}] = {'BITS32' if name.endswith('_F') else 'BITS64'}({name});"
        for i, name in enumerate(names)
    )
    request = request_for(kernel("math_constants.h", stores))
    assert literals(nvrtc.compile(request).ptx) == literals(nvcc.compile(request).ptx)


def test_a_header_of_the_project_wins_over_ours(compiler: Compiler, request_for: Callable[..., CompileRequest]) -> None:
    text = '#include "limits.h"\nextern "C" __global__ void k(int *o) { o[0] = OUR_LIMIT; }\n'
    request = request_for(text, {"kernels/limits.h": "#define OUR_LIMIT 77\n"})
    assert "77" in compiler.compile(request).ptx


def test_includes_from_includes_and_from_include_dirs(
    compiler: Compiler, request_for: Callable[..., CompileRequest], tmp_path: Path
) -> None:
    files = {
        "kernels/a.cuh": '#include "sub/b.cuh"\n',
        "kernels/sub/b.cuh": '#include "c.cuh"\n#include "d.h"\n',
        "kernels/sub/c.cuh": "#define C 1\n",
        "inc/d.h": "#define D 2\n",
        "inc2/d.h": "#define D 9\n",
    }
    text = '#include <stdint.h>\n#include "a.cuh"\nextern "C" __global__ void k(int32_t *o) { o[0] = 100 * C + D; }\n'
    request = request_for(text, files, include_dirs=(tmp_path / "inc", tmp_path / "inc2"))
    assert "102" in compiler.compile(request).ptx
