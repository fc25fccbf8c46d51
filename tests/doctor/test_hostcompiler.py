"""Which gcc an nvcc takes: read from the toolkit's own header, and from what the compilers say of themselves."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from ssmtool.doctor.hostcompiler import chosen_word, headers_of, limits_of, parse_version


@pytest.mark.parametrize(
    ("word", "said", "shown"),
    [
        ("gcc", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022\n", "gcc 12 (gcc)"),
        ("gcc", "gcc (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0\n", "gcc 13 (gcc)"),
        ("gcc", "gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)\n", "gcc 11 (gcc)"),
        ("gcc-10", "gcc-10 (Ubuntu 10.5.0-1ubuntu1~22.04) 10.5.0\n", "gcc 10 (gcc-10)"),
        ("clang-14", "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", "clang 14 (clang-14)"),
        ("gcc", "", "None"),
        ("gcc", "sh: gcc: permission denied", "None"),
    ],
)
def test_what_a_host_compiler_says_of_itself(word: str, said: str, shown: str) -> None:
    assert str(parse_version(word, said)) == shown


def test_the_real_header_of_cuda_11_8_names_its_limits() -> None:
    path = metadata.distribution("nvidia-cuda-nvcc-cu11").locate_file("nvidia/cuda_nvcc/include/crt/host_config.h")
    assert limits_of(Path(str(path)).read_text(), "11.8") == (11, 14)


def test_without_a_header_the_release_tells() -> None:
    assert limits_of(None, "11.4") == (10, 12)
    assert limits_of("nothing of use", "11.8") == (11, 14)
    assert limits_of(None, "99.0") is None


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({}, "gcc"),
        ({"NVCC_CCBIN": "gcc-9"}, "gcc-9"),
        ({"NVCC_PREPEND_FLAGS": "-ccbin clang-14"}, "clang-14"),
        ({"NVCC_APPEND_FLAGS": "-O2 -ccbin=/opt/gcc/bin/gcc"}, "/opt/gcc/bin/gcc"),
        ({"NVCC_PREPEND_FLAGS": "-ccbin"}, "gcc"),
        ({"NVCC_PREPEND_FLAGS": "'unclosed"}, "gcc"),
    ],
)
def test_the_host_compiler_that_nvcc_would_start(environ: dict[str, str], word: str) -> None:
    assert chosen_word(environ) == word


def test_the_header_lies_beside_nvcc() -> None:
    assert headers_of("/usr/local/cuda-11.4/bin/nvcc")[0] == "/usr/local/cuda-11.4/include/crt/host_config.h"
