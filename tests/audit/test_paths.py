"""Declared against executed local memory, on PTX of the real compiler (NVRTC 11.4.152, sm_37, from corpus/*.cu)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ssmtool.audit.assumptions import parse_assumption
from ssmtool.audit.inputs import read_input
from ssmtool.audit.kernels import audit
from ssmtool.audit.result import KernelAudit
from ssmtool.ptx import parse

CORPUS = Path(__file__).parent / "corpus"
HISTORY = CORPUS / "history.ptx"


def kernel(name: str, conv_kernel: int | None = None, path: Path = HISTORY) -> KernelAudit:
    assumed = [] if conv_kernel is None else [parse_assumption(f"{name}.param_5={conv_kernel}")]
    found = audit(read_input(str(path)), assumed).kernel(name)
    assert found is not None
    return found


def by_text(name: str, opcode: str) -> int:
    """The oracle: a count of lines in the entry's text."""
    text = HISTORY.read_text()
    entry = next(part for part in text.split(".entry ")[1:] if part.startswith(f"{name}("))
    return len(re.findall(rf"^\s*(?:@\S+\s+)?{re.escape(opcode)}\b", entry, re.MULTILINE))


@pytest.mark.parametrize("name", ["generic", "fast"])
def test_array_under_a_run_time_bound_declares_and_moves_local_memory(name: str) -> None:
    found = kernel(name)
    assert found.local_bytes == 12
    assert found.static_local == (by_text(name, "ld.local.f32"), by_text(name, "st.local.f32"))
    assert found.path_local == found.static_local
    assert min(found.static_local) > 0


def test_fast_path_declares_a_depot_and_executes_none_of_it() -> None:
    found = kernel("fast", 4)
    assert (found.local_bytes, found.path_local) == (12, (0, 0))


@pytest.mark.parametrize("name", ["generic", "fast"])
def test_without_the_fast_path_the_residual_traffic_is_counted(name: str) -> None:
    # conv_kernel == 3, read off the source and its unrolling by 4, whose remainder runs 2 of 3 steps: taps 2 loads,
    # shift 1 load and 1 store, append 1 store, copy to snaps 2 loads; rolled loops: fill 1 store, write-back 1 load.
    found = kernel(name, 3)
    assert (found.local_bytes, found.path_local) == (12, (6, 3))


def test_generic_kernel_has_traffic_at_four_taps() -> None:
    loads, stores = kernel("generic", 4).path_local
    assert loads > 0 < stores


def test_an_access_names_its_source_line_and_the_branch_that_guards_it() -> None:
    found = kernel("fast", 3)
    access = next(each for each in found.path.accesses if each.executed and each.kind == "load")
    source = (CORPUS / "history.cu").read_text().splitlines()
    assert access.source is not None
    line = re.match(r"tests/audit/corpus/history\.cu:(\d+) \(inlined at line (\d+)\)", access.source)
    assert line is not None
    assert "hist[t]" in source[int(line[1]) - 1]
    assert "generic_body(" in source[int(line[2]) - 1]
    assert access.guarding is not None
    text = HISTORY.read_text().splitlines()
    assert re.match(r"\s*@!?%p\d+ bra", text[access.guarding.line - 1])
    assert access.text in text[access.line - 1].replace("\t", " ").replace("  ", " ")


def test_dead_accesses_are_listed_as_not_executed() -> None:
    accesses = kernel("fast", 4).path.accesses
    assert accesses and not any(access.executed for access in accesses)


def test_a_depot_in_the_text_that_ptxas_promotes_away_still_counts_in_the_text() -> None:
    found = kernel("promoted", path=CORPUS / "tiers.ptx")
    assert found.local_bytes == 64
    assert found.path_local == found.static_local == (16, 4)


def test_spills_are_not_in_the_text() -> None:
    found = kernel("spilled", path=CORPUS / "tiers.ptx")
    assert (found.local_bytes, found.static_local) == (0, (0, 0))


@pytest.mark.parametrize("kernel_name", ["promoted", "spilled"])
def test_ptxas_says_the_opposite_of_the_text(kernel_name: str) -> None:
    from ssmtool.audit.resources import measure
    from ssmtool.findings import Skip

    report = measure((CORPUS / "tiers.ptx").read_text(), "sm_37")
    assert not isinstance(report, Skip), f"{report.reason}; make test brings ptxas"
    found = next(entry for entry in report.entries if entry.name == kernel_name)
    assert found.has_local_memory == (kernel_name == "spilled")
    assert (found.spill_store_bytes > 0) == (kernel_name == "spilled")


