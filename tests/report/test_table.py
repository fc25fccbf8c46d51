"""Tables on terminals of any width, and off them."""

from __future__ import annotations

import pytest

from ssmtool.report.table import print_table

COLUMNS = ("kernel", "instr", "ld+st.local", "on the path", "what happened and why")
ROWS = [
    ("fc_ssm_recurrence_seq_unroll128", "1206", "0+0", "12+4", "an array is indexed at run time, so it is in memory"),
    ("fc_sigmoid", "38", "0+0", "0+0", ""),
]


def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int | None) -> list[str]:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    print_table("", COLUMNS, ROWS)
    return capsys.readouterr().out.splitlines()


def test_off_a_terminal_nothing_is_cut_or_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(capsys, monkeypatch, None)
    assert len([line for line in lines if line]) == 2 + len(ROWS)
    assert all(cell in lines[2] for cell in ROWS[0])


@pytest.mark.parametrize("width", [60, 72, 80, 90, 120, 200])
def test_on_a_terminal_every_head_and_word_is_whole_and_no_line_too_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    lines = shown(capsys, monkeypatch, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(column in text for column in COLUMNS)
    assert all(word in text for row in ROWS for cell in row for word in cell.split())


def test_tables_below_repeat_the_first_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(capsys, monkeypatch, 60)
    assert sum(line.startswith("fc_sigmoid") for line in lines) > 1


def test_the_narrowest_terminal_loses_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(shown(capsys, monkeypatch, 20))
    assert "what happened and why" in text
