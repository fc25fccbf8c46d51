"""Texts that no one writes by hand, macros and includes without end; and the included files that a source may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.csource import find_kernels, read_kernels
from ssmtool.csource.view import Included
from ssmtool.errors import SsmtoolError

KERNEL = 'extern "C" __global__ void k(int *x) { x[0] = 1; }\n'


@pytest.mark.parametrize(
    "text",
    [
        f"// {'x' * 3_000_000}\n",
        f"/* {'__global__ ' * 100_000} */",
        " " * 3_000_000,
        "int a;\n" * 50_000,
        "//a\n" * 50_000,
        f"int y = {'(' * 50_000}1{')' * 50_000};\n",
        f"void f() {'{' * 50_000}{'}' * 50_000}\n",
        "#\n" * 50_000,
        "#if X\n" * 5_000 + "int a;\n" + "#endif\n" * 5_000,
        "#if X\nint a;\n#endif\n" * 5_000,
        f"#if {'(' * 50_000}1{')' * 50_000}\n#endif\n",
        f"#if {'*'.join(['9' * 1000] * 500)}\n#endif\n",
        "#define A0 1\n" + "".join(f"#define A{i + 1} A{i}{f'+A{i}' * 9}\n" for i in range(14)) + "#if A14\n#endif\n",
        'extern "C" {' * 5_000 + "}" * 5_000,
        "char *s = " + r'"\"" ' * 50_000 + "\n;\n",
        'R"(' * 30_000 + '"\n;',
    ],
    ids=[
        "comment", "kernels in a comment", "blanks", "lines", "comments", "parentheses", "braces", "directives", "deep",
        "conditions", "deep condition", "huge number", "bomb in a condition", "linkage", "quotes", "raw strings",
    ],
)  # fmt: skip
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    """What took minutes or all the memory, at a size that a quadratic reader does not survive."""
    source = read_kernels(text + KERNEL, "x.cu", defines={})
    assert [kernel.name for kernel in source.kernels] == ["k"] or (source.unread and text.startswith("R"))


@pytest.mark.parametrize(
    ("text", "macro"),
    [
        (
            "#define A0 __global__\n" + "".join(f"#define A{i + 1} {f'A{i} ' * 10}\n" for i in range(12)) + "A12\n",
            r"x\.cu:14: the macro A\d+ has no end: its expansion passes 2 MB",
        ),
        ("#define P extern Q\n#define Q P\nP\n", r"x\.cu:3: the macro P has no end: its expansion passes 64 levels"),
    ],
    ids=["bomb", "circle"],
)
def test_a_macro_without_end_is_refused_by_name(text: str, macro: str) -> None:
    with pytest.raises(SsmtoolError, match=macro) as error:
        read_kernels(text + KERNEL, "x.cu")
    assert error.value.exit_code == 2


def test_a_macro_that_names_itself_or_lies_deep_is_expanded() -> None:
    text = "#define M0 __global__ void\n" + "".join(f"#define M{i + 1} M{i}\n" for i in range(40))
    text += (
        '#define k1 k1\nextern "C" M40 k1(int x) {}\n#define extern extern\nextern "C" __global__ void k2(int x) {}\n'
    )
    assert [kernel.name for kernel in find_kernels(text, "x.cu")] == ["k1", "k2"]


def test_a_condition_is_expanded_before_it_is_valued() -> None:
    text = "#define N 1 + 1\n#define F(x) x * 2\n#if N * 2 == 3 && F(N) == 3\n" + KERNEL + "#endif\n"
    assert [kernel.conditional for kernel in find_kernels(text, "x.cu")] == [False]


FILES = {
    "common.cuh": '#pragma once\n#include <stdint.h>\n#define KERNEL extern "C" __global__ void\n',
    "more.cuh": '#ifndef MORE\n#define MORE\n#include "common.cuh"\n// extern "C" __global__ void old(int x) {}\n'
    "KERNEL more(int x)\n{ }\n#endif",
    "list.inc": "__global__ void listed(int x) {}\n#ifdef WIDE\n__global__ void wide(int x) {}\n#endif\n",
    "self.cuh": '#include "self.cuh"\n',
    "wide.cuh": '#include "lf.cuh"\n' * 9000,
    "lf.cuh": "int x;\n",
}


def included(text: str, _includer: Path) -> Included | None:
    name = text.strip('"<>')
    return Included(Path(name), name, FILES[name].encode()) if name in FILES else None


def test_kernels_of_included_files_stand_where_they_are_written() -> None:
    text = '#include "common.cuh"\nKERNEL first(int x) {}\n#include "more.cuh"\n#include "more.cuh"\nextern "C" {\n'
    text += '#include "list.inc"\n}\nKERNEL last(int x) {}\n#if 0\n#include "self.cuh"\n#endif\n'
    source = read_kernels(text, "x.cu", defines={}, resolve=included)
    assert [(kernel.name, kernel.path, kernel.line, kernel.extern_c) for kernel in source.kernels] == [
        ("first", "x.cu", 2, True),
        ("more", "more.cuh", 5, True),
        ("listed", "list.inc", 1, True),
        ("wide", "list.inc", 3, True),
        ("last", "x.cu", 8, True),
    ]
    assert [kernel.condition for kernel in source.kernels if kernel.condition] == ["#ifdef WIDE"]
    assert [(hidden.name, hidden.path, hidden.line) for hidden in source.hidden] == [("old", "more.cuh", 4)]
    assert source.includes == ("<stdint.h>",)


@pytest.mark.parametrize("name", ["self.cuh", "wide.cuh"])
def test_includes_without_end_are_refused(name: str) -> None:
    with pytest.raises(SsmtoolError, match="its text has no end"):
        read_kernels(f'#include "{name}"\n', "x.cu", resolve=included)
