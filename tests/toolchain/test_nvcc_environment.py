"""Flags from NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS: in the provenance, in nvcc's order, and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run
from ssmtool.header import read_header
from ssmtool.toolchain import CompileRequest, ToolchainError
from ssmtool.toolchain.nvcc import Nvcc
from ssmtool.toolchain.nvcc_environment import environment_flags

Make = Callable[..., CompileRequest]
DIVIDES = 'extern "C" __global__ void k(float *o) { o[0] = o[1] / o[2]; }\n'
SETTINGS = '[[module]]\nsource = "k.cu"\nconstant = "K"\n'


def test_a_silent_environment_adds_nothing() -> None:
    found = environment_flags({})
    assert (found.prepend, found.append, found.host_compiler, found.told) == ((), (), None, None)


def test_what_shapes_the_code_is_apart_from_how_the_machine_runs_nvcc() -> None:
    found = environment_flags(
        {
            "NVCC_PREPEND_FLAGS": "-ccbin /opt/llvm/bin/clang-14 -DA=1 -allow-unsupported-compiler",
            "NVCC_APPEND_FLAGS": "--threads 4 -use_fast_math '-DB=a b' -t=2",
        }
    )
    assert found.prepend == ("-DA=1",)
    assert found.append == ("-use_fast_math", "-DB=a b")
    assert found.host_compiler == "clang-14"
    assert found.told is not None
    assert found.told.startswith("NVCC_PREPEND_FLAGS gives nvcc -ccbin /opt/llvm/bin/clang-14 -DA=1")


def test_a_quote_that_is_not_closed_names_the_variable() -> None:
    with pytest.raises(ToolchainError, match="NVCC_APPEND_FLAGS in the environment cannot be read"):
        environment_flags({"NVCC_APPEND_FLAGS": "'-DA"})


def test_a_real_nvcc_takes_them_and_the_result_says_so(
    nvcc: Nvcc, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nvcc.compile(request_for(DIVIDES, flags=("-DX",)))
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-use_fast_math")
    fast = nvcc.compile(request_for(DIVIDES, flags=("-DX",)))
    assert "div.approx" in fast.ptx
    assert "div.approx" not in plain.ptx
    assert plain.flags == ("-DX",)
    assert fast.flags == ("-DX", "-use_fast_math")


def test_a_fatal_flag_of_the_environment_is_traced_to_it(
    nvcc: Nvcc, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--frobnicate")
    with pytest.raises(ToolchainError, match="frobnicate") as caught:
        nvcc.compile(request_for(DIVIDES))
    assert caught.value.hint is not None
    assert "NVCC_APPEND_FLAGS gives nvcc --frobnicate" in caught.value.hint


FAKE_NVCC = """\
case "$*" in *--version*) echo "Cuda compilation tools, release 11.4, V11.4.152"; exit 0;; esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
printf '.version 7.4\\n.target sm_37\\n.address_size 64\\n.visible .entry k(\\n)\\n{\\n\\tret;\\n}\\n' > "$out"
"""


def test_the_header_a_build_makes_carries_them(
    tmp_path: Path, run: Run, fake_tool: Callable[[Path, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler is a stand-in, so that this holds where no nvcc is; the header, its check and the words are real."""
    fake_tool(tmp_path / "nvcc", FAKE_NVCC)
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k() {}\n')
    (tmp_path / "ssmtool.toml").write_text('nvcc = "./nvcc"\nheader = "g.h"\n' + SETTINGS)
    monkeypatch.setenv("NVCC_PREPEND_FLAGS", "-ccbin /opt/bin/clang-14")
    assert run(tmp_path, "build").code == 0
    record = read_header(tmp_path / "g.h").modules[0].record
    assert (record.flags, record.note) == ((), "host compiler clang-14")
    assert run(tmp_path, "build", "--check").code == 0

    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-use_fast_math")
    rebuilt = run(tmp_path, "build", "--check", "--rebuild")
    assert rebuilt.code == 1
    assert "its provenance or layout" in rebuilt.out + rebuilt.err
    ran = run(tmp_path, "build")
    assert "NVCC_APPEND_FLAGS gives nvcc -use_fast_math" in ran.err
    assert read_header(tmp_path / "g.h").modules[0].record.flags == ("-use_fast_math",)
    checked = run(tmp_path, "build", "--check")
    assert checked.code == 1
    assert "flags were [-use_fast_math], are []" in checked.out + checked.err
