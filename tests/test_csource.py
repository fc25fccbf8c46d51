"""Kernels read from CUDA text against what clang compiles; name arrays and counts against what gcc compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ssmtool.csource import defines_from_flags, find_kernels, find_name_array, read_kernels
from ssmtool.csource.conditions import evaluate
from ssmtool.csource.mask import mask
from ssmtool.errors import SsmtoolError

KERNELS = Path(__file__).parent.parent / "kernels"

# What real .cu files do between __global__ and the body, one trap a line.
TRAPS = r"""
#define K(name) extern "C" __global__ void name
#define KERNEL extern "C" __global__ void
#define BOTH(T) extern "C" __global__ void all_##T(T *x) { x[0] = 0; }
#define OUTER(T) BOTH(T)
#define THREADS 128
K(from_macro)(int *x) { x[0] = 1; }
KERNEL from_object_macro(float *x,
                         int n) { x[n] = 0; }
BOTH(float) OUTER(int)
extern "C" {
__global__ void in_block(float a[], int d) {}
static __global__ void static_in_block(int *x) { x[0] = 1; }
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) bounded(void) {}
extern "C" __global__ __attribute__((noinline)) void attributed(int *__restrict__ x) { *x = 1; }
extern "C" __global__ void declared_only(int *x);
extern "C" __global__ void declared_first(int *x);
extern "C" __global__ void declared_first(int *x) { *x = 2; }
__global__ void mangled(int *x) { *x = 3; }
namespace inner { __global__ void mangled_inside(int *x) { *x = 4; } }
namespace inner { extern "C" __global__ void plain_inside(int *x) { *x = 5; } }
template <typename T> __global__ void never_instantiated(T *x) {}
#if 0
extern "C" __global__ void switched_off(int *x) {}
#elif __CUDA_ARCH__ >= 700
extern "C" __global__ void newer(int *x) {}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 370 /* this one */
extern "C" __global__ void kepler(int *x) { *x = 6; }
#else
extern "C" __global__ void host_only(int *x) {}
#endif
#ifndef NOT_DEFINED_ANYWHERE
extern "C" __global__ void by_default(int *x) { *x = 7; }
#endif
#ifdef FROM_FLAGS
#if FROM_FLAGS > 1
extern "C" __global__ void flagged(int *x) { *x = 8; }
#endif
#endif
// extern "C" __global__ void commented(int *x) {}
/* extern "C" __global__ void commented_block(int *x) {}
#if 0 */
extern "C" __global__ void after_comment(int *x) { *x = 9; }
/* #endif */
// a line comment that goes on \
extern "C" __global__ void spliced_into_comment(int *x) {}
extern "C" __global__ vo\
id spliced(int *x) { *x = 10; }
__device__ const char *text = "extern \"C\" __global__ void in_string(int *x) {}";
__device__ const char *raw = R"x(
#if 0
extern "C" __global__ void in_raw_string(int *x) {}
)x";
extern "C" __global__ void after_raw(int *x) { *x = 1'000; }
extern "C" __global__ void brace_in_character(char *x) { *x = '{'; }
extern "C" __global__ void lambda_inside(int *x) { auto f = [](int v) { return v; }; *x = f(1); }
"""


def clang_entries(tmp_path: Path, text: str, *flags: str) -> list[str]:
    """The entries clang's NVPTX backend makes of the text for sm_37, without any CUDA installed."""
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang: the kernels found were not compared with a compiler's")
    source = tmp_path / "traps.cu"
    source.write_text("".join(f"#define __{word}__ __attribute__(({word}))\n" for word in ("global", "device")) + text)
    command = [clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_37"]
    bounds = "-D__launch_bounds__(...)=__attribute__((launch_bounds(__VA_ARGS__)))"
    command += ["-std=c++14", "-w", bounds, *flags, "-S", "-o", "-", str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "unknown target triple" in result.stderr or "unable to create target" in result.stderr:
        pytest.skip(f"this clang has no NVPTX backend: the kernels found were not compared ({result.stderr[:80]})")
    assert result.returncode == 0, result.stderr
    return re.findall(r"\.entry\s+([\w$]+)", result.stdout)


def test_the_kernels_are_those_a_compiler_makes(tmp_path: Path) -> None:
    entries = clang_entries(tmp_path, TRAPS, "-DFROM_FLAGS=2")
    found = read_kernels(TRAPS, "traps.cu", "sm_37", {"FROM_FLAGS": "2"})
    plain = [kernel.name for kernel in found.kernels if kernel.extern_c]
    mangled = [kernel.name for kernel in found.kernels if not kernel.extern_c and not kernel.template]
    assert not any(kernel.conditional for kernel in found.kernels)
    # A static kernel that nothing launches has no symbol at all.
    assert sorted(plain) == sorted(entry for entry in entries if not entry.startswith("_Z"))
    assert sorted(mangled) == ["mangled", "mangled_inside", "static_in_block"]
    assert [entry for entry in entries if "mangled" in entry] == ["_Z7mangledPi", "_ZN5inner14mangled_insideEPi"]
    assert found.complete


def test_lines_survive_macros_splices_and_comments() -> None:
    found = {kernel.name: kernel.line for kernel in find_kernels(TRAPS, "traps.cu")}
    lines = TRAPS.split("\n")
    for name in ("in_block", "bounded", "kepler", "after_comment", "after_raw", "lambda_inside"):
        assert name in lines[found[name] - 1]
    assert lines[found["from_macro"] - 1].startswith("K(from_macro)")
    assert lines[found["all_int"] - 1].startswith("BOTH(float)")


def test_hidden_kernels_say_where_they_hide() -> None:
    hidden = {kernel.name: kernel.place for kernel in read_kernels(TRAPS, "traps.cu").hidden}
    assert hidden["switched_off"] == "#if 0"
    assert hidden["newer"] == "#elif __CUDA_ARCH__ >= 700"
    assert hidden["commented"] == hidden["commented_block"] == "a comment"


def test_an_unknown_macro_leaves_both_branches_open() -> None:
    text = (
        '#ifdef WIDE\nextern "C" __global__ void a(int x) {}\n#else\nextern "C" __global__ void b(int x) {}\n#endif\n'
    )
    assert [(kernel.name, kernel.condition) for kernel in find_kernels(text, "x.cu")] == [
        ("a", "#ifdef WIDE"),
        ("b", "#else of #ifdef WIDE"),
    ]
    assert [kernel.name for kernel in read_kernels(text, "x.cu", defines={}).kernels] == ["b"]
    assert [kernel.name for kernel in read_kernels(text, "x.cu", defines={"WIDE": "1"}).kernels] == ["a"]
    included = '#include "config.h"\n' + text
    assert len(read_kernels(included, "x.cu", defines={}).kernels) == 2, "the included file may define WIDE"


def test_a_kernel_no_text_shows_is_said_to_be_unread() -> None:
    found = read_kernels(
        "#define LIST(X) X(a)\n#define K(n) __global__ void n(int x) {}\nLIST(K)\nFOO __global__ (x)\n", "x.cu"
    )
    assert found.kernels == ()
    assert found.unread == (4,)
    assert not found.complete


def test_parameters_keep_their_types_and_names() -> None:
    text = (
        'extern "C" __global__ void k(const float *__restrict__ q, unsigned long long n, float a[], float (&r)[3],\n'
        "                             void (*f)(int), int d = 4, uint64_t, cg::thread_block b) {}\n"
    )
    (kernel,) = find_kernels(text, "x.cu")
    assert [(parameter.type, parameter.name) for parameter in kernel.parameters] == [
        ("const float *__restrict__", "q"),
        ("unsigned long long", "n"),
        ("float []", "a"),
        ("float (&)[3]", "r"),
        ("void (*)(int)", "f"),
        ("int", "d"),
        ("uint64_t", ""),
        ("cg::thread_block", "b"),
    ]


def test_the_projects_own_source_has_its_fifteen() -> None:
    source = KERNELS / "ssm_gated_delta.cu"
    found = read_kernels(source.read_text("utf-8"), source, defines={})
    assert len(found.kernels) == 15
    assert all(kernel.extern_c and not kernel.conditional for kernel in found.kernels)
    assert found.complete


@pytest.mark.parametrize("data", ["int x;".encode("utf-16"), b"int x;\0"])
def test_text_that_is_no_text_is_one_error(data: bytes) -> None:
    with pytest.raises(SsmtoolError) as error:
        mask(data, "loader.c")
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("flags", "defines"),
    [
        (["-DX", "-DY=2", "-D", "Z=3", "--define-macro=W"], {"X": "1", "Y": "2", "Z": "3", "W": "1"}),
        (["--fmad=false", "-I", "include"], {}),
    ],
)
def test_defines_from_flags(flags: list[str], defines: dict[str, str]) -> None:
    assert defines_from_flags(flags) == defines


OPERATORS = ["+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||"]
expressions = st.recursive(
    st.integers(0, 20).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(st.sampled_from("!-~"), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=1, deadline=None)
@given(st.lists(expressions, min_size=150, max_size=150))
def test_conditions_are_valued_as_the_preprocessor_does(texts: list[str]) -> None:
    """`gcc -E` decides 150 random conditions in one run; those it rejects (division by zero) must be left undecided."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc: conditions were not compared with a preprocessor's")
    decided = [(text, evaluate(text, value_of=lambda _: 0, is_defined=lambda _: False)) for text in texts]
    source = "".join(
        f"#if {text}\nT{index}\n#endif\n" for index, (text, value) in enumerate(decided) if value is not None
    )
    result = subprocess.run(
        [gcc, "-E", "-P", "-"], input=source, capture_output=True, text=True, check=False, timeout=60
    )
    assert "error" not in result.stderr
    taken = {int(match) for match in re.findall(r"T(\d+)", result.stdout)}
    assert taken == {index for index, (_, value) in enumerate(decided) if value}


atoms = ["3", "0x10", "2u", "017", "'a'", "LAST", "N", "TWICE(2)", "sizeof n / sizeof *n", "(int)5u", "(unsigned)2"]
counts = st.recursive(
    st.sampled_from(atoms),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(" ".join),
        st.tuples(st.sampled_from("!-~"), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=1, deadline=None)
@given(st.lists(counts, min_size=150, max_size=150))
def test_counts_are_valued_as_a_compiler_does(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """gcc prints the value of every count that was decided; unsigned wraps and overflows must be left undecided."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc: counts were not compared with a compiler's")
    head = 'enum { FIRST, LAST = 4 };\n#define N 1 + 2\n#define TWICE(x) (2 * x)\nconst char *n[] = { "a", "b" };\n'
    decided: list[tuple[str, int]] = []
    for text in texts:
        count = find_name_array(f"{head}int f(void) {{ return load(n, {text}); }}\n".encode(), "x.c", "n", "load").count
        assert count is not None
        if count.value is not None:
            decided.append((text, count.value))
    assert len(decided) > len(texts) // 3
    folder = tmp_path_factory.mktemp("counts")
    lines = "".join(f'printf("%lld\\n", (long long)({text}));\n' for text, _ in decided)
    (folder / "x.c").write_text(f"#include <stdio.h>\n{head}int main(void) {{\n{lines}return 0; }}\n")
    subprocess.run([gcc, "-w", "x.c", "-o", "x"], cwd=folder, check=True, timeout=60)
    printed = subprocess.run([folder / "x"], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert [(text, int(number)) for (text, _), number in zip(decided, printed, strict=True)] == decided


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0 && UNKNOWN", 0),
        ("UNKNOWN && 0", 0),
        ("1 || UNKNOWN", 1),
        ("UNKNOWN", None),
        ("UNKNOWN ? 3 : 3", 3),
        ("defined(X) && X(2)", None),
        ("1 +", None),
        ("1 / 0", None),
        ("", None),
        ("0x10uL == 16", 1),
        ("-1 >> 1 == -1", 1),
    ],
)
def test_what_cannot_be_told_is_not_guessed(text: str, value: int | None) -> None:
    assert evaluate(text, value_of=lambda _: None, is_defined=lambda _: None) == value


# ------------------------------------------------------------------------------------------------------------ arrays

ARRAYS = r"""
#define PREFIX "fc_"
#define WHOLE "from_macro"
#define COUNT_OF(x) (sizeof(x) / sizeof((x)[0]))
#define FIXED 3
#define INDIRECT (FIXED + 1)
enum { FIRST, SECOND = 5, LAST };
static const int constant = 9;
typedef int CUfunction;
int load(const char *const *names, int count, CUfunction *out, int tag);

static const char *const plain[] = { "a", "b", "c" };
static const char *const trailing[] = {
    "a", /* "not me" */
    "b", // "nor me",
#if 0
    "switched_off",
#endif
    "c",
};
static const char *const joined[] = { "a" "b", PREFIX "c", WHOLE };
static const char *terminated[] = { "a", "b", NULL };
static char fixed[4][16] = { "a", "b" };
static const char *const sized[FIXED] = { "a", "b" };
static const char *const one[1] = { ("alone") };
static const char *const spliced[] = { "a", "b\
c", "d" };
const char *comma_first[] = {
      "a"
    , "b"
    , "c"
};
"""

COUNTS = (
    "3", "(3)", "3u", "(int)3", "0x3", "FIXED", "INDIRECT", "FIXED - 1", "LAST", "constant", "2 * FIXED",
    "COUNT_OF({0})", "sizeof({0}) / sizeof({0}[0])", "sizeof {0} / sizeof *{0}", "(int)(sizeof({0}) / sizeof(*({0})))",
    "sizeof({0}) / sizeof({0})[0]", "COUNT_OF({0}) - 1",
)  # fmt: skip
ARRAY_NAMES = re.findall(r"(\w+)(?:\[\w*\])+ = \{", ARRAYS)


def test_arrays_and_counts_are_those_a_compiler_makes(tmp_path: Path) -> None:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc: arrays and counts were not compared with a compiler's")
    main = ["int main(void) {"]
    for array in ARRAY_NAMES:
        main.append(f'printf("%s %d", "{array}", (int)COUNT_OF({array}));')
        element = f"(const char *){array}[i]"
        main.append(f'for (int i = 0; i < (int)COUNT_OF({array}); i++) printf(" <%s>", {element} ? {element} : "");')
        main.append('printf("\\n");')
        main += [f'printf("= %d\\n", (int)({count.format(array)}));' for count in COUNTS]
    source = tmp_path / "oracle.c"
    source.write_text("#include <stdio.h>\n" + ARRAYS + "\n".join([*main, "return 0; }"]))
    subprocess.run([gcc, "-w", "-o", tmp_path / "oracle", source], check=True, timeout=60)
    printed = subprocess.run([tmp_path / "oracle"], capture_output=True, text=True, check=True, timeout=60).stdout
    told = iter(printed.splitlines())
    for array in ARRAY_NAMES:
        words = next(told).split()
        elements = [word.strip("<>") for word in words[2:]]
        for count in COUNTS:
            text = (
                f"{ARRAYS}int f(void) {{ CUfunction out[99]; return load({array}, {count.format(array)}, out, 0); }}\n"
            )
            found = find_name_array(text.encode(), "loader.c", array, "load")
            assert found.count is not None
            assert found.count.value == int(next(told).removeprefix("= ")), (array, count)
            assert found.length == int(words[1]), array
            assert list(found.names) == [element for element in elements if element], array
            assert found.buffers[0][0] == "out"


def test_spans_are_bytes_even_after_text_in_another_encoding() -> None:
    data = 'const char *n[] = { /* d\xe9j\xe0 */ "a", "b" };\nint f(void) { return load(n, 2); }\n'.encode("latin-1")
    found = find_name_array(data, "loader.c", "n", "load")
    assert [data[entry.start : entry.end] for entry in found.entries] == [b'"a"', b'"b"']
    assert found.count is not None
    assert data[found.count.start : found.count.end] == b"2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int x;", "has no array names"),
        ("extern const char *names[];", "has no array names"),
        ("const char **names = other;", "is not a list of names"),
        (
            'const char *names[] = { "a" };\nvoid f(void) { const char *names[] = { "b" }; }',
            r"2 arrays named names \(lines 1, 2\)",
        ),
        ("const char *names[] = { first, second };", "not a plain string"),
        ('const char *names[] = { [1] = "a" };', "leave a place empty"),
        ('struct row names[] = { { 1, "a" } };', "not a plain string"),
        ('const char *names[] = { "a\\x62" };', "not a plain string"),
        ('const char *names[] = { "a" };', "has no call of load"),
        ('const char *names[] = { "a" };\nint f(void) { return load(other, 1); }', "calls load, but not with names"),
        (
            'const char *names[] = { "a" };\nint f(void) { return load(names, 1) + load(names, 2); }',
            r"calls load with names 2 times \(lines 2, 2\)",
        ),
        ('const char *names[] = { "a" };\nint f(void) { return load(names); }', "none at the count's position 1"),
    ],
)
def test_a_loader_that_cannot_be_read_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(SsmtoolError, match=message) as error:
        find_name_array(text.encode(), "loader.c", "names", "load")
    assert error.value.exit_code == 2


