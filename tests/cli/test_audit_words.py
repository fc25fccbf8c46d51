"""The audit's words: whose finding it is and where, and answers that one option gives alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Run

SMALL = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k() { ret; }
"""
TWO = """static const char PTX_A[] = ".version 7.4\\n.target sm_37\\n.address_size 64\\n"
  ".visible .entry a() { ret; }\\n";
static const char PTX_B[] = ".version 7.4\\n.target sm_37\\n.address_size 64\\n"
  ".visible .entry b() {\\n .local .b8 d[8]; .reg .u32 %r<2>;\\n"
  "ld.local.u32 %r1, [d];\\n ret; }\\n";
"""


def test_an_annotation_on_one_of_several_constants_points_at_the_file_and_its_line(tmp_path: Path, run: Run) -> None:
    (tmp_path / "two.h").write_text(TWO)
    ran = run(tmp_path, "audit-ptx", str(tmp_path / "two.h"), "--format", "github")
    assert ran.out.startswith(f"::warning file={tmp_path / 'two.h'},line=5,title=audit/local-traffic (b)")


def test_the_tables_of_several_constants_say_whose_they_are(tmp_path: Path, run: Run) -> None:
    (tmp_path / "two.h").write_text(TWO)
    ran = run(tmp_path, "audit-ptx", str(tmp_path / "two.h"), "--resources")
    assert "two.h (PTX_A): Local memory" in ran.out and "two.h (PTX_B): Local memory" in ran.out
    assert ran.out.count("skipped: driver's own count") <= 1


def test_a_revision_without_git_in_front_is_told_how_to_write_it(product: Path, run: Run) -> None:
    ran = run(product, "audit-ptx", "--compare", "HEAD")
    assert ran.code == 2
    assert "--compare git:HEAD" in ran.err


def test_a_finding_that_does_not_name_its_kernel_is_shown_with_it(tmp_path: Path, run: Run) -> None:
    (tmp_path / "two.h").write_text(TWO)
    ran = run(tmp_path, "audit-ptx", str(tmp_path / "two.h"))
    assert "two.h:5: b: local memory on a path" in ran.out


def test_new_kernels_are_one_note_however_many(product: Path, run: Run) -> None:
    baseline = product / "generated/audit-baseline.json"
    data = json.loads(baseline.read_text())
    for name in list(data["kernels"])[:2]:
        data["kernels"][f"{name}_gone"] = data["kernels"].pop(name)
    baseline.write_text(json.dumps(data))
    ran = run(product, "audit-ptx")
    assert "2 kernels in the PTX and not in the baseline yet: " in ran.out
    assert "2 kernels in the baseline and no longer in the PTX: " in ran.out


def test_a_graph_is_not_drawn_over_a_file_of_the_users(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(SMALL)
    for _ in range(2):  # over an older graph it may
        assert run(tmp_path, "audit-ptx", str(file), "--graph", str(tmp_path / "k.svg"), "--kernel", "k").code == 0
    ran = run(tmp_path, "audit-ptx", str(file), "--graph", str(file), "--kernel", "k")
    assert ran.code == 2
    assert "left as it is" in ran.err
    assert file.read_text() == SMALL


@pytest.mark.parametrize("more", [["--cost"], ["--format", "json"], ["--graph", "x.svg", "--kernel", "k"]])
def test_an_option_that_explain_would_pass_over_is_refused(tmp_path: Path, run: Run, more: list[str]) -> None:
    (tmp_path / "k.ptx").write_text(SMALL)
    ran = run(tmp_path, "audit-ptx", str(tmp_path / "k.ptx"), "--explain", "k", *more)
    assert ran.code == 2
    assert f"does not go with {more[0]}" in ran.err


def test_a_loader_that_only_speaks_of_ptx_is_passed_over_in_a_folder(product: Path, run: Run) -> None:
    hidden = product / ".venv"
    hidden.mkdir()
    (hidden / "others.ptx").write_text(SMALL)
    assert "15 kernels;" in run(product, "audit-ptx", str(product)).out


def test_a_header_that_was_never_made_is_mended_by_a_build(product: Path, run: Run) -> None:
    (product / "generated/fc_cuda_ptx.h").unlink()
    ran = run(product, "audit-ptx")
    assert ran.code == 2
    assert "mend it: ssmtool build" in ran.err
