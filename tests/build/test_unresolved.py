"""PTX that no driver loads by itself is refused by the build, not met at run time."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Run, snapshot
from ssmtool.build.unresolved import refuse_unresolved
from ssmtool.errors import ProductError

SETTINGS = 'header = "g.h"\n[[module]]\nsource = "k.cu"\nconstant = "K"\n'


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            'extern "C" __global__ void child(float *o) { o[0] = 1; }\n'
            'extern "C" __global__ void k(float *o) { child<<<1, 32>>>(o); }\n',
            "k.cu: a kernel launches a kernel",
        ),
        (
            'extern "C" __device__ float f(float);\nextern "C" __global__ void k(float *o) { o[0] = f(o[1]); }\n',
            "k.cu: declares and uses, but nowhere defines: f;",
        ),
    ],
    ids=["dynamic-parallelism", "another-files-function"],
)
def test_what_another_module_would_have_to_bring_is_refused(tmp_path: Path, run: Run, source: str, words: str) -> None:
    (tmp_path / "k.cu").write_text(source)
    (tmp_path / "ssmtool.toml").write_text(SETTINGS)
    before = snapshot(tmp_path)
    ran = run(tmp_path, "build")
    assert ran.code == 1
    assert words in " ".join(ran.err.split())
    assert snapshot(tmp_path) == before


def test_what_the_driver_brings_is_no_fault(tmp_path: Path, run: Run) -> None:
    (tmp_path / "k.cu").write_text(
        'extern "C" __global__ void k(int *o) {\n'
        "    extern __shared__ int s[];\n    int *p = (int *)malloc(4);\n    p[0] = s[0];\n    assert(o[0]);\n"
        '    printf("%d", p[0]);\n    free(p);\n}\n'
    )
    (tmp_path / "ssmtool.toml").write_text(SETTINGS)
    assert run(tmp_path, "build").code == 0


def test_a_variable_of_another_module() -> None:
    with pytest.raises(ProductError, match="nowhere defines: counter;"):
        refuse_unresolved(".version 7.4\n.extern .global .align 4 .b8 counter[16];\n", "k.cu")