def test_an_array_in_both_branches_of_an_unknown_if_is_two() -> None:
    text = (
        '#ifdef W\nconst char *names[] = {"a"};\n#else\nconst char *names[] = {"b"};\n#endif\nint x = load(names, 1);\n'
    )
    with pytest.raises(SsmtoolError, match="2 arrays"):
        find_name_array(text.encode(), "loader.c", "names", "load")


@pytest.mark.parametrize(
    "call", ["load(m, names, 2, out)", "ns::load(m, &names[0], 2, out)", "loader->load(m, (void *)names, 2)"]
)
def test_calls_are_found_however_the_array_is_handed_over(call: str) -> None:
    text = f'const char *names[] = {{ "a", "b" }};\nint f() {{ return {call}; }}\n'
    found = find_name_array(text.encode(), "loader.cpp", "names", "load")
    assert found.count is not None
    assert found.count.value == 2


def test_the_count_may_stand_elsewhere() -> None:
    text = b'const char *names[] = { "a" };\nint x = load(7, out, names);\n'
    found = find_name_array(text, "loader.c", "names", "load", count_argument=0)
    assert found.count is not None
    assert found.count.value == 7


@example("")
@given(st.text(alphabet="\"'/*\\\n\r {},ab#R()", max_size=60))
def test_masking_moves_nothing(text: str) -> None:
    data = text.encode()
    masked = mask(data, "x.c")
    assert len(masked.code) == len(data)
    assert [index for index, byte in enumerate(masked.text) if byte == "\n"] == [
        match.start() for match in re.finditer("\n", masked.text)
    ]
    for index, (old, new) in enumerate(zip(masked.text, masked.code, strict=True)):
        # Apart from blanks there are the quotes of a raw string, which becomes an empty one.
        assert new in (old, " ", '"'), index


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('extern "C" { static int x[] = {1, 2}; __global__ void a() { { } } __global__ void b() { } }', ["a", "b"]),
        ("struct S { int y; }; void host() { if (1) { } } __global__ void k() { char c = '{'; f(\"}\"); }", ["k"]),
        ("namespace n { __global__ void k(int a) { [](){ }(); } }", ["k"]),
        ("__global__ void open() { if (1) { \n", None),
        ("} __global__ void k() { }", ["k"]),
    ],
)  # fmt: skip
def test_bodies_that_are_not_parsed_hide_no_kernel(text: str, names: list[str] | None) -> None:
    source = read_kernels(text, "a.cu")
    found = [kernel.name for kernel in source.kernels]
    if names is None:
        assert found or source.unread  # not a word is lost: read, or said to be unread
    else:
        assert found == names