CALLS = """.version 7.4
.target sm_37
.address_size 64
.func deep() { .local .align 4 .b8 __local_depot0[24]; .reg .b64 %rd<3>; .reg .b32 %r<3>;
mov.u64 %rd1, __local_depot0; st.local.u32 [%rd1], %r1; ld.local.u32 %r2, [%rd1]; ret; }
.func shallow() { call deep, (); ret; }
.visible .entry direct(.param .u32 direct_param_0) { .reg .pred %p<2>; .reg .b32 %r<2>;
ld.param.u32 %r1, [direct_param_0]; setp.eq.s32 %p1, %r1, 0; @%p1 bra E; call shallow, (); E: ret; }
.visible .entry pointer() { .reg .b64 %rd<2>; P: .callprototype ()_ (); call %rd1, (), P; ret; }
.visible .entry none() { ret; }
"""


def calls(*assume: str) -> dict[str, KernelAudit]:
    from ssmtool.audit.inputs import Input

    return dict(audit([Input("calls.ptx", parse(CALLS))], map(parse_assumption, assume)).by_name)


def test_local_memory_of_called_functions_counts_through_calls_of_calls() -> None:
    assert calls()["direct"].local_bytes == 24
    assert calls()["direct"].path_local == (1, 1)
    assert calls()["none"].local_bytes == 0


def test_a_call_on_a_dead_path_brings_nothing() -> None:
    found = calls("direct.param_0=0")["direct"]
    assert (found.local_bytes, found.path_local) == (24, (0, 0))
    assert calls("direct.param_0=1")["direct"].path_local == (1, 1)


def test_a_call_through_a_register_may_reach_every_function() -> None:
    found = calls()["pointer"]
    assert found.calls_elsewhere
    assert found.path_local == (1, 1)


def test_generic_access_to_a_local_array_counts() -> None:
    text = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k() {
.local .align 8 .b8 __local_depot0[16];
.reg .b64 %SP; .reg .b64 %SPL; .reg .b64 %rd<9>; .reg .b32 %r<9>;
mov.u64 %SPL, __local_depot0;
cvta.local.u64 %SP, %SPL;
add.u64 %rd1, %SP, 8;
add.u64 %rd2, %SPL, 8;
st.local.u32 [%rd2], %r1;
ld.u32 %r2, [%rd1];
ld.u32 %r3, [%rd5];
ld.global.u32 %r3, [%rd1];
ret; }
"""
    from ssmtool.audit.inputs import Input

    found = audit([Input("generic.ptx", parse(text))]).kernels[0]
    assert found.static_local == (1, 1)
    assert found.counts.generic_local == 1
    # Once the address has been stored, any address may be it.
    escaped = text.replace("ld.u32 %r2", "st.global.u64 [%rd6], %rd1;\nld.u32 %r2")
    assert audit([Input("generic.ptx", parse(escaped))]).kernels[0].counts.generic_local == 2


HANDED = """.version 7.4
.target sm_37
.address_size 64
.func fill(.param .b64 fill_param_0) { .reg .b64 %rd<3>; .reg .b32 %r<3>;
ld.param.u64 %rd1, [fill_param_0]; st.u32 [%rd1], %r1; ld.u32 %r2, [%rd1+4]; ld.global.u32 %r2, [%rd1]; ret; }
.func middle(.param .b64 middle_param_0) { .reg .b64 %rd<3>; ld.param.u64 %rd1, [middle_param_0];
{ .param .b64 p; st.param.b64 [p], %rd1; call fill, (p); } ret; }
.visible .entry through() { .local .align 4 .b8 __local_depot0[24]; .reg .b64 %rd<9>;
mov.u64 %rd1, __local_depot0; cvta.local.u64 %rd2, %rd1;
{ .param .b64 p; st.param.b64 [p], %rd2; call middle, (p); } ret; }
.visible .entry nothing_local(.param .u64 nothing_local_param_0) { .reg .b64 %rd<9>; .reg .b32 %r<2>;
ld.param.u64 %rd2, [nothing_local_param_0]; ld.u32 %r1, [%rd2];
{ .param .b64 p; st.param.b64 [p], %rd2; call middle, (p); } ret; }
"""


def handed(text: str) -> dict[str, KernelAudit]:
    from ssmtool.audit.inputs import Input

    return dict(audit([Input("handed.ptx", parse(text))]).by_name)


def test_what_a_function_does_through_a_pointer_to_its_callers_array_counts() -> None:
    found = handed(HANDED)
    assert found["through"].path_local == (1, 1)
    # The same functions, called with an address that is nobody's local memory.
    assert found["nothing_local"].path_local == (0, 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Through registers: vectors, halves, and an instruction that nobody knows.
        (
            "cvta.local.u64 %rd2, %rd1;",
            "cvta.local.u64 %rd3, %rd1; mov.b64 {%r1, %r2}, %rd3; mov.b64 %rd2, {%r1, %r2};",
        ),
        ("cvta.local.u64 %rd2, %rd1;", "cvta.local.u64 %rd3, %rd1; max.u64 %rd2, %rd3, %rd4;"),
        ("cvta.local.u64 %rd2, %rd1;", "cvta.local.u64 %rd3, %rd1; frobnicate.b64 %rd2, %rd3;"),
        ("cvta.local.u64 %rd2, %rd1;", "cvta.local.u64 %rd3, %rd1; selp.f64 %rd2, %rd3, %rd4, %p1;"),
        # In memory, where the function may find it.
        ("st.param.b64 [p], %rd2;", "st.global.v2.u64 [%rd5], {%rd6, %rd2}; st.param.b64 [p], %rd7;"),
        ("st.param.b64 [p], %rd2;", "atom.global.exch.b64 %rd8, [%rd5], %rd2; st.param.b64 [p], %rd7;"),
    ],
)
def test_a_local_address_is_followed_wherever_it_goes(old: str, new: str) -> None:
    text = HANDED.replace(".reg .b64 %rd<9>;", ".reg .b64 %rd<9>; .reg .b32 %r<3>; .reg .pred %p<2>;", 1)
    head, entry = text.split(".visible .entry through", 1)
    assert old in entry
    assert handed(f"{head}.visible .entry through{entry.replace(old, new, 1)}")["through"].path_local == (1, 1)


def test_an_address_handed_over_in_a_register_counts_too() -> None:
    text = """.version 7.4
