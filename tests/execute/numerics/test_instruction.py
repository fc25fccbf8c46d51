"""Opcode texts: what sm_37 has not is refused by name, and labels say what a result rests on."""

from __future__ import annotations

import pytest

from ssmtool.execute.numerics import instruction
from ssmtool.execute.numerics.evidence import EVIDENCE, Level
from ssmtool.execute.numerics.form import UnsupportedError


@pytest.mark.parametrize(
    "opcode",
    [
        "tanh.approx.f32", "lop3.b32", "dp4a.u32.u32", "min.NaN.f32", "add.f16", "fma.rn.f16", "add.rn.f64.sat",
        "add.sat.u32", "fma.f32", "div.f32", "cvt.s32.f32", "cvt.rn.s32.f32", "cvt.f16.f32", "cvt.rn.f64.f32",
        "cvt.sat.u32.u16", "mul.wide.u64", "bfe.b32", "shf.l.b32", "setp.lo.s32", "setp.lt.b32", "set.eq.ftz.u32.f64",
        "popc.u32", "ex2.approx.f64", "rcp.approx.f64", "add.f32.rn", "add.", "add", "wmma.mma", "cvt.rni.sat.f32.f64",
    ],
)  # fmt: skip
def test_a_form_that_sm_37_has_not_is_refused_by_its_name(opcode: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        instruction.parse(opcode)
    assert opcode in str(caught.value)
    assert caught.value.exit_code == 2


def test_setp_has_the_inverse_as_its_second_result() -> None:
    form = instruction.parse("setp.gtu.and.ftz.f32")
    assert (form.operands, form.results) == (("f32", "f32", "pred"), ("pred", "pred"))


def test_the_carry_is_an_operand_and_a_result() -> None:
    form = instruction.parse("madc.hi.cc.u32")
    assert (form.operands, form.results) == (("u32", "u32", "u32", "carry"), ("u32", "carry"))
    assert instruction.parse("add.cc.s32").operands == ("s32", "s32")


def test_products_and_sums_without_a_rounding_depend_on_contraction() -> None:
    assert instruction.parse("mul.f32").evidence.level is Level.CONTRACTION
    assert instruction.parse("mul.rn.f32").evidence.level is Level.EXACT
    assert str(instruction.parse("add.ftz.f32").evidence) == "contraction dependent"


def test_every_approximate_unit_is_labelled_with_its_proof() -> None:
    assert str(instruction.parse("ex2.approx.ftz.f32").evidence) == "unit-model dependent (ex2.approx: H200-exact)"
    for name in EVIDENCE:
        assert instruction.parse(f"{name}.f32").evidence == EVIDENCE[name]


def test_only_numeric_opcodes_are_claimed() -> None:
    assert instruction.known("fma.rn.f32") and instruction.known("vadd2.u32.u32.u32")
    assert not any(instruction.known(op) for op in ("ld.global.f32", "bar.sync", "shfl.bfly.b32", "mov.u32", "bra"))


def test_a_video_selector_that_fits_no_part_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="b9"):
        instruction.parse("vadd.u32.u32.u32", ("", "b9", ""))
    with pytest.raises(UnsupportedError, match="h9"):
        instruction.parse("vadd2.u32.u32.u32", ("h9", "", ""))
