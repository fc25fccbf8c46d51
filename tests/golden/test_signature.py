"""What `golden new` makes of parameters: C types where they are known, else what the PTX loads and stores."""

from __future__ import annotations

import pytest

from conftest import ROOT
from ssmtool.errors import SsmtoolError
from ssmtool.files import read_source
from ssmtool.golden.signature import c_type, of_kernel
from ssmtool.project import read_project
from ssmtool.ptx import parse
from ssmtool.ptx.embedded import extract
from ssmtool.registry.included import kernels_of_source

HEAD = ".version 7.4\n.target sm_37\n.address_size 64\n"


def kernel(parameters: str, body: str) -> str:
    """One kernel `k` with registers for its body."""
    return (
        f"{HEAD}.visible .entry k({parameters})\n{{\n.reg .b64 %rd<20>;\n.reg .f32 %f<9>;\n.reg .b16 %rs<9>;\n"
        f".reg .b32 %r<9>;\n{body}\nret;\n}}\n"
    )


def told(text: str, *c_types: str) -> dict[str, tuple[str, str, bool]]:
    """Name -> (what, type, sure), what being a number, in, out or in-out."""
    entry = parse(text).entries[0]
    names = [each.name for each in entry.params]
    words = {(True, False): "in", (False, True): "out", (True, True): "in-out"}
    return {
        each.name: (words[each.loaded, each.stored] if each.buffer else "number", each.dtype, each.sure)
        for each in of_kernel(entry, names, c_types)
    }


IN_PLACE = kernel(
    ".param .u64 x, .param .u64 r, .param .u64 n",
    "ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [r];\nld.param.u64 %rd3, [n];\n"
    "cvta.to.global.u64 %rd4, %rd1;\ncvta.to.global.u64 %rd5, %rd2;\nshl.b64 %rd6, %rd3, 2;\n"
    "add.s64 %rd7, %rd4, %rd6;\nadd.s64 %rd8, %rd5, %rd6;\nld.global.f32 %f1, [%rd7];\nld.global.nc.f32 %f2, [%rd8];\n"
    "add.f32 %f3, %f1, %f2;\nst.global.f32 [%rd7], %f3;",
)


def test_a_64_bit_length_is_no_buffer_and_a_buffer_in_place_is_given_and_expected() -> None:
    assert told(IN_PLACE) == {
        "x": ("in-out", "float32", True), "r": ("in", "float32", True), "n": ("number", "int64", False),
    }  # fmt: skip


def test_c_says_what_ptx_leaves_open() -> None:
    assert told(IN_PLACE, "float *", "const float *__restrict__", "size_t")["n"] == ("number", "uint64", True)


def test_a_byte_index_that_is_added_without_a_scale_is_no_address_beside_one_that_is() -> None:
    text = kernel(
        ".param .u64 q, .param .u64 n",
        "ld.param.u64 %rd1, [q];\nld.param.u64 %rd2, [n];\ncvta.to.global.u64 %rd3, %rd1;\n"
        "add.s64 %rd4, %rd3, %rd2;\nld.global.s8 %rs1, [%rd4];\nst.global.u8 [%rd3], %rs1;",
    )
    found = told(text, "signed char *", "long long")
    assert found == {"q": ("in-out", "int8", True), "n": ("number", "int64", True)}
    assert told(text)["n"] == ("number", "int64", False)


def test_half_is_loaded_as_bits_and_only_a_guess_without_c() -> None:
    text = kernel(
        ".param .u64 h", "ld.param.u64 %rd1, [h];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.u16 %rs1, [%rd2];"
    )
    assert told(text, "const __half *")["h"][1] == "float16"
    assert told(text)["h"][2] is False


def test_an_address_that_is_walked_on_in_a_loop_stays_one() -> None:
    text = kernel(
        ".param .u64 y, .param .u32 n",
        "ld.param.u64 %rd9, [y];\nL:\nmov.u64 %rd2, %rd9;\nst.global.v2.f32 [%rd2], {%f1, %f2};\n"
        "add.s64 %rd9, %rd2, 8;\nbra L;",
    )
    assert told(text) == {"y": ("out", "float32", True), "n": ("number", "int32", True)}


def test_atomics_load_and_store() -> None:
    text = kernel(".param .u64 b", "ld.param.u64 %rd1, [b];\nred.global.add.u32 [%rd1], 1;")
    assert told(text) == {"b": ("in-out", "uint32", True)}


def test_a_structure_by_value_is_refused_by_its_name() -> None:
    with pytest.raises(SsmtoolError, match=r"k: s is a structure or an array by value \(8 bytes\)"):
        told(kernel(".param .align 4 .b8 s[8]", ""))


@pytest.mark.parametrize(
    ("written", "pointer", "const", "dtype"),
    [
        ("const int8_t *__restrict__", True, True, "int8"),
        ("unsigned long long", False, False, "uint64"),
        ("long unsigned int", False, False, "uint64"),
        ("signed char const *", True, True, "int8"),
        ("const float4 *", True, True, "float32"),
        ("unsigned", False, False, "uint32"),
        ("float *const", True, False, "float32"),
        ("my_type *", True, False, None),
        ("", False, False, None),
    ],
)
def test_types_as_people_write_them(written: str, pointer: bool, const: bool, dtype: str | None) -> None:
    found = c_type(written)
    assert (found.pointer, found.const, found.dtype) == (pointer, const, dtype)


def test_ptx_alone_tells_the_products_kernels_as_their_c_does() -> None:
    # Two sources that know nothing of each other: the compiled text, and the parameters in the C source.
    project = read_project(ROOT / "pyproject.toml")
    assert project is not None
    module = project.settings.module[0]
    source = kernels_of_source(project, module, read_source(project.path(module.source))).kernels
    in_c = {kernel.name: [c_type(each.type) for each in kernel.parameters] for kernel in source}
    path = ROOT / "generated/fc_cuda_ptx.h"
    for entry in parse(extract(path.read_bytes(), str(path))[0].text).entries:
        found = of_kernel(entry, [each.name for each in entry.params])
        assert len(found) == len(in_c[entry.name])
        for each, kind in zip(found, in_c[entry.name], strict=True):
            assert each.buffer == kind.pointer, f"{entry.name}: {each}"
            if each.buffer:
                assert not (kind.const and each.stored) and (each.dtype == kind.dtype or not each.sure)
