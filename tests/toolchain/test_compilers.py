"""What both compilers promise: diagnostics with file and line, relative names, and the two ways to fail."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ssmtool.toolchain import CompileError, Compiler, CompileRequest, CompilerInfo, ToolchainError, find_compilers
from ssmtool.toolchain.nvcc import Nvcc
from ssmtool.toolchain.nvrtc import Nvrtc

Make = Callable[..., CompileRequest]
GOOD = 'extern "C" __global__ void k(float *o) { o[0] = 1.0f; }\n'


def test_the_fifteen_kernels_compile_to_the_pinned_isa(nvrtc: Nvrtc) -> None:
    root = Path(__file__).parents[2]
    source = root / "kernels" / "ssm_gated_delta.cu"
    result = nvrtc.compile(CompileRequest(source, source.read_text(encoding="utf-8"), root, "sm_37"))
    assert result.ptx.count(".visible .entry") == 15
    assert ".version 7.4" in result.ptx
    assert ".target sm_37" in result.ptx
    assert result.compiler.version == "11.4.152"


def test_syntax_error_has_file_and_line(compiler: Compiler, request_for: Make) -> None:
    with pytest.raises(CompileError) as caught:
        compiler.compile(request_for("// one\n// two\n" + GOOD.replace("1.0f", "oops")))
    assert caught.value.where == "kernels/k.cu:3"
    assert 'identifier "oops" is undefined' in caught.value.message
    assert caught.value.exit_code == 1


def test_error_in_an_included_file_names_that_file(compiler: Compiler, request_for: Make) -> None:
    with pytest.raises(CompileError) as caught:
        compiler.compile(request_for('#include "sub/x.cuh"\n' + GOOD, {"kernels/sub/x.cuh": "\nint bad bad;\n"}))
    assert caught.value.where == "kernels/sub/x.cuh:2"


def test_missing_include_names_the_line_and_the_setting(compiler: Compiler, request_for: Make) -> None:
    with pytest.raises(CompileError) as caught:
        compiler.compile(request_for('\n#include "nope.cuh"\n' + GOOD))
    assert caught.value.where == "kernels/k.cu:2"
    assert "nope.cuh" in caught.value.message
    assert caught.value.hint and "include_dirs" in caught.value.hint


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("nope.cuh", "add the folder of nope.cuh to include_dirs"),
        ("cuda_fp16.h", "is of the CUDA toolkit"),
        ("cooperative_groups.h", "is of the CUDA toolkit"),
        ("cub/cub.cuh", "is of the CUDA toolkit"),
        ("vector", "keep host code apart with #ifndef __CUDACC_RTC__"),
    ],
)
def test_a_header_the_embedded_compiler_lacks_has_a_way_out(
    nvrtc: Nvrtc, request_for: Make, header: str, hint: str
) -> None:
    with pytest.raises(CompileError) as caught:
        nvrtc.compile(request_for(f"#include <{header}>\n" + GOOD))
    assert caught.value.where == "kernels/k.cu:1"
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_every_error_is_told(compiler: Compiler, request_for: Make) -> None:
    with pytest.raises(CompileError) as caught:
        compiler.compile(request_for('extern "C" __global__ void k(float *o) {\no[0] = a1;\no[1] = a2;\n}\n'))
    assert "kernels/k.cu:2: error" in caught.value.diagnostics
    assert "kernels/k.cu:3: error" in caught.value.message


def test_warnings_come_through(compiler: Compiler, request_for: Make) -> None:
    result = compiler.compile(request_for('extern "C" __global__ void k(float *o) {\nint unused;\no[0] = 1;\n}\n'))
    assert result.diagnostics.startswith("kernels/k.cu:2: warning")


def test_no_absolute_path_reaches_the_ptx(compiler: Compiler, request_for: Make, tmp_path: Path) -> None:
    text = '#include <assert.h>\n#include "h.cuh"\n#include <cmath>\n' + GOOD.replace("{", "{ assert(o[0] > 0); f(o);")
    header = "static __device__ void f(float *o) { assert(o[1] > 0); o[0] = 2; }\n"
    request = request_for(text, {"inc/h.cuh": header}, include_dirs=(tmp_path / "inc",), flags=("-lineinfo",))
    ptx = compiler.compile(request).ptx
    assert '"kernels/k.cu"' in ptx
    assert str(tmp_path) not in ptx
    assert '"/' not in ptx


def test_ptx_is_the_same_from_any_folder(compiler: Compiler, request_for: Make, tmp_path: Path) -> None:
    request = request_for(GOOD, flags=("-lineinfo",))
    elsewhere = tmp_path / "another" / "place"
    shutil.copytree(tmp_path / "kernels", elsewhere / "kernels")
    moved = replace(request, root=elsewhere, source=elsewhere / "kernels" / "k.cu")
    assert compiler.compile(request).ptx == compiler.compile(moved).ptx


def test_cxx17_without_asking_and_another_dialect_when_asked(compiler: Compiler, request_for: Make) -> None:
    text = 'extern "C" __global__ void k(long *o) { o[0] = __cplusplus; }\n'
    assert "201703" in compiler.compile(request_for(text)).ptx
    assert "201402" in compiler.compile(request_for(text, flags=("--std=c++14",))).ptx


def test_a_flag_the_compiler_does_not_know_is_not_the_sources_fault(compiler: Compiler, request_for: Make) -> None:
    with pytest.raises(ToolchainError) as caught:
        compiler.compile(request_for(GOOD, flags=("--frobnicate",)))
    assert "frobnicate" in caught.value.message
    assert caught.value.exit_code == 2


def test_a_target_the_compiler_does_not_know_names_those_it_takes(compiler: Compiler, request_for: Make) -> None:
    with pytest.raises(ToolchainError) as caught:
        compiler.compile(request_for(GOOD, target="sm_999"))
    assert "setting `target`" in caught.value.message
    assert 'no code for "sm_999"; it takes sm_35, sm_37, sm_50' in caught.value.message


def test_an_architecture_among_the_flags_is_the_flags_fault(nvrtc: Nvrtc, request_for: Make) -> None:
    with pytest.raises(ToolchainError, match="the flags name another one"):
        nvrtc.compile(request_for(GOOD, flags=("-arch=sm_70",)))


def test_an_empty_flag_is_seen(nvrtc: Nvrtc, request_for: Make) -> None:
    with pytest.raises(ToolchainError, match="these flags: '' -DA:"):
        nvrtc.compile(request_for(GOOD, flags=("", "-DA")))


def test_host_code_is_refused_with_its_line_by_nvrtc(nvrtc: Nvrtc, request_for: Make) -> None:
    with pytest.raises(CompileError) as caught:
        nvrtc.compile(request_for(GOOD + "int main() { k<<<1, 1>>>(0); }\n"))
    assert caught.value.line == 2
    assert caught.value.hint == "mark the function __device__, or keep host code apart with #ifndef __CUDACC_RTC__"


def nvcc_at(path: Path) -> Nvcc:
    return Nvcc(CompilerInfo("nvcc", "11.4", "11.4.152", path, "nvcc"))


@pytest.mark.parametrize(("signal", "name"), [("KILL", "SIGKILL"), ("SEGV", "SIGSEGV")])
def test_killed_nvcc_names_the_signal(
    signal: str, name: str, request_for: Make, fake_tool: Callable[[Path, str], Path], tmp_path: Path
) -> None:
    nvcc = nvcc_at(fake_tool(tmp_path / "nvcc", f"kill -{signal} $$"))
    with pytest.raises(ToolchainError, match=name) as caught:
        nvcc.compile(request_for(GOOD))
    assert caught.value.exit_code == 2


def test_killed_cicc_is_not_the_sources_fault(
    request_for: Make, fake_tool: Callable[[Path, str], Path], tmp_path: Path
) -> None:
    words = "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"
    nvcc = nvcc_at(fake_tool(tmp_path / "nvcc", f'echo "{words}" >&2; exit 9'))
    with pytest.raises(ToolchainError, match="died due to signal 9"):
        nvcc.compile(request_for(GOOD))


def test_nvcc_that_writes_nothing_is_an_error(
    request_for: Make, fake_tool: Callable[[Path, str], Path], tmp_path: Path
) -> None:
    with pytest.raises(ToolchainError, match="left no PTX"):
        nvcc_at(fake_tool(tmp_path / "nvcc", "exit 0")).compile(request_for(GOOD))


def test_nvcc_that_is_not_there(request_for: Make, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="cannot be started"):
        nvcc_at(tmp_path / "gone").compile(request_for(GOOD))


FAKE_NVRTC = """\
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int nvrtcVersion(int *a, int *b) { *a = 11; *b = MINOR; return 0; }
const char *nvrtcGetErrorString(int r) { return "NVRTC_SUCCESS"; }
int nvrtcCreateProgram(void **p, const char *s, const char *n, int k, void *h, void *i) { return 0; }
int nvrtcCompileProgram(void *p, int n, void *o) { puts("noise on stdout"); fflush(stdout); ACTION; return 0; }
int nvrtcGetProgramLogSize(void *p, size_t *n) { *n = 1; return 0; }
int nvrtcGetProgramLog(void *p, char *s) { *s = 0; return 0; }
int nvrtcGetPTXSize(void *p, size_t *n) { *n = 1; return 0; }
int nvrtcGetPTX(void *p, char *s) { *s = 0; return 0; }
"""


@pytest.fixture
def fake_nvrtc(tmp_path: Path) -> Callable[..., Nvrtc]:
    """An NVRTC that misbehaves: a real shared library, loaded by the real child."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: a crashing NVRTC was not tried")

    def make(action: str, minor: int = 4) -> Nvrtc:
        source = tmp_path / "fake.c"
        source.write_text(FAKE_NVRTC, encoding="utf-8")
        library = tmp_path / "libnvrtc-fake.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", f"-DACTION={action}", f"-DMINOR={minor}", "-o", library, source], check=True
        )
        return Nvrtc(CompilerInfo("nvrtc", "11.4", "11.4.152", library, "fake"), library)

    return make


