"""`ssmtool toolchain` and the toolchain lines of `ssmtool --version`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ssmtool.cli import COMMANDS, main
from ssmtool.cli.toolchain import command
from ssmtool.toolchain import store


def test_help_line_of_the_group_is_the_commands_own() -> None:
    assert command.get_short_help_str(limit=200) == COMMANDS["toolchain"][1]


@pytest.mark.usefixtures("no_compilers")
def test_show_with_nothing_ends_with_2_and_the_mend(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["-C", str(tmp_path), "toolchain", "show"])
    assert result.exit_code == 2
    assert "ssmtool toolchain install" in result.stderr


@pytest.mark.usefixtures("no_compilers")
def test_json_of_nothing_is_a_verdict_too(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["-C", str(tmp_path), "toolchain", "show", "--format", "json"])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["exit_code"], report["verdict"]) == (2, 2, "unchecked")
    assert report["compilers"] == []


@pytest.mark.usefixtures("no_compilers")
def test_show_checks_the_hashes_of_the_installed_compiler(tmp_path: Path) -> None:
    """Right size, wrong bytes: only the hash can tell."""
    store.nvrtc_dir().mkdir(parents=True)
    for name, size, _ in store.FILES.values():
        (store.nvrtc_dir() / name).touch()
        os.truncate(store.nvrtc_dir() / name, size)
    result = CliRunner().invoke(main, ["-C", str(tmp_path), "toolchain", "show"])
    assert result.exit_code == 2
    assert "is damaged: sha256" in result.output


def test_broken_settings_are_an_error_not_a_default(tmp_path: Path) -> None:
    (tmp_path / "ssmtool.toml").write_text('target = "kepler"\n', encoding="utf-8")
    result = CliRunner().invoke(main, ["-C", str(tmp_path), "toolchain", "show"])
    assert result.exit_code == 2
    assert "ssmtool.toml:1" in result.stderr


@pytest.mark.usefixtures("no_compilers")
def test_version_lists_what_is_in_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.toolchain.ptxas._candidates", lambda: iter(()))
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert "no compiler in reach" in result.output
    assert "no ptxas in reach" in result.output
