"""What a rebuild changes, kernel by kernel."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ssmtool.build.difference import compare_modules
from ssmtool.header import HeaderModule, read_header


def held(product: Path) -> HeaderModule:
    return read_header(product / "generated/fc_cuda_ptx.h").modules[0]


def with_ptx(module: HeaderModule, ptx: str) -> HeaderModule:
    return msgspec.structs.replace(module, ptx=ptx)


def test_the_same_ptx_has_no_changes(product: Path) -> None:
    assert compare_modules([held(product)], [held(product)]) == []


def test_a_changed_instruction_is_counted_in_its_kernel(product: Path) -> None:
    module = held(product)
    start = module.ptx.index(".entry fc_sigmoid(")
    ptx = module.ptx[:start] + module.ptx[start:].replace("add.rn.f32", "sub.rn.f32", 1)
    (change,) = compare_modules([module], [with_ptx(module, ptx)])
    assert (change.kernel, change.kind, change.lines_added, change.lines_removed) == ("fc_sigmoid", "changed", 1, 1)
    assert change.operations == ("add.rn.f32 -1", "sub.rn.f32 +1")
    assert "-\tadd.rn.f32" in change.diff


def test_an_added_and_a_removed_kernel_are_told_apart(product: Path) -> None:
    module = held(product)
    cut = module.ptx.index(".visible .entry fc_ssm_qknorm_gqa_nx(")
    shorter = with_ptx(module, module.ptx[:cut])
    assert [(c.kernel, c.kind) for c in compare_modules([module], [shorter])] == [("fc_ssm_qknorm_gqa_nx", "removed")]
    assert [(c.kernel, c.kind) for c in compare_modules([shorter], [module])] == [("fc_ssm_qknorm_gqa_nx", "added")]
    assert {c.kind for c in compare_modules([], [module])} == {"added"}


def test_kernels_in_another_order_are_a_change_though_each_is_the_same(product: Path) -> None:
    module = held(product)
    first = module.ptx.index(".visible .entry fc_ssm_recurrence(")
    last = module.ptx.index(".visible .entry fc_ssm_qknorm_gqa_nx(")
    moved = with_ptx(module, module.ptx[:first] + module.ptx[last:] + module.ptx[first:last])
    assert [change.kind for change in compare_modules([module], [moved])] == ["reordered"]
