"""What the environment adds to the compiler's flags is in the header, and a check sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Run
from ssmtool.header import read_header

FAKE_NVCC = """\
#!/bin/sh
case "$*" in *--version*) echo "Cuda compilation tools, release 11.4, V11.4.152"; exit 0;; esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
printf '.version 7.4\\n.target sm_37\\n.address_size 64\\n.visible .entry k(\\n)\\n{\\n\\tret;\\n}\\n' > "$out"
"""


def test_the_header_a_build_makes_carries_them(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler is a stand-in, so that this holds where no nvcc is; the header, its check and the words are real."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(FAKE_NVCC)
    nvcc.chmod(0o755)
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k() {}\n')
    (tmp_path / "ssmtool.toml").write_text(
        'nvcc = "./nvcc"\nheader = "g.h"\n[[module]]\nsource = "k.cu"\nconstant = "K"\n'
    )
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