@pytest.mark.parametrize(
    ("action", "name"), [("raise(SIGSEGV)", "SIGSEGV"), ("abort()", "SIGABRT"), ("raise(SIGKILL)", "SIGKILL")]
)
def test_crashing_nvrtc_takes_only_its_child_along(
    action: str, name: str, fake_nvrtc: Callable[..., Nvrtc], request_for: Make
) -> None:
    with pytest.raises(ToolchainError, match=name):
        fake_nvrtc(action).compile(request_for(GOOD))


def test_endless_nvrtc_is_stopped(fake_nvrtc: Callable[..., Nvrtc], request_for: Make) -> None:
    with pytest.raises(ToolchainError, match=r"stopped after 1 s"):
        fake_nvrtc("sleep(60)").compile(request_for(GOOD, timeout_s=1.0))


def test_nvrtc_that_leaves_the_process_gives_no_answer(fake_nvrtc: Callable[..., Nvrtc], request_for: Make) -> None:
    with pytest.raises(ToolchainError, match="gave no answer"):
        fake_nvrtc("_exit(0)").compile(request_for(GOOD))


def test_what_nvrtc_prints_does_not_spoil_the_answer(fake_nvrtc: Callable[..., Nvrtc], request_for: Make) -> None:
    assert fake_nvrtc("(void)0").compile(request_for(GOOD)).ptx == ""


