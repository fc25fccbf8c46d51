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
    "inttypes.h": 'if (o[0] == 3) printf("%" PRId64 " %" PRIx32 "\\n", (int64_t)o[1], (uint32_t)7); o[1] = 2;',
    "cstring": "float f = 2; int i; std::memcpy(&i, &f, 4); memset(o + 2, 0, 8); o[0] = i;",
    "stdlib.h": "o[0] = abs((int)o[1]);",
    "cstdlib": "o[0] = std::abs((int)o[1]);",
    "time.h": "o[0] = (long long)clock();",
    "new": "new (o) long long(4);",
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


# Each holds with the host's own library under nvcc, so it has to hold with the stand-ins.
TRAITS = """\
#include <type_traits>
#include <limits>
#include <utility>
#include <algorithm>
#include <array>
struct Base { int a; }; struct Derived : Base {}; struct Empty {}; enum E : short { A }; enum class F : unsigned { B };
union U { int a; float b; };
template <class T> struct Pick { template <class Q = T, std::enable_if_t<std::is_integral_v<Q>, int> = 0>
  static __host__ __device__ constexpr int of(int) { return 1; }
  static __host__ __device__ constexpr int of(...) { return 2; } };
#define SAME(...) static_assert(std::is_same_v<__VA_ARGS__>, #__VA_ARGS__)
#define YES(...) static_assert(__VA_ARGS__, #__VA_ARGS__)
SAME(std::decay_t<const int (&)[3]>, const int *); SAME(std::decay_t<int(float)>, int (*)(float));
SAME(std::decay_t<const volatile long &&>, long); SAME(std::remove_pointer_t<int *const>, int);
SAME(std::conditional_t<false, int, float>, float); SAME(std::add_pointer_t<int &>, int *);
SAME(std::add_lvalue_reference_t<void>, void); SAME(std::add_rvalue_reference_t<int &>, int &);
SAME(std::make_unsigned_t<const long>, const unsigned long); SAME(std::make_signed_t<unsigned char>, signed char);
SAME(std::underlying_type_t<F>, unsigned); SAME(std::invoke_result_t<float (*)(int), int>, float);
SAME(decltype(std::declval<int &>()), int &); SAME(std::remove_cv_t<const volatile int *>, const volatile int *);
YES(std::is_integral_v<const char> && !std::is_integral_v<float> && !std::is_integral_v<E>);
YES(std::is_floating_point_v<double> && std::is_arithmetic_v<bool> && std::is_void_v<const void>);
YES(std::is_enum_v<E> && std::is_class_v<Empty> && !std::is_class_v<U> && std::is_union_v<U> && std::is_empty_v<Empty>);
YES(std::is_base_of_v<Base, Derived> && !std::is_base_of_v<Derived, Base>);
YES(std::is_convertible_v<Derived *, Base *> && !std::is_convertible_v<Base *, Derived *>);
YES(std::is_signed_v<int> && std::is_unsigned_v<bool> && std::is_signed_v<float> && !std::is_signed_v<E>);
YES(std::is_pointer_v<int *const> && !std::is_pointer_v<int> && std::is_array_v<int[2]> && std::is_array_v<int[]>);
YES(std::is_function_v<int(int)> && !std::is_function_v<int &> && !std::is_function_v<int *> && std::is_scalar_v<E>);
YES(std::is_trivially_copyable_v<float4> && std::is_pod_v<Base> && std::is_standard_layout_v<Base>);
YES(std::is_lvalue_reference_v<int &> && std::is_rvalue_reference_v<int &&> && std::is_reference_v<int &>);
YES(std::is_constructible_v<Base, const Base &> && std::conjunction_v<std::true_type, std::is_same<int, int>>);
YES(!std::disjunction_v<std::false_type, std::negation<std::true_type>> && std::bool_constant<true>::value);
YES(Pick<int>::of(0) == 1 && Pick<float>::of(0) == 2);
YES(std::numeric_limits<int>::min() == -2147483647 - 1 && std::numeric_limits<unsigned char>::max() == 255);
YES(std::numeric_limits<int>::digits == 31 && std::numeric_limits<int>::digits10 == 9);
YES(std::numeric_limits<unsigned long long>::digits10 == 19 && std::numeric_limits<short>::digits10 == 4);
YES(std::numeric_limits<char>::digits10 == 2 && std::numeric_limits<long>::digits10 == 18);
YES(std::numeric_limits<float>::max() == 3.40282346638528859812e38f && std::numeric_limits<float>::digits == 24);
YES(std::numeric_limits<double>::epsilon() == 2.220446049250313e-16 && std::numeric_limits<double>::digits10 == 15);
YES(std::numeric_limits<double>::denorm_min() > 0 && std::numeric_limits<double>::lowest() < -1e308);
YES(std::numeric_limits<float>::has_infinity && !std::numeric_limits<int>::has_infinity);
YES(std::numeric_limits<const unsigned>::is_modulo && std::numeric_limits<long>::is_signed);
YES(std::min(3, 2) == 2 && std::max(3u, 2u) == 3u && std::clamp(9, 1, 4) == 4);
SAME(std::make_index_sequence<3>, std::index_sequence<0, 1, 2>); YES(std::index_sequence<4, 5>::size() == 2);
YES(std::array<int, 3>{1, 2, 3}[1] == 2 && std::array<int, 3>{}.size() == 3 && sizeof(std::pair<int, char>) == 8);
extern "C" __global__ void k(long long *o) { o[0] = 1; }
"""


def test_the_c_plus_plus_library_agrees_with_the_hosts(
    compiler: Compiler, request_for: Callable[..., CompileRequest]
) -> None:
    result = compiler.compile(request_for(TRAITS))
    assert ".visible .entry k(" in result.ptx
    assert result.diagnostics == ""


def test_the_c_plus_plus_library_works_in_device_code(nvrtc: Nvrtc, request_for: Callable[..., CompileRequest]) -> None:
    """Only with NVRTC: nvcc's host library is for device code behind --expt-relaxed-constexpr alone."""
    body = """
    std::array<float, 4> a{};
    a.fill(2); float s = 0; for (float v : a) s += v;
    int x = 1, y = 2; std::swap(x, y);
    auto p = std::make_pair(std::exchange(x, 9), 1.5f);
    o[0] = BITS32(s + p.second) + p.first + std::max(x, y) + std::numeric_limits<int>::max();
    o[1] = BITS32(std::numeric_limits<float>::infinity()) + std::numeric_limits<float>::has_quiet_NaN;
    auto moved = std::move(a); o[2] = BITS32(std::forward<float>(moved.back()));
    """
    result = nvrtc.compile(request_for("#include <array>\n#include <limits>\n" + kernel("algorithm", body)))
    assert result.diagnostics == ""
    assert "2139095041" in result.ptx


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
