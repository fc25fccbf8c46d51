"""Flags from NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS: in the provenance, in nvcc's order, and told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ssmtool.toolchain import CompileRequest, ToolchainError
from ssmtool.toolchain.nvcc import Nvcc
from ssmtool.toolchain.nvcc_environment import environment_flags

Make = Callable[..., CompileRequest]
DIVIDES = 'extern "C" __global__ void k(float *o) { o[0] = o[1] / o[2]; }\n'


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
