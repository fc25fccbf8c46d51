"""The command group: cheap to start, and honest about its commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from conftest import ROOT
from ssmtool import __version__
from ssmtool.cli import COMMANDS, LazyGroup, main
from ssmtool.cli.context import FORMATS

# What may never be imported before a command runs: each costs more than click itself.
HEAVY = ("numpy", "llvmlite", "tree_sitter", "rich", "pycuda", "hypothesis")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_list_in_help_says_what_the_command_says(name: str) -> None:
    assert isinstance(main, LazyGroup)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert (command.help or "").strip().split("\n")[0] == COMMANDS[name][1]
    assert command.name == name


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_shows_examples_and_exit_codes(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "Exit codes:" in result.output


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom ssmtool.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"


def test_python_dash_m_is_the_same_program() -> None:
    ran = subprocess.run([sys.executable, "-m", "ssmtool", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(f"ssmtool {__version__}\n")
    assert "NVRTC 11.4.152" in ran.stdout


def test_an_unknown_command_is_usage() -> None:
    assert CliRunner().invoke(main, ["biuld"]).exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["biuld", "--format", "json"],
        ["build", "--nope", "--format=json"],
        ["--nope", "build", "--format", "json"],
        ["toolchain", "show", "extra", "--format", "json"],
        ["build", "--format", "json", "--compiler"],
    ],
)
def test_a_usage_error_is_json_where_json_was_asked_for(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert (document["verdict"], document["exit_code"]) == ("unchecked", 2)
    assert document["error"]["message"] in result.stderr
    assert document["error"]["fix"].endswith("--help")


@pytest.mark.parametrize("output_format", [name for name in FORMATS if name not in ("console", "json")])
def test_a_usage_error_is_a_report_in_every_format(output_format: str) -> None:
    result = CliRunner().invoke(main, ["build", "--format", output_format, "--nope"])
    assert result.exit_code == 2
    assert "No such option" in result.stdout.replace("&#45;", "-")


@pytest.mark.parametrize(("error", "code", "says"), [
    (KeyboardInterrupt(), 130, "interrupted"), (MemoryError("no room for 75 GiB"), 2, "no room for 75 GiB"),
])  # fmt: skip
def test_what_ends_a_command_early_is_json_where_json_was_asked_for(
    error: BaseException, code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("ssmtool.registry.project.check_project", fail)
    ran = CliRunner().invoke(main, ["registry", "-C", str(ROOT), "--format", "json"])
    assert ran.exit_code == code
    assert says in json.loads(ran.stdout)["error"]["message"]


def test_a_format_that_is_none_is_said_to_people_only() -> None:
    result = CliRunner().invoke(main, ["build", "--format", "yaml"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "yaml" in result.stderr


def test_formats_are_those_of_the_reports() -> None:
    from ssmtool.report import formats

    assert ("console", *formats.FORMATS) == FORMATS


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("toolchain", "golden")])
def test_quiet_and_project_are_understood_after_the_command_too(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"]).output
    assert "-q, --quiet" in shown
    assert "-C, --project" in shown


def test_quiet_after_the_command_is_quiet() -> None:
    result = CliRunner().invoke(main, ["build", "--check", "-q", "-C", str(ROOT)])
    assert (result.exit_code, result.output) == (0, "")
    again = CliRunner().invoke(main, ["-C", str(ROOT), "build", "--check"])
    assert again.output != ""


def test_errors_show_paths_inside_the_project_relative_to_it(product: Path) -> None:
    (product / "generated/fc_cuda_ptx.h").unlink()
    result = CliRunner().invoke(main, ["-C", str(product), "audit-ptx"])
    assert result.exit_code == 2
    assert str(product) not in result.stderr


def test_a_current_folder_that_was_removed_is_named_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = CliRunner().invoke(main, ["build", "--check"])
    assert result.exit_code == 2
    assert "the current folder was removed" in result.stderr
    result = CliRunner().invoke(main, ["-C", str(tmp_path), "build", "--check"])
    assert (result.exit_code, "ssmtool init" in result.stderr) == (2, True)
