"""The command group: cheap to start, and honest about its commands."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from ssmtool import __version__
from ssmtool.cli import COMMANDS, LazyGroup, main

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
