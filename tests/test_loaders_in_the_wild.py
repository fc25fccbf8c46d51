"""Loaders as people write them: each is read as its compiler reads it, or it is said that it cannot be told.

The oracle is the compiler: every loader is built with a `load` that prints the names it is handed, before and after the
fix. `ANSWER` variants must be read; `OPEN` ones must be refused with the words given.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ssmtool.csource import NameArray, find_name_array, read_kernels
from ssmtool.csource.view import Included
from ssmtool.errors import SsmtoolError
from ssmtool.registry import RegistryReport, check_registry
from ssmtool.registry.fix import plan_fix

MODULE = ["fc_a", "fc_b", "fc_c"]
SOURCE = "".join(f'extern "C" __global__ void {name}(int x) {{}}\n' for name in MODULE)
HEADERS = {
    "names.h": '#ifndef NAMES_H\n#define NAMES_H\n#define NAME_A "fc_a"\nenum { FIRST, SECOND, KERNELS };\n'
    "#define LEN(x) (sizeof(x) / sizeof((x)[0]))\n#define TWO (1 << 1)\n#endif\n",
    "array.h": 'static const char *names[] = { "fc_a", "fc_b" };\n',
}
CALL = "int start(void) { return load(names, %s); }\n"
PLAIN = 'static const char *names[] = { "fc_a", "fc_b" };\n'
LINES = 'static const char *const names[] = {\n    "fc_a",\n    "fc_b",\n};\n'
SIZEOF = "sizeof names / sizeof names[0]"

# name -> (suffix, text, whether --fix may add the third name)
ANSWER: dict[str, tuple[str, str, bool]] = {
    "without static": (".c", 'const char *names[] = { "fc_a", "fc_b" };\n' + CALL % "2", True),
    "char array of arrays": (".c", 'static const char names[][8] = { "fc_a", "fc_b" };\n' + CALL % SIZEOF, True),
    "rows with both sizes": (".c", 'char names[2][8] = { "fc_a", "fc_b" };\n' + CALL % SIZEOF, True),
    "trailing NULL": (".c", 'static const char *names[] = { "fc_a", "fc_b", NULL };\n' + CALL % f"{SIZEOF} - 1", True),
    "trailing zero": (".c", 'static const char *names[] = { "fc_a", "fc_b", 0 };\n' + CALL % "2", True),
    "designated in order": (".c", 'const char *names[] = { [0] = "fc_a", [1] = "fc_b" };\n' + CALL % "2", False),
    "designated backwards": (".c", 'const char *names[] = { [1] = "fc_b", [0] = "fc_a" };\n' + CALL % "2", False),
    "designated, then on": (".c", 'const char *names[] = { [0] = "fc_a", "fc_b" };\n' + CALL % "2", False),
    "designated by enum": (
        ".c",
        'enum { A, B, N };\nconst char *names[N] = { [B] = "fc_b", [A] = "fc_a" };\n' + CALL % "N",
        False,
    ),
    "macro names": (".c", '#define A "fc_a"\nconst char *names[] = { A, "fc_b" };\n' + CALL % SIZEOF, False),
    "macro of a header": (".c", '#include "names.h"\nconst char *names[] = { NAME_A, "fc_b" };\n' + CALL % "2", False),
    "stringised": (".c", '#define K(x) "fc_" #x\nconst char *names[] = { K(a), K(b) };\n' + CALL % "2", False),
    "a list by macro": (
        ".c",
        '#define LIST(X) X(a) X(b)\n#define NAME(x) "fc_" #x,\nconst char *names[] = { LIST(NAME) };\n' + CALL % SIZEOF,
        False,
    ),
    "joined strings": (".c", 'const char *names[] = { "fc_" "a", "fc_b" };\n' + CALL % "2", False),
    "cast strings": (".c", 'const char *names[] = { (const char *)"fc_a", ("fc_b") };\n' + CALL % "2", True),
    "comments between": (
        ".c",
        'const char *names[] = { /* 0 */ "fc_a", /* 1 */ "fc_b" /* end */ };\n' + CALL % "2",
        True,
    ),
    "a comment as a name": (".c", LINES.replace('"fc_b",', '// "fc_x",\n    "fc_b", /* "fc_y" */') + CALL % "2", True),
    "line continuation": (".c", 'const char *names[] = { "fc_a", \\\n  "fc_b" };\n' + CALL % "2", True),
    "spliced name": (".c", 'const char *names[] = { "fc_\\\na", "fc_b" };\n' + CALL % "2", True),
    "crlf": (".c", (LINES + CALL % "2").replace("\n", "\r\n"), True),
    "tabs": (".c", LINES.replace("    ", "\t") + CALL % "2", True),
    "byte-order mark": (".c", "\ufeff" + LINES + CALL % "2", True),
    "comma first": (".c", 'const char *names[] = {\n    "fc_a"\n  , "fc_b"\n};\n' + CALL % "2", True),
    "no line end at the end": (".c", (LINES + CALL % "2").rstrip("\n"), True),
    "switched off beside": (".c", '#if 0\nconst char *names[] = { "x" };\n#endif\n' + PLAIN + CALL % "2", True),
    "raw string before": (".cpp", 'const char *t = R"(const char *names[] = {"x"};)";\n' + PLAIN + CALL % "2", True),
    "sized": (".c", 'const char *names[2] = { "fc_a", "fc_b" };\n' + CALL % "2", True),
    "sized by shift": (".c", 'const char *names[1 << 1] = { "fc_a", "fc_b" };\n' + CALL % SIZEOF, False),
    "count in hex": (".c", PLAIN + CALL % "0x2u", False),
    "count in octal": (".c", PLAIN + CALL % "02", False),
    "count in binary": (".c", PLAIN + CALL % "0b10", False),
    "count by shift": (".c", PLAIN + CALL % "1 << 1", False),
    "count by condition": (".c", PLAIN + CALL % "sizeof(names) > 0 ? 2 : -1", False),
    "count by minus": (".c", PLAIN + CALL % "-(-2)", False),
    "count by cast": (".c", PLAIN + CALL % "(int)(unsigned)2", True),
    "count by sizeof element": (".c", PLAIN + CALL % "sizeof names / sizeof *names", True),
    "count by sizeof type": (".c", PLAIN + CALL % "(int)(sizeof(names) / sizeof(const char *))", True),
    "count by own macro": (".c", "#define N(a) (sizeof (a)/sizeof *(a))\n" + PLAIN + CALL % "N(names)", True),
    "count by a header's macro": (".c", '#include "names.h"\n' + PLAIN + CALL % "LEN(names)", True),
    "count by a header's enum": (".c", '#include "names.h"\n' + PLAIN + CALL % "KERNELS", False),
    "count by a header's shift": (".c", '#include "names.h"\n' + PLAIN + CALL % "TWO", False),
    "count by unbraced sum": (".c", "#define ONE 3 - 1\n" + PLAIN + CALL % "ONE * 1 + 0", False),
    "count by constant": (
        ".c",
        "static const int n = 2;\n" + PLAIN + CALL % "n",
        False,
    ),
    "redefined": (".c", "#define N 9\n#undef N\n#define N 2\n" + PLAIN + CALL % "N", False),
    "std::array": (
        ".cpp",
        '#include <array>\nconstexpr std::array<const char *, 2> names = {"fc_a", "fc_b"};\n'
        "int start() { return load(names.data(), names.size()); }\n",
        True,
    ),
    "std::array in two braces": (
        ".cpp",
        '#include <array>\nstatic const std::array<const char *, 2> names{{"fc_a", "fc_b"}};\n'
        "int start() { return load(&names[0], (int)names.size()); }\n",
        True,
    ),
    "constexpr": (
        ".cc",
        'static constexpr const char *names[]{"fc_a", "fc_b"};\n' + CALL % "static_cast<int>(2)",
        False,
    ),
    "std::size": (
        ".cpp",
        "#include <iterator>\n" + PLAIN + "int start() { return load(names, std::size(names)); }\n",
        True,
    ),
}

OPEN: dict[str, tuple[str, str, str]] = {
    "structs": (
        ".c",
        'struct { void *f; const char *n; } names[] = { {0, "fc_a"} };\n' + CALL % "1",
        "not a plain string",
    ),
    "array in a header": (".c", '#include "array.h"\n' + CALL % "2", "array.h, which it includes, may have it"),
    "two branches": (
        ".c",
        f'#ifdef W\n{PLAIN}#else\nconst char *names[] = {{"fc_c"}};\n#endif\n' + CALL % "2",
        "2 arrays",
    ),
    "designated with a gap": (
        ".c",
        'const char *names[] = { [0] = "fc_a", [2] = "fc_b" };\n' + CALL % "3",
        "place empty",
    ),
    "designated by a stranger": (".c", 'const char *names[] = { [X] = "fc_a" };\n' + CALL % "1", "cannot be told"),
    "a range": (".c", 'const char *names[] = { [0 ... 1] = "fc_a" };\n' + CALL % "2", "cannot be|not a plain"),
    "escapes": (".c", 'const char *names[] = { "fc\\x5fa" };\n' + CALL % "1", "not a plain string"),
    "a macro without end": (
        ".c",
        "#define A0 0+\n"
        + "".join(f"#define A{i + 1} {f'A{i} ' * 9}\n" for i in range(9))
        + "const char *names[] = { A9 };\n"
        + CALL % "1",
        "not a plain string",
    ),
    "digraphs": (".c", 'const char *names<::> = <% "fc_a", "fc_b" %>;\n' + CALL % "2", "not a list"),
    "trigraph splice": (".c", "// the names ??/\n" + PLAIN + CALL % "2", "trigraph"),
}

UNKNOWN_COUNTS = [
    "n", "count()", "X", "sizeof names", "sizeof(names) / 8", "2 / 0", "3000000000", "-1 > sizeof names", "2.0",
    "1 << 40", "sizeof(int)", "(unsigned char)300", "load_count", "(X)3 / 2.0f", "twice", "param", "'ab'",
]  # fmt: skip


def resolve(text: str, _includer: Path) -> Included | None:
    name = text[1:-1]
    return Included(Path(name), name, HEADERS[name].encode()) if name in HEADERS else None


def read(data: bytes, path: str) -> NameArray:
    return find_name_array(data, path, "names", "load", resolve=resolve)


def check(data: bytes, path: str) -> RegistryReport:
    return check_registry(
        module_name="kernels",
        source=read_kernels(SOURCE, "kernels.cu", defines={}),
        header_entries=MODULE,
        header_path="header.h",
        constant="PTX",
        loader=read(data, path),
    )


def compiled(tmp_path: Path, data: bytes, suffix: str) -> list[str]:
    """The names the built loader hands over."""
    compiler = shutil.which("gcc" if suffix == ".c" else "g++")
    if compiler is None:
        pytest.skip("no gcc: what was read was not compared with a compiler's")
    for name, text in HEADERS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / f"loader{suffix}").write_bytes(data)
    link = "" if suffix == ".c" else 'extern "C" '
    (tmp_path / "host.h").write_text(f"#include <stddef.h>\n{link}int show(const char *, int);\n"
        "#define load(names, count) (each((const char *)(names), sizeof *(names), (count), sizeof **(names) * 0))\n"
        "static int each(const char *p, size_t step, int count, size_t z) {\n"
        "    for (int i = 0; i < count; i++)\n"
        "        show(step == sizeof(char *) && PTRS ? ((const char *const *)p)[i] : p + (size_t)i * step, (int)z);\n"
        "    return 0;\n}\n")  # fmt: skip
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\nint show(const char *s, int z) { return printf("%s\\n", s) + z; }\n'
        "int start(void);\nint main(void) { return start(); }\n"
    )
    gcc = shutil.which("gcc") or "gcc"
    pointers = f"-DPTRS={int(b'[8]' not in data)}"
    flags = ["-w", pointers, "-include", "host.h"] + (["-std=c++17"] if suffix != ".c" else [])
    run = {"cwd": tmp_path, "check": True, "timeout": 60}
    source = [f"loader{suffix}"]
    if suffix != ".c":
        (tmp_path / "wrap.cpp").write_text(f'extern "C" int start();\n#include "loader{suffix}"\n')
        source = ["wrap.cpp"]
    subprocess.run([compiler, *flags, "-c", *source, "-o", "loader.o"], **run)  # type: ignore[call-overload]
    subprocess.run([gcc, "main.c", "loader.o", "-o", "out"], **run)  # type: ignore[call-overload]
    done = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


@pytest.mark.parametrize("name", ANSWER)
def test_a_loader_is_read_as_its_compiler_does(tmp_path: Path, name: str) -> None:
    suffix, text, fixable = ANSWER[name]
    data, path = text.encode(), f"loader{suffix}"
    found = read(data, path)
    assert found.count is not None
    assert found.count.value == 2
    assert list(found.names) == ["fc_a", "fc_b"]
    assert compiled(tmp_path, data, suffix) == ["fc_a", "fc_b"]
    fix = plan_fix(check(data, path), data)
    assert fix.changed == fixable, fix.refusal
    if not fixable:
        assert fix.refusal
        assert fix.data == data
        return
    assert list(read(fix.data, path).names) == MODULE
    assert compiled(tmp_path, fix.data, suffix) == MODULE
    again = plan_fix(check(fix.data, path), fix.data)
    assert (again.changed, again.refusal, again.data) == (False, None, fix.data)
    # Nothing but the new name and numbers came in: without them the bytes are the old ones.
    removed = plan_fix(_without_last(fix.data, path), fix.data)
    assert removed.data == data, removed.refusal


def _without_last(data: bytes, path: str) -> RegistryReport:
    return check_registry(
        module_name="kernels",
        source=read_kernels(SOURCE.rsplit("extern", 1)[0], "kernels.cu", defines={}),
        header_entries=MODULE[:2],
        header_path="header.h",
        constant="PTX",
        loader=read(data, path),
    )


@pytest.mark.parametrize("name", OPEN)
def test_what_cannot_be_told_is_said(name: str) -> None:
    suffix, text, words = OPEN[name]
    with pytest.raises(SsmtoolError, match=words) as error:
        read(text.encode(), f"loader{suffix}")
    assert error.value.exit_code == 2


@pytest.mark.parametrize("count", UNKNOWN_COUNTS)
def test_a_count_that_cannot_be_known_has_no_value(count: str) -> None:
    """Variables, calls, overflows, platform sizes, a macro under an undecided #if, a constant declared twice."""
    text = (
        "#ifdef SOMETHING\n#define X 2\n#endif\nint n = 2;\nstatic const int twice = 2;\nconst int param = 2;\n"
        "void other(void) { const int twice = 3; }\nvoid third(int param);\n" + PLAIN + CALL % count
    )
    found = find_name_array(text.encode(), "loader.c", "names", "load")
    assert found.count is not None
    assert (found.count.kind, found.count.value) == ("unknown", None)
