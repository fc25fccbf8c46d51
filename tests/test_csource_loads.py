"""Which constant goes with which array: what a loader's text says of it, and where it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT
from ssmtool.csource.loads import code_words, find_pairs, loaded_constants, surely_used

WALK = """\
static int take(CUmodule m, const char *const *names, int n, CUfunction *out)
{
    for (int i = 0; i < n; i++)
        if (cuModuleGetFunction(&out[i], m, names[i])) return -1;
    return 0;
}
"""


def told(code: str, name: str = "load.c") -> dict[str, str]:
    pairs = find_pairs(code.encode(), name, ["A_PTX", "B_PTX"], ["a_names", "b_names"])
    return {pair.array: pair.constant for pair in pairs}


STRAIGHT = {"a_names": "A_PTX", "b_names": "B_PTX"}


@pytest.mark.parametrize(
    "body",
    [
        "CUmodule a, b; if (cuModuleLoadData(&a, A_PTX) || cuModuleLoadDataEx(&b, B_PTX, 0, 0, 0)) return -1;"
        " return take(a, a_names, 1, f) || take(b, b_names, 2, g);",
        "CUmodule m; cuModuleLoadData(&m, A_PTX); take(m, a_names, 1, f); cuModuleLoadData(&m, B_PTX);"
        " take(m, b_names, 2, g);",
        "load_all(A_PTX, a_names, f, 1); load_all(B_PTX, &b_names[0], g, 2);",
        "const char *p = A_PTX; const void *const q = B_PTX; load(p, a_names); load((void *)q, b_names);",
        "CUmodule a = open(A_PTX), b; b = open(B_PTX); take(a, a_names, 1, f); take(b, b_names, 2, g);",
        "open(&c->a, A_PTX); open(&c->b, B_PTX); take(c->a, a_names, 1, f); take(c->b, b_names, 2, g);",
        "CUmodule a, b; open(&a, A_PTX); open(&b, B_PTX); cuModuleGetFunction(&f[i], a, a_names[i]);"
        " cuModuleGetFunction(&g[i], b, b_names[i]);",
        "static const struct mod mods[] = {{A_PTX, a_names, 1}, {B_PTX, b_names, 2}}; load_mods(mods);",
        "if (x) { cuModuleLoadData(&m, A_PTX); take(m, a_names, 1, f); } else { cuModuleLoadData(&m, B_PTX);"
        " take(m, b_names, 2, g); }",
    ],
)
def test_an_array_is_followed_to_its_constant(body: str) -> None:
    assert told(f"{WALK}int start(void) {{ {body} }}") == STRAIGHT
    swapped = body.replace("A_PTX", "?").replace("B_PTX", "A_PTX").replace("?", "B_PTX")
    assert told(f"{WALK}int start(void) {{ {swapped} }}") == {"a_names": "B_PTX", "b_names": "A_PTX"}


def test_a_function_that_walks_its_own_array_takes_the_module_as_a_parameter() -> None:
    walk = "int take_{0}(CUmodule m) {{ for (;;) cuModuleGetFunction(&f[i], m, {0}_names[i]); }}\n"
    code = walk.format("a") + walk.format("b")
    code += "CUmodule a, b; int start(void) { cuModuleLoadData(&a, B_PTX); cuModuleLoadData(&b, A_PTX); }\n"
    assert told(code + "int run(void) { return take_a(a) || take_b(b); }") == {"a_names": "B_PTX", "b_names": "A_PTX"}


@pytest.mark.parametrize(
    "body",
    [
        "cuModuleLoadData(&m, fast ? A_PTX : B_PTX); take(m, a_names);",
        "if (fast) cuModuleLoadData(&m, B_PTX); else cuModuleLoadData(&m, A_PTX); take(m, a_names);",
        "cuModuleLoadData(&m, B_PTX); cuModuleLoadData(&m, text); take(m, a_names);",
        "for (i = 0; i < 2; i++) cuModuleLoadData(&mods[i], texts[i]); take(mods[0], a_names);",
        'printf("A_PTX"); take(m, a_names); /* B_PTX */',
        "const char *p = B_PTX; p = text(); load(p, a_names);",
        "load(a_names, b_names, A_PTX);",
    ],
)
def test_nothing_is_said_where_the_text_does_not_tell(body: str) -> None:
    assert told(f"int start(CUmodule m) {{ {body} }}") == {}


def test_a_variable_of_another_function_is_another_variable() -> None:
    code = (
        "void one(void) { CUmodule m; cuModuleLoadData(&m, B_PTX); }\nvoid two(CUmodule m) { take(m, a_names, 1, f); }"
    )
    assert told(code) == {}


def test_words_are_those_that_compile() -> None:
    code = '// A_PTX\n/* A_PTX */ char *s = "A_PTX";\n#if 0\nload(A_PTX);\n#endif\n'
    code += "#ifndef A_PTX\n#endif\n#define L B_PTX\n"
    words = code_words(code.encode(), "load.c")
    assert words is not None
    assert "A_PTX" not in words
    assert "B_PTX" in words
    assert code_words(b"#define LOAD(n) load(n##_PTX)\n", "load.c") is None


def test_a_text_that_the_file_makes_itself_is_no_constant_of_another() -> None:
    code = (
        b"int f(const char *const ptx) { cuModuleLoadData(&m, ptx); cuModuleLoadData(&m, KERNELS); load(MY_PTX, 1); }"
    )
    assert loaded_constants(code, "load.c") == {"KERNELS": 1, "MY_PTX": 1}


def test_the_products_own_loaders_tell_the_truth() -> None:
    constants = ["FC_PTX_SSM_GATED_DELTA", "FC_PTX_SSM_GATED_DELTA_FAST"]
    found = {}
    for name, array in (("fc_cuda.c", "ssm_names"), ("fc_cuda_fast.h", "fast_names")):
        path = ROOT / "kernels" / name
        found |= {p.array: p.constant for p in find_pairs(path.read_bytes(), path, constants, [array])}
    assert found == {"ssm_names": constants[0], "fast_names": constants[1]}


@pytest.mark.parametrize(
    "data", [b"", b"int", b"{{{{", b"(((" * 300, b"a(&b, A_PTX" * 300, b'"' * 999, b"\xff\xfe" * 9]
)
def test_no_text_is_too_broken_to_say_nothing_of(data: bytes, tmp_path: Path) -> None:
    try:
        assert find_pairs(data, tmp_path / "x.c", ["A_PTX"], ["a_names"]) == []
    except Exception as error:
        assert type(error).__name__ == "SsmtoolError"


@pytest.mark.parametrize(
    ("code", "sure"),
    [
        ("load(A_PTX);\n", True),
        ("#ifndef L_H\n#define L_H\nload(A_PTX);\n#endif\n", True),
        ("#ifdef X\n#endif\nload(A_PTX);\n", True),
        ("#if 0\nload(A_PTX);\n#endif\n", False),
        ("#ifndef L_H\n#define L_H\n#if 0\nload(A_PTX);\n#endif\n#endif\n", False),
        ('f("A_PTX");\n', False),
        ("// A_PTX\n#ifdef A_PTX\n#endif\nload(AA_PTX, A_PTX_);\n", False),
    ],
)
def test_what_is_sure_at_a_glance_is_what_the_preprocessor_finds(code: str, sure: bool) -> None:
    assert surely_used(code.encode(), "load.h", ["A_PTX"]) == ({"A_PTX"} if sure else set())
    words = code_words(code.encode(), "load.h")
    assert words is not None
    assert ("A_PTX" in words) == sure
