"""Labels of outputs: what flows into a store, through registers, branches and memory; checked on the product too."""

from __future__ import annotations

import numpy as np
import pytest
from execute.small import kernel, run

from conftest import ROOT
from ssmtool.execute.layout import Mode
from ssmtool.execute.lower import lower
from ssmtool.execute.numerics.evidence import Level
from ssmtool.ptx import extract, parse

PARAMS = ".param .u64 a, .param .u64 b, .param .u64 c"
HEAD = """
ld.param.u64 %rd1, [b]; ld.param.u64 %rd2, [c];
mad.wide.u32 %rd0, %i, 4, %rd0; mad.wide.u32 %rd1, %i, 4, %rd1; mad.wide.u32 %rd2, %i, 4, %rd2;
ld.global.f32 %f1, [%rd2];
"""


def labels(body: str, head: str = "") -> tuple[str, str]:
    """The labels of buffers a and b; c holds floats."""
    c = np.linspace(0, 1, 64, dtype=np.float32)
    a, b = np.zeros(64, np.float32), np.zeros(64, np.float32)
    found = run(kernel(HEAD + body, PARAMS, head=head), [a, b, c], 64)
    return tuple(str(found.evidence(name)).partition(":")[0] for name in "ab")  # type: ignore[return-value]


EX2 = "unit-model dependent (ex2.approx"


def test_a_unit_shows_in_what_is_stored_and_nowhere_else() -> None:
    assert labels("ex2.approx.f32 %f2, %f1; st.global.f32 [%rd0], %f2; st.global.f32 [%rd1], %f1;") == (EX2, "exact")


def test_every_unit_on_the_way_is_named() -> None:
    body = "ex2.approx.f32 %f2, %f1; rcp.approx.f32 %f3, %f1; sub.rn.f32 %f4, %f2, %f3; st.global.f32 [%rd0], %f4;"
    assert labels(body)[0] == "unit-model dependent (ex2.approx, rcp.approx"


def test_ieee_arithmetic_is_exact() -> None:
    body = "sqrt.rn.f32 %f2, %f1; div.rn.f32 %f3, %f1, %f2; fma.rn.f32 %f4, %f3, %f2, %f1; st.global.f32 [%rd0], %f4;"
    assert labels(body)[0] == "exact"


@pytest.mark.parametrize(
    ("body", "label"),
    [
        ("mul.f32 %f2, %f1, %f1; add.f32 %f3, %f2, %f1; st.global.f32 [%rd0], %f3;", "contraction dependent"),
        ("mul.f32 %f2, %f1, %f1; sub.f32 %f3, %f1, %f2; st.global.f32 [%rd0], %f3;", "contraction dependent"),
        ("mul.rn.f32 %f2, %f1, %f1; add.f32 %f3, %f2, %f1; st.global.f32 [%rd0], %f3;", "exact"),
        ("mul.f32 %f2, %f1, %f1; add.rn.f32 %f3, %f2, %f1; st.global.f32 [%rd0], %f3;", "exact"),
        ("mul.f32 %f2, %f1, %f1; st.global.f32 [%rd0], %f2; add.f32 %f3, %f2, %f1;", "exact"),
        ("add.f32 %f2, %f1, %f1; mul.f32 %f3, %f2, %f1; st.global.f32 [%rd0], %f3;", "exact"),
        ("mul.f32 %f2, %f1, %f1; fma.rn.f32 %f3, %f2, %f1, %f1; st.global.f32 [%rd0], %f3;", "exact"),
    ],
)
def test_only_a_sum_that_may_take_its_product_in_depends_on_contraction(body: str, label: str) -> None:
    assert labels(body)[0] == label


def test_a_register_used_again_for_something_else_is_another_value() -> None:
    body = "ex2.approx.f32 %f2, %f1; st.global.f32 [%rd0], %f2; mov.f32 %f2, %f1; st.global.f32 [%rd1], %f2;"
    assert labels(body) == (EX2, "exact")


def test_a_loop_carries_doubt_round() -> None:
    body = """
    mov.u32 %r1, 0; mov.f32 %f3, %f1;
    TOP: add.rn.f32 %f3, %f3, %f2; ex2.approx.f32 %f2, %f3; add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 4; @%p1 bra TOP; st.global.f32 [%rd0], %f3; st.global.u32 [%rd1], %r1;
    """
    assert labels("mov.f32 %f2, %f1;" + body) == (EX2, "exact")


def test_a_predicate_doubts_what_it_selects_and_guards() -> None:
    test = "ex2.approx.f32 %f2, %f1; setp.gt.f32 %p1, %f2, 0f3F800000;"
    assert labels(f"{test} selp.f32 %f3, %f1, 0f00000000, %p1; st.global.f32 [%rd0], %f3;")[0] == EX2
    assert labels(f"{test} mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2; st.global.u32 [%rd0], %r1;")[0] == EX2
    assert labels(f"{test} @%p1 st.global.f32 [%rd0], %f1; st.global.f32 [%rd1], %f1;") == (EX2, "exact")


def test_a_branch_doubts_what_runs_because_of_it_and_not_what_comes_after() -> None:
    body = """
    ex2.approx.f32 %f2, %f1; setp.gt.f32 %p1, %f2, 0f3F800000; mov.u32 %r1, 0; @%p1 bra NEXT; mov.u32 %r1, 5;
    NEXT: st.global.u32 [%rd0], %r1; st.global.f32 [%rd1], %f1;
    """
    assert labels(body) == (EX2, "exact")
    gone = "ex2.approx.f32 %f2, %f1; setp.gt.f32 %p1, %f2, 0f3F800000; @%p1 bra END; st.global.f32 [%rd0], %f1;"
    assert labels(gone)[0] == EX2


