"""Words for people."""

from __future__ import annotations

from ssmtool.wording import capped, folded, plural


def test_one_is_singular_and_none_is_plural() -> None:
    assert [plural(number, "kernel") for number in (0, 1, 2)] == ["0 kernels", "1 kernel", "2 kernels"]


def test_a_long_line_is_folded_and_no_word_is_cut() -> None:
    path = "x" * 250
    line = f"  mend it: {path} " + "word " * 80
    lines = folded(line.rstrip()).split("\n")
    assert path in lines[0] or path in lines[1]
    assert all(len(each) <= 120 for each in lines if path not in each)
    assert all(each.startswith("      ") for each in lines[1:])
    assert " ".join(" ".join(lines).split()) == " ".join(line.split())


def test_a_line_of_200_characters_stays() -> None:
    line = "word " * 40
    assert folded(line) == line


def test_a_log_keeps_its_head_and_its_tail() -> None:
    lines = [f"line {number}" for number in range(500)]
    kept = capped(lines)
    assert kept[:40] == lines[:40]
    assert kept[-10:] == lines[-10:]
    assert kept[40] == "... 450 lines left out here; --format json has them all"
    # One line less is not worth a line that says so.
    assert capped(lines[:51]) == lines[:51]