.target sm_37
.address_size 64
.func f(.reg .b64 %a) { .reg .b32 %r<2>; st.u32 [%a], %r1; ret; }
.visible .entry k() { .local .align 4 .b8 d[8]; .reg .b64 %rd<3>;
mov.u64 %rd1, d; cvta.local.u64 %rd2, %rd1; call f, (%rd2); ret; }
"""
    assert handed(text)["k"].path_local == (0, 1)


def test_local_variables_outside_any_function_count_where_they_are_named() -> None:
    text = """.version 2.0
.target sm_20
.address_size 64
.local .align 4 .b8 scratch[40];
.func give(.reg .b64 %a) { .reg .b64 %rd<3>; mov.u64 %rd1, scratch; cvta.local.u64 %rd2, %rd1; st.u64 [%a], %rd2; ret; }
.visible .entry k() { .reg .b64 %rd<3>; .reg .b32 %r<2>; call give, (%rd1);
 ld.u64 %rd2, [%rd1]; ld.u32 %r1, [%rd2]; ret; }
.visible .entry none() { ret; }
"""
    found = handed(text)
    assert (found["k"].local_bytes, found["k"].path_local) == (40, (2, 1))
    assert (found["none"].local_bytes, found["none"].path_local) == (0, (0, 0))


def test_a_function_whose_address_is_taken_may_be_called() -> None:
    text = CALLS.replace(
        ".visible .entry none() { ret; }", ".visible .entry none() { .reg .b64 %rd<2>; mov.u64 %rd1, deep; ret; }"
    )
    from ssmtool.audit.inputs import Input

    assert dict(audit([Input("calls.ptx", parse(text))]).by_name)["none"].path_local == (1, 1)


def test_an_assumption_is_about_the_parameter_of_that_name_in_each_file() -> None:
    from ssmtool.audit.inputs import Input

    text = """.version 7.4
.target sm_37
.address_size 64
.entry k(.param .u32 k_param_0, .param .u32 k_param_1) { .local .align 4 .b8 d[4]; .reg .pred %p<2>; .reg .b32 %r<3>;
ld.param.u32 %r1, [k_param_0]; setp.eq.s32 %p1, %r1, 4; @%p1 bra E; st.local.u32 [d], %r1; E: ret; }
"""
    inputs = [Input(name, parse(text), {"k": names}) for name, names in (("a", ("n", "m")), ("b", ("m", "n")))]
    first, second = audit(inputs, [parse_assumption("k.n=4")])
    assert (first.path_local, second.path_local) == ((0, 0), (0, 1))