def test_a_number_of_turns_in_doubt_doubts_what_they_count() -> None:
    body = """
    mov.u32 %r1, 0; mov.f32 %f3, %f1;
    TOP: ex2.approx.f32 %f3, %f3; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 9; setp.lt.f32 %p1, %f3, 0f41000000;
    and.pred %p1, %p1, %p2; @%p1 bra TOP; st.global.u32 [%rd0], %r1; st.global.f32 [%rd1], %f1;
    """
    assert labels(body) == (EX2, "exact")


def test_shared_memory_is_one_doubt_and_local_memory_another() -> None:
    head = ".shared .align 4 .b8 s[512]; .local .align 4 .b8 l[8];"
    through = "mov.u32 %r1, s; ex2.approx.f32 %f2, %f1; st.shared.f32 [s], %f2; bar.sync 0; ld.shared.f32 %f3, [s+8];"
    body = "mov.u64 %rd5, l; st.local.f32 [%rd5], %f1; ld.local.f32 %f4, [%rd5]; st.global.f32 [%rd1], %f4;"
    assert labels(f"{through} st.global.f32 [%rd0], %f3; {body}", head) == (EX2, "exact")


def test_global_memory_is_told_apart_by_the_parameter() -> None:
    write = "ex2.approx.f32 %f2, %f1; st.global.f32 [%rd0], %f2;"
    assert labels(f"{write} ld.global.f32 %f3, [%rd2]; st.global.f32 [%rd1], %f3;") == (EX2, "exact")
    assert labels(f"{write} ld.global.f32 %f3, [%rd0]; st.global.f32 [%rd1], %f3;") == (EX2, EX2)
    assert labels(f"{write} ld.global.nc.f32 %f3, [%rd0]; st.global.f32 [%rd1], %f3;") == (EX2, "exact")
    generic = "cvta.global.u64 %rd5, %rd0; ld.f32 %f3, [%rd5]; st.global.f32 [%rd1], %f3;"
    assert labels(f"{write} {generic}") == (EX2, EX2)


def test_an_address_from_memory_may_be_anywhere() -> None:
    text = HEAD.replace("ld.global.f32 %f1, [%rd2];", "") + (
        "ld.param.u64 %rd2, [c]; ld.global.u64 %rd3, [%rd2]; mov.f32 %f1, 0f3F000000; ex2.approx.f32 %f2, %f1;"
        "st.global.f32 [%rd3], %f2; ld.global.f32 %f3, [%rd0]; st.global.f32 [%rd1], %f3;"
    )
    a, b = np.zeros(32, np.float32), np.zeros(32, np.float32)
    found = run(kernel(text, PARAMS), [a, b, np.array([a.ctypes.data], np.uint64)])
    assert str(found.evidence("b")).startswith(EX2)


def test_an_address_in_doubt_doubts_what_is_stored_through_it() -> None:
    body = """
    ex2.approx.f32 %f2, %f1; cvt.rzi.u32.f32 %r1, %f2; and.b32 %r1, %r1, 1; ld.param.u64 %rd5, [a];
    mad.wide.u32 %rd5, %r1, 4, %rd5; st.global.u32 [%rd5], 7;
    """
    assert labels(body)[0] == EX2


def test_an_atomic_joins_what_it_adds_with_what_was_there() -> None:
    body = "ex2.approx.f32 %f2, %f1; red.global.add.f32 [%rd0], %f2; atom.global.add.f32 %f3, [%rd0], %f1;"
    assert labels(f"{body} st.global.f32 [%rd1], %f3;") == (EX2, EX2)


def test_a_called_function_s_store_has_its_own_label_and_the_worst_of_its_calls() -> None:
    module = """
    .func put(.param .u64 where, .param .f32 what) {
    .reg .b64 %rd<3>; .reg .f32 %f<3>; ld.param.u64 %rd1, [where]; ld.param.f32 %f1, [what];
    st.global.f32 [%rd1], %f1; ret; }
    """
    call = "{{ .param .u64 p0; .param .f32 p1; st.param.u64 [p0], {}; st.param.f32 [p1], {}; call put, (p0, p1); }}"
    body = HEAD + "ex2.approx.f32 %f2, %f1;" + call.format("%rd0", "%f1") + call.format("%rd1", "%f2")
    arrays = [np.zeros(32, np.float32) for _ in range(3)]
    found = run(kernel(body, PARAMS, module), arrays)
    # One store instruction serves both calls: it carries the label of the worse.
    assert [str(found.evidence(name))[:16] for name in "ab"] == [EX2[:16]] * 2


def test_the_product_s_kernels_rest_on_one_unit_and_some_outputs_on_none() -> None:
    module = parse(extract((ROOT / "generated/fc_cuda_ptx.h").read_text())[0].text)
    exact = {}
    for entry in module.entries:
        sites = lower(module, entry.name, (128, 1, 1), Mode()).facts.sites
        stores = [site for site in sites if site.store and "shared" not in site.text]
        assert {unit for site in stores for unit in site.units} <= {"ex2.approx"}
        assert not [site for site in stores if site.level == Level.CONTRACTION]
        exact[entry.name] = all(site.level == Level.EXACT for site in stores)
    assert [name for name, value in exact.items() if value] == ["fc_ssm_qknorm_gqa", "fc_ssm_qknorm_gqa_nx"]
