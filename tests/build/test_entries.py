"""Entries of a normalised PTX: names, parameters, digests."""

from __future__ import annotations

from pathlib import Path

from ssmtool.build.entries import entry_digests, record_entries, split_entries
from ssmtool.header import read_header

TWO = """.version 7.4
.target sm_37
.address_size 64
.visible .entry first(
\t.param .u64 first_param_0,
\t.param .u64 .ptr .global .align 4 first_param_1,
\t.param .align 8 .b8 first_param_2[24],
\t.param .f32 first_param_3
)
.maxntid 128, 1, 1
{
\tret;
}
.visible .entry second()
{
\tret;
}
"""


def test_parameters_of_every_form_are_read() -> None:
    first, second = split_entries(TWO)
    assert [type_ for type_, _ in first.parameters] == ["u64", "u64", "b8[24]", "f32"]
    assert [name for _, name in first.parameters] == [f"first_param_{index}" for index in range(4)]
    assert second.parameters == ()


def test_parameters_get_their_c_names_only_when_all_of_them_are_known() -> None:
    named, plain = record_entries(TWO, {"first": ["out", "in", "shape", "eps"], "second": ["stray"]})
    assert named.parameters == "u64 out, u64 in, b8[24] shape, f32 eps"
    assert plain.parameters == ""
    short, _ = record_entries(TWO, {"first": ["out"]})
    assert short.parameters.startswith("u64 first_param_0, u64 first_param_1")


def test_a_changed_instruction_changes_the_digest_of_its_kernel_alone() -> None:
    changed = entry_digests(TWO.replace("\tret;\n}\n.visible .entry second", "\texit;\n}\n.visible .entry second"))
    before = entry_digests(TWO)
    assert changed["first"] != before["first"]
    assert changed["second"] == before["second"]


def test_the_products_header_records_all_kernels_with_their_c_names(product: Path) -> None:
    header = read_header(product / "generated" / "fc_cuda_ptx.h")
    entries = {entry.name: entry.parameters for entry in header.modules[0].record.entries}
    assert len(entries) == 15
    assert entries["fc_ssm_recurrence_seq"] == (
        "u64 s, u64 q, u64 k, u64 v, u64 g, u64 beta, u64 y, u32 state_size, u32 n_v_heads, u32 n, f32 scale, u64 snaps"
    )