def test_nvrtc_of_another_release_than_its_name_is_refused(fake_nvrtc: Callable[..., Nvrtc], request_for: Make) -> None:
    with pytest.raises(ToolchainError, match=r"says it is NVRTC 11\.8"):
        fake_nvrtc("(void)0", minor=8).compile(request_for(GOOD))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:4000], "killed by SIGBUS|cannot be loaded"),
        (lambda _: b"not a library", "cannot be loaded"),
    ],
    ids=["truncated", "not-elf"],
)
def test_damaged_library_is_an_error_with_the_way_out(
    damage: Callable[[bytes], bytes], words: str, nvrtc: Nvrtc, request_for: Make, tmp_path: Path
) -> None:
    damaged = tmp_path / "libnvrtc.so.11.2"
    damaged.write_bytes(damage(nvrtc.info.path.read_bytes()))
    broken = Nvrtc(replace(nvrtc.info, path=damaged), nvrtc.builtins)
    with pytest.raises(ToolchainError, match=words) as caught:
        broken.compile(request_for(GOOD))
    assert caught.value.hint
    assert caught.value.hint.startswith("ssmtool toolchain install")
    assert caught.value.path is not None
    assert "libnvrtc" in caught.value.path


def test_mangled_names_of_a_wheel_work_through_links(nvrtc: Nvrtc, request_for: Make, tmp_path: Path) -> None:
    library = tmp_path / "libnvrtc-f0492a2f.so.11.4.152"
    builtins = tmp_path / "libnvrtc-builtins-8fb1c221.so.11.4.152"
    library.symlink_to(nvrtc.info.path)
    builtins.symlink_to(nvrtc.builtins)
    mangled = Nvrtc(replace(nvrtc.info, path=library), builtins)
    assert mangled.compile(request_for(GOOD)).ptx == nvrtc.compile(request_for(GOOD)).ptx


def test_nvcc_of_any_release_takes_the_same_command_line(request_for: Make) -> None:
    """CUDA 12 and 13 cannot target sm_37, but their nvcc has to understand what this room asks of it."""
    found = [item for item in find_compilers() if item.kind == "nvcc" and item.info]
    if not found or found[0].info is None:
        pytest.skip("no nvcc at all: the nvcc command line was not tried on a real nvcc")
    ptx = Nvcc(found[0].info).compile(request_for(GOOD, target="sm_75", flags=("-lineinfo",))).ptx
    assert ".target sm_75" in ptx
    assert '"kernels/k.cu"' in ptx
