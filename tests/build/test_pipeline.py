"""The build itself, with the real CUDA 11.4 compiler that `make` installs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ssmtool.build.pipeline import Build, compile_project
from ssmtool.errors import ProductError, SsmtoolError
from ssmtool.header import read_header
from ssmtool.project import find_project
from ssmtool.toolchain.ptxas import assemble

SOURCE = "kernels/ssm_gated_delta.cu"


def compile_in(folder: Path) -> Build:
    return compile_project(find_project(folder))


def test_the_checked_in_header_is_what_the_build_makes(product: Path) -> None:
    assert compile_in(product).header == (product / "generated/fc_cuda_ptx.h").read_bytes()


def test_the_bytes_do_not_depend_on_the_folder_or_on_line_ends(product: Path, tmp_path: Path) -> None:
    other = tmp_path / "a folder with blanks" / "deep"
    shutil.copytree(product, other)
    source = other / SOURCE
    source.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))
    assert compile_in(other).header == compile_in(product).header


def test_line_information_carries_no_path_of_this_machine(product: Path) -> None:
    settings = product / "pyproject.toml"
    settings.write_text(settings.read_text().replace('target = "sm_37"', 'target = "sm_37"\nflags = ["-lineinfo"]', 1))
    ptx = compile_in(product).modules[0].held.ptx
    assert f'"{SOURCE}"' in ptx
    assert str(product) not in ptx
    assert product.name + "/" not in ptx


def test_ptxas_finds_no_stack_frame_and_no_spill_in_any_of_the_15_kernels(product: Path) -> None:
    ptx = read_header(product / "generated/fc_cuda_ptx.h").modules[0].ptx
    assert ".local" not in ptx
    report = assemble(ptx, "sm_37")
    assert len(report.entries) == 15
    assert {entry.stack_bytes for entry in report.entries} == {0}
    assert {entry.spill_store_bytes + entry.spill_load_bytes for entry in report.entries} == {0}


def test_the_header_is_within_ten_percent_of_its_ptx(product: Path) -> None:
    header = read_header(product / "generated/fc_cuda_ptx.h")
    assert len(header.data) < 1.10 * len(header.modules[0].ptx)


def test_a_target_no_compiler_knows_points_at_the_setting(product: Path) -> None:
    settings = product / "pyproject.toml"
    settings.write_text(settings.read_text().replace('target = "sm_37"', 'target = "sm_999"', 1))
    line = settings.read_text().splitlines().index('target = "sm_999"') + 1
    with pytest.raises(SsmtoolError, match="sm_35, sm_37") as caught:
        compile_in(product)
    assert caught.value.where == f"pyproject.toml:{line}"


def test_several_sources_each_get_a_constant(product: Path) -> None:
    (product / "kernels/scale.cu").write_text(
        'extern "C" __global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }\n'
    )
    settings = product / "pyproject.toml"
    settings.write_text(settings.read_text() + '\n[[tool.ssmtool.module]]\nsource = "kernels/scale.cu"\n')
    build = compile_in(product)
    assert [module.held.record.constant for module in build.modules] == ["FC_PTX_SSM_GATED_DELTA", "FC_PTX_SCALE"]
    assert build.modules[1].held.record.entries[0].parameters == "u64 x, f32 a"


def test_a_kernel_of_an_included_file_keeps_the_names_of_its_parameters(product: Path) -> None:
    (product / "kernels/scale.cuh").write_text(
        'extern "C" __global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }\n'
    )
    (product / "kernels/scale.cu").write_text('#include "scale.cuh"\n')
    settings = product / "pyproject.toml"
    settings.write_text(settings.read_text() + '\n[[tool.ssmtool.module]]\nsource = "kernels/scale.cu"\n')
    assert compile_in(product).modules[1].held.record.entries[0].parameters == "u64 x, f32 a"


def test_line_information_of_a_toolkits_header_has_the_same_name_wherever_the_project_lies(
    product: Path, tmp_path: Path
) -> None:
    toolkit = tmp_path / "cuda/include"
    toolkit.mkdir(parents=True)
    (toolkit / "twice.h").write_text("static __device__ float twice(float x) { return x + x; }\n")
    (product / SOURCE).write_text(
        '#include <twice.h>\nextern "C" __global__ void k(float *x) { x[threadIdx.x] = twice(x[threadIdx.x]); }\n'
    )
    settings = product / "pyproject.toml"
    more = f'target = "sm_37"\nflags = ["-lineinfo"]\ninclude_dirs = ["{toolkit}"]'
    settings.write_text(settings.read_text().replace('target = "sm_37"', more, 1))
    other = tmp_path / "a/b/c/product"
    shutil.copytree(product, other)
    header = compile_in(product).header
    assert b'\\"twice.h\\"' in header and b"<twice.h>" in header
    assert compile_in(other).header == header


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("  \n\t\n", "is empty"),
        ("static __device__ float f(float x) { return x; }\n", "has no kernels"),
        ('extern "C" __global__ void k(float *x) { x[0] = ; }\n', "expected an expression"),
    ],
)
def test_a_source_that_cannot_become_a_header_is_one_clear_error(product: Path, text: str, words: str) -> None:
    (product / SOURCE).write_text(text)
    with pytest.raises(ProductError, match=words) as caught:
        compile_in(product)
    assert caught.value.path == SOURCE
    assert caught.value.exit_code == 1


def test_a_utf16_source_is_named_as_such(product: Path) -> None:
    (product / SOURCE).write_text("__global__", encoding="utf-16")
    with pytest.raises(SsmtoolError, match="UTF-16"):
        compile_in(product)
