"""The documentation says what the code does."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT
from ssmtool.build.freshness import State
from ssmtool.cli import COMMANDS
from ssmtool.project import LoaderSettings, ModuleSettings, Settings

SETTINGS = (ROOT / "docs/settings.md").read_text()
BUILD = (ROOT / "docs/build.md").read_text()


@pytest.mark.parametrize(
    "key",
    [
        *(name for name in Settings.__struct_fields__ if name != "module"),
        *(name for name in ModuleSettings.__struct_fields__ if name != "loader"),
        *(f"loader.{name}" for name in LoaderSettings.__struct_fields__),
    ],
)
def test_every_setting_has_its_row(key: str) -> None:
    assert re.search(rf"^\| `{re.escape(key)}` \|", SETTINGS, re.MULTILINE)


@pytest.mark.parametrize("state", [state for state in State if state is not State.MISSING])
def test_every_state_of_the_check_is_explained(state: State) -> None:
    assert f"| {state.value} |" in BUILD


def test_every_registry_rule_is_explained_and_none_is_invented() -> None:
    rooms = (ROOT / "ssmtool/registry").glob("*.py")
    used = {rule for path in rooms for rule in re.findall(r'"(registry/[a-z-]+)"', path.read_text())}
    assert used == set(re.findall(r"`(registry/[a-z-]+)`", BUILD))


@pytest.mark.parametrize("command", list(COMMANDS))
def test_the_readme_names_every_command(command: str) -> None:
    assert f"`ssmtool {command}" in (ROOT / "README.md").read_text()


def test_relative_links_of_all_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
