"""No false alarm on any compiler's output, and an alarm on every word that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.ptx import parse
from ssmtool.ptx.isa import info, known_instructions
from ssmtool.ptx.modifiers import checked_instructions, problem

TESTS = Path(__file__).parents[1]
TEXTS = sorted(TESTS.glob("*/corpus/*.ptx"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_nothing_a_compiler_wrote_is_strange(path: Path) -> None:
    module = parse(path.read_bytes())
    assert [unknown.text for unknown in module.unknown] == []
    # And of what is checked none passes with a word that does not exist.
    for opcode in module.histogram():
        found = info(opcode)
        assert found is not None
        if found.name in checked_instructions():
            assert problem(f"{opcode}.frob") == f"{found.name} has no modifier .frob"


def test_only_names_of_the_table_are_checked() -> None:
    assert checked_instructions() < {each.name for each in known_instructions()}


@pytest.mark.parametrize(
    "opcode",
    [
        # Forms of the manual that the corpora lack, the newest of each family among them.
        "add.rz.ftz.sat.f32", "add.rn.ftz.f32x2", "add.cc.u64", "sub.rm.bf16x2", "mul.wide.s16", "mad.hi.sat.s32",
        "mad.lo.cc.u32", "madc.hi.cc.u32", "fma.rn.relu.bf16x2", "fma.rn.oob.relu.f16x2", "min.xorsign.abs.f32",
        "max.NaN.ftz.f16x2", "min.relu.s16x2", "div.full.ftz.f32", "sqrt.approx.ftz.f32", "rcp.approx.ftz.f64",
        "cvt.rna.tf32.f32", "cvt.rn.satfinite.relu.e4m3x2.f32", "cvt.rs.satfinite.e2m1x4.f32",
        "cvt.pack.sat.u8.s32.b32",
        "cvt.rn.bf16x2.ue8m0x2", "setp.ltu.and.ftz.f32", "set.gt.u32.f32", "lop3.or.b32", "shf.r.wrap.b32",
        "bfind.shiftamt.u32", "prmt.b32.f4e", "testp.notanumber.f32", "ld.volatile.shared::cluster.u32",
        "bmsk.clamp.b32",
        "ld.global.nc.L1::no_allocate.L2::256B.v4.f32", "ld.mmio.relaxed.sys.global.u32", "ld.param::entry.b64",
        "ld.global.L2::cache_hint.v8.f32", "st.release.gpu.global.u64", "st.global.cs.v2.f64", "st.param::func.b32",
        "atom.global.cas.b128", "atom.acq_rel.sys.shared::cta.inc.u32", "red.global.add.noftz.bf16x2", "mov.b128",
        "red.relaxed.gpu.global.v8.f16.add.noftz", "membar.proxy.alias", "bar.red.popc.u32", "barrier.cta.sync.aligned",
        "vote.ballot.sync.b32", "vote.uni.pred", "match.any.sync.b64", "redux.sync.min.abs.NaN.f32", "bar.warp.sync",
        "shfl.up.b32", "brx.idx.uni", "call.uni", "vadd.s32.u32.s32.sat.max", "vmad.u32.u32.u32.po.shr15",
        "vset4.u32.u32.ltu.add", "vavrg2.u32.u32.u32.add", "setmaxnreg.inc.sync.aligned.u32", "elect.sync",
    ],
)  # fmt: skip
def test_forms_of_the_manual_pass(opcode: str) -> None:
    assert problem(opcode) is None


@pytest.mark.parametrize(
    ("opcode", "words"),
    [
        ("add.frob.f32", "add has no modifier .frob"),
        ("add.f33", "add has no modifier .f33"),
        ("mul.high.s32", "mul has no modifier .high"),
        ("ld.globl.f32", "ld has no modifier .globl"),
        ("ld.shared::ctb.f32", "ld has no modifier .shared::ctb"),
        ("setp.less.s32", "setp has no modifier .less"),
        ("shfl.sync.butterfly.b32", "shfl has no modifier .butterfly"),
        ("add", "add has no type"),
        ("st.global", "st has no type"),
        ("bar.sink", "bar has no modifier .sink"),
    ],
)
def test_a_word_that_is_none_is_named(opcode: str, words: str) -> None:
    assert problem(opcode) == words


def test_what_is_not_checked_passes() -> None:
    assert problem("tcgen05.mma.frob") is None
    assert problem("frobnicate.b32") is None  # not known at all: `isa.info` says so
