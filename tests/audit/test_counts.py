"""Static counts against plain text searches, and the product's own header."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ssmtool.audit.classes import CLASSES, class_of
from ssmtool.audit.counts import contractible_products, count
from ssmtool.audit.inputs import read_input
from ssmtool.audit.kernels import audit
from ssmtool.ptx import parse

HEADER = Path(__file__).parents[2] / "generated" / "fc_cuda_ptx.h"


def test_the_product_has_18_kernels_and_no_local_memory_on_any_path() -> None:
    result = audit(read_input(str(HEADER)))
    assert len(result.kernels) == 18
    assert [kernel.name for kernel in result if kernel.local_bytes or any(kernel.static_local)] == []
    assert result.outcome.findings == []


def test_no_product_of_the_product_may_be_fused() -> None:
    assert [kernel.name for kernel in audit(read_input(str(HEADER))) if kernel.counts.contractible] == []


def test_counts_equal_searches_of_the_text() -> None:
    for each in read_input(str(HEADER)):
        for function in each.module.entries:
            counts = count(function)
            text = function.text

            def lines(pattern: str, text: str = text) -> int:
                return len(re.findall(rf"^\s*(?:@!?%p\d+\s+)?{pattern}", text, re.MULTILINE))

            assert counts.barriers == lines(r"bar\.sync")
            assert counts.shuffles == lines(r"shfl")
            assert counts.atomics == lines(r"(?:atom|red)\.")
            assert counts.conditional_branches == len(re.findall(r"@!?%p\d+\s+bra", text))
            assert counts.approximate == lines(r"\w+\.approx")
            assert counts.instructions == len(re.findall(r";\s*$", text, re.MULTILINE)) - len(
                re.findall(r"^\s*\.(?:reg|pragma|shared)", text, re.MULTILINE)
            )
            assert sum(counts.mix.values()) == counts.instructions
            assert set(counts.mix) <= set(CLASSES)


def products(body: str) -> int:
    text = f""".version 7.4
.target sm_37
.address_size 64
.visible .entry k() {{
.reg .f32 %f<19>; .reg .f64 %d<9>; .reg .pred %p<9>; .reg .b32 %r<9>;
{body}
ret; }}
"""
    return len(contractible_products(parse(text).entries[0]))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;", 1),
        ("mul.f32 %f1, %f2, %f3; sub.f32 %f4, %f5, %f1;", 1),
        ("mul.ftz.f32 %f1, %f2, %f3; add.ftz.f32 %f4, %f1, %f5;", 1),
        ("mul.f64 %d1, %d2, %d3; add.f64 %d4, %d1, %d5;", 1),
        ("mul.rn.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5;", 0),  # a rounding modifier forbids it
        ("mul.f32 %f1, %f2, %f3; add.rn.f32 %f4, %f1, %f5;", 0),
        ("mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5; st.shared.f32 [%r1], %f1;", 1),  # used elsewhere too
        ("mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f5; add.f32 %f6, %f1, %f5;", 1),  # by two adds
        ("mul.f32 %f1, %f2, %f3; @%p1 bra L; L: add.f32 %f4, %f1, %f5;", 1),  # in another block
        (
            "mul.f32 %f1, %f2, %f3; mul.f32 %f1, %f2, %f5; add.f32 %f4, %f1, %f5;",
            2,
        ),  # two products of one name: which one is not told
        ("mul.f32 %f1, %f2, %f3; { .reg .f32 %f<9>; add.f32 %f4, %f1, %f5; }", 0),  # another register of that name
        ("mul.f32 %f1, %f2, %f3; add.f32 %f1, %f4, %f5;", 0),  # it is only written there
        ("mul.f32 %f1, %f2, %f3; fma.rn.f32 %f4, %f1, %f5, %f6;", 0),
    ],
)
def test_products_open_to_contraction(body: str, expected: int) -> None:
    assert products(body) == expected


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("ld.local.f32", "local memory"),
        ("st.shared::cta.f32", "shared memory"),
        ("ld.f32", "global memory"),
        ("ld.param.u64", "other"),
        ("ex2.approx.ftz.f32", "transcendental"),
        ("mov.f32", "floating point"),
        ("setp.gt.f32", "floating point"),
        ("setp.gt.s32", "address arithmetic"),
        ("shfl.sync.bfly.b32", "shuffle"),
        ("bar.sync", "barrier"),
        ("red.global.add.f32", "atomic"),
        ("frobnicate.f32", "other"),
    ],
)
def test_class(opcode: str, name: str) -> None:
    assert class_of(opcode) == name
