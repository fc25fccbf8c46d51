"""The program that tries wrong kernels: a sample of its rows, its exit codes, and its page."""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import ROOT

PAGE = ROOT / "docs" / "mutants.md"


def mutants(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/mutants", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_sample_is_caught_and_an_equivalent_one_is_seen_by_the_audit_alone() -> None:
    before = PAGE.read_bytes()
    sample = ("5-softplus-branch", "17-no-kernel", "k4-bound", "k1-barrier-0", "k4-suffix", "no-kernels")
    ran = mutants(*sample)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    caught_by = {name: re.search(rf"^caught .* {re.escape(name)} +(.*)$", ran.stdout, re.MULTILINE) for name in sample}
    said = {name: found[1] if found else "" for name, found in caught_by.items()}
    assert said.pop("k4-suffix") == "audit-ptx"
    assert said.pop("no-kernels") == "PTX front end"
    assert all(by.startswith(("case ", "relation ")) for by in said.values()), said
    assert PAGE.read_bytes() == before, "a sample leaves the page alone"


def test_a_name_that_is_none_is_told() -> None:
    ran = mutants("k4-bund")
    assert ran.returncode == 2
    assert "k4-bund" in ran.stderr


def test_the_page_is_of_the_present_rows_and_nothing_survives() -> None:
    code = "import sys; sys.path.insert(0, 'tools/mutants'); import source_rows, ptx_rows; "
    code += "print(*(row.name for row in (*source_rows.ROWS, *ptx_rows.ROWS)))"
    listed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    page = PAGE.read_text("utf-8")
    rows = set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE))
    assert rows == set(listed.stdout.split()), "run: make mutants"
    assert "## Survivors" not in page
    for number in range(1, 19):
        assert re.search(rf"^\| {number} \| .*\(caught( on a card)?\)", page, re.MULTILINE), f"mistake {number}"
