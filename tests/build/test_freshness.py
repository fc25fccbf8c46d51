"""`build --check`: each state is told apart from every other, from hashes alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from ssmtool.build.freshness import Freshness, State, check_freshness
from ssmtool.build.includes import hash_includes, hash_source
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Verdict
from ssmtool.header import CompilerRecord, read_header, render_header
from ssmtool.project import find_project

HEADER = "generated/fc_cuda_ptx.h"
SOURCE = "kernels/ssm_gated_delta.cu"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def made_by(product: Path, version: str) -> None:
    """The header as another release of the compiler would have left it, the PTX being the same."""
    path = product / HEADER
    (module,) = read_header(path).modules
    record = msgspec.structs.replace(module.record, compiler=CompilerRecord("nvrtc", version))
    path.write_bytes(render_header(path.name, (msgspec.structs.replace(module, record=record),)))


def check(folder: Path) -> tuple[State, Freshness]:
    freshness = check_freshness(find_project(folder))
    (module,) = freshness.modules
    return module.state, freshness


def rules(freshness: Freshness) -> list[str]:
    return [finding.rule for finding in freshness.outcome.findings]


def test_the_checked_in_header_is_fresh(product: Path) -> None:
    state, freshness = check(product)
    assert state is State.FRESH
    assert freshness.outcome.verdict is Verdict.OK
    assert not freshness.outcome.findings


def test_one_byte_more_in_the_source_is_a_changed_source(product: Path) -> None:
    with (product / SOURCE).open("a") as file:
        file.write(" ")
    state, freshness = check(product)
    assert state is State.SOURCE_CHANGED
    assert freshness.outcome.verdict is Verdict.WRONG
    assert freshness.outcome.findings[0].fix == "ssmtool build"


def test_a_source_checked_out_with_crlf_is_fresh(product: Path) -> None:
    path = product / SOURCE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert check(product)[0] is State.FRESH


def test_a_header_checked_out_with_crlf_is_fresh(product: Path) -> None:
    path = product / HEADER
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    state, freshness = check(product)
    assert (state, freshness.outcome.findings) == (State.FRESH, [])


def test_an_include_that_appears_changes_the_source(product: Path) -> None:
    edit(product / SOURCE, "/*", '#include "extra.cuh"\n/*')
    (product / "kernels/extra.cuh").write_text("")
    _, freshness = check(product)
    assert "kernels/extra.cuh (newly included)" in freshness.outcome.findings[0].message


def test_an_edited_instruction_names_its_kernel(product: Path) -> None:
    path = product / HEADER
    text = path.read_text()
    start = text.index(".visible .entry fc_sigmoid(")
    head, tail = text[:start], text[start:]
    assert "add.rn.f32" in tail
    path.write_text(head + tail.replace("add.rn.f32", "sub.rn.f32", 1))
    state, freshness = check(product)
    assert state is State.HEADER_EDITED
    assert "the PTX of fc_sigmoid in FC_PTX_SSM_GATED_DELTA" in freshness.outcome.findings[0].message


def test_an_edit_wins_over_a_changed_source(product: Path) -> None:
    edit(product / HEADER, "add.rn.f32", "sub.rn.f32")
    (product / SOURCE).write_text("changed")
    assert check(product)[0] is State.HEADER_EDITED


def test_an_edit_outside_the_ptx_is_found_with_its_line(product: Path) -> None:
    path = product / HEADER
    edit(path, "#ifndef FC_CUDA_PTX_H\n", "#ifndef FC_CUDA_PTX_H\n#define MY_FLAG 1\n")
    line = path.read_text().split("\n").index("#define MY_FLAG 1") + 1
    _, freshness = check(product)
    assert rules(freshness) == ["header/edited"]
    assert freshness.outcome.findings[0].line == line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version":"11.4.152"', '"version": "11.4.152"'),
        ('"version":"11.4.152"', '"version":"11.4.108"'),
        ("u32 state_size", "u32 State_size"),
        ("ssm_gated_delta.cu", "ssm_gated_delta.cU"),
    ],
)
def test_a_changed_record_is_an_edit_too(product: Path, old: str, new: str) -> None:
    edit(product / HEADER, old, new)
    assert rules(check(product)[1]) == ["header/edited"]


def test_ptx_of_another_release_is_only_a_toolchain_difference(product: Path) -> None:
    made_by(product, "11.8.89")
    state, freshness = check(product)
    assert state is State.TOOLCHAIN_DIFFERS
    assert "made by nvrtc 11.8.89, the settings pin CUDA 11.4" in freshness.outcome.findings[0].message


def test_release_numbers_are_not_compared_as_text(product: Path) -> None:
    made_by(product, "11.40.1")
    assert check(product)[0] is State.TOOLCHAIN_DIFFERS


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('target = "sm_37"', 'target = "sm_35"', "target was sm_37, is sm_35"),
        ('target = "sm_37"', 'target = "sm_37"\nflags = ["-DX=1"]', "flags were [], are [-DX=1]"),
    ],
)
def test_settings_that_reach_the_compiler_count(product: Path, old: str, new: str, words: str) -> None:
    edit(product / "pyproject.toml", old, new)
    state, freshness = check(product)
    assert state is State.SETTINGS_CHANGED
    assert words in freshness.outcome.findings[0].message


def test_a_header_of_other_make_cannot_be_told_and_is_no_pass(product: Path) -> None:
    path = product / HEADER
    path.write_text(re.sub(r"ssmtool-provenance-begin.*?ssmtool-provenance-end", "", path.read_text(), flags=re.DOTALL))
    state, freshness = check(product)
    assert state is State.CANNOT_TELL
    assert freshness.outcome.verdict is Verdict.UNCHECKED


def test_a_missing_source_cannot_be_told(product: Path) -> None:
    (product / SOURCE).unlink()
    state, freshness = check(product)
    assert state is State.CANNOT_TELL
    assert freshness.outcome.verdict is Verdict.UNCHECKED
    assert "no such file" in freshness.outcome.required_skips[0].reason


def test_a_missing_header_is_wrong(product: Path) -> None:
    (product / HEADER).unlink()
    state, freshness = check(product)
    assert state is State.MISSING
    assert rules(freshness) == ["header/missing"]


@pytest.mark.parametrize("part", [0.02, 0.5, 0.99])
def test_a_truncated_header_is_never_fresh(product: Path, part: float) -> None:
    path = product / HEADER
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    _, freshness = check(product)
    assert freshness.outcome.verdict is not Verdict.OK


def test_a_constant_that_no_module_makes_is_a_leftover(product: Path) -> None:
    edit(product / "pyproject.toml", 'constant = "FC_PTX_SSM_GATED_DELTA"', 'constant = "FC_PTX_OTHER"')
    state, freshness = check(product)
    assert state is State.MISSING
    assert rules(freshness) == ["header/missing", "header/leftover"]


def with_toolkit(product: Path, toolkit: Path) -> None:
    """The header as a build with a header of `toolkit`, an absolute include folder, would have left it."""
    toolkit.mkdir(parents=True)
    (toolkit / "cuda_fp16.h").write_text("/* 11.4 */\n")
    source = product / SOURCE
    source.write_text("#include <cuda_fp16.h>\n" + source.read_text())
    edit(product / "pyproject.toml", 'target = "sm_37"', f'target = "sm_37"\ninclude_dirs = ["{toolkit}"]')
    path = product / HEADER
    (module,) = read_header(path).modules
    includes = hash_includes(find_project(product), source)
    record = msgspec.structs.replace(
        module.record, source_sha256=hash_source(source.read_bytes()), includes={**module.record.includes, **includes}
    )
    path.write_bytes(render_header(path.name, (msgspec.structs.replace(module, record=record),)))


def test_another_toolkits_header_is_a_toolchain_that_differs(product: Path, tmp_path: Path) -> None:
    with_toolkit(product, tmp_path / "cuda/include")
    assert check(product)[0] is State.FRESH
    (tmp_path / "cuda/include/cuda_fp16.h").write_text("/* 11.8 */\n")
    state, freshness = check(product)
    assert state is State.TOOLCHAIN_DIFFERS
    assert "<cuda_fp16.h>" in freshness.outcome.findings[0].message


def test_a_machine_without_the_toolkit_skips_its_headers_and_says_so(product: Path, tmp_path: Path) -> None:
    with_toolkit(product, tmp_path / "cuda/include")
    shutil.rmtree(tmp_path / "cuda")
    state, freshness = check(product)
    assert (state, freshness.outcome.verdict) == (State.FRESH, Verdict.OK)
    (skip,) = freshness.outcome.skips
    assert "<cuda_fp16.h>" in skip.check and "not found on this machine" in skip.reason


def test_a_header_that_is_a_link_to_itself_is_not_called_missing(product: Path) -> None:
    path = product / HEADER
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(SsmtoolError, match="cannot be read: Too many levels of symbolic links"):
        check(product)
