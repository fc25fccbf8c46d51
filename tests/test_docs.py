"""The documentation says what the code does."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from conftest import ROOT
from ssmtool.build.freshness import State
from ssmtool.cli import COMMANDS
from ssmtool.header import read_header
from ssmtool.project import Settings, read_project

BUILD = (ROOT / "docs/build.md").read_text()


def tool(name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_settings_page_is_what_the_structs_that_read_them_say() -> None:
    assert (ROOT / "docs/settings.md").read_text() == tool("settings_page").page(), "run tools/settings_page.py"


def test_the_example_of_the_settings_page_is_read_and_leaves_no_key_at_its_default_only(tmp_path: Path) -> None:
    match = re.search(r"```toml\n(.*?)```", (ROOT / "docs/settings.md").read_text(), re.DOTALL)
    assert match is not None
    (tmp_path / "pyproject.toml").write_text(match[1])
    project = read_project(tmp_path / "pyproject.toml")
    assert project is not None
    for name in Settings.__struct_fields__:
        assert re.search(rf"(?m)^{name} = |^\[\[?tool\.ssmtool\.{name}\]", match[1]), name
    assert project.settings.launch[0].grid == (128, 32)


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


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_exit_codes_of_every_command_are_in_the_table_in_its_own_words(name: str) -> None:
    command = importlib.import_module(f"ssmtool.cli.{COMMANDS[name][0]}").command
    said = dict(re.findall(r"\b(\d) (.*?)(?:;|\.$)", command.epilog.removeprefix("Exit codes: ")))
    row = f"| `{name}` | {said['0']} | {said.get('1', '')} | {said['2']} |"
    assert row in (ROOT / "docs/files.md").read_text(), row


def test_the_evidence_is_what_executor_results_and_tests_give() -> None:
    evidence = tool("evidence")
    assert evidence.missing_tests() == []
    assert (ROOT / "docs/numerics.md").read_text() == evidence.page(), "run tools/evidence.py"
    counts = re.findall(r"probe: ([\d,]+) results", evidence.page())
    probe = json.loads((ROOT / "docs/results/probe-nvidia-h200-2026-11-30.json").read_text())
    assert sum(int(each.replace(",", "")) for each in counts) == probe["compared"]["cases"]


def test_a_bit_that_differs_on_a_card_is_not_called_none(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = tool("evidence")
    probe = evidence.probes()[0]
    probe["different"] = [{"name": "ex2.approx.ftz.f32", "different": 3}]
    assert "3 differ" in evidence.compared(probe, {"ex2.approx.ftz.f32", "ex2.approx.f32"})
    assert evidence.compared(probe, {"add.frob"}) == "not run"
    monkeypatch.setattr(evidence, "probes", lambda: [{**probe, "target": "sm_37", "model": "Tesla K80"}])
    assert len(evidence.heads()) == 1
    assert evidence.heads()[0].startswith("Tesla K80, driver")


@pytest.mark.parametrize("name", ["ci", "ci-wrong"])
def test_the_readme_s_pictures_are_of_today_s_product_and_load_nothing(name: str) -> None:
    path = ROOT / "docs/images" / f"{name}.svg"
    assert f"docs/images/{name}.svg" in (ROOT / "README.md").read_text()
    root = ElementTree.parse(path).getroot()
    assert set(re.findall(r"\w+://[^\s\"']+", path.read_text())) == {"http://www.w3.org/2000/svg"}
    said = " ".join("".join(root.itertext()).replace("\xa0", " ").split())
    assert all(step in said for step in ("build", "registry", "audit-ptx", "verify"))
    header = ROOT / ("generated/fc_cuda_ptx.h" if name == "ci" else "examples/vector_kernels/generated/vector_ptx.h")
    kernels = sum(len(module.entry_names) for module in read_header(header).modules)
    assert f"{kernels} kernels" in said, "run tools/screenshot.py"
    assert ("with no barrier between" in said) is (name == "ci-wrong")


def options_of(name: str, words: Sequence[str]) -> set[str]:
    """Every option of a command, and of its subcommand where one of the words is."""
    command = importlib.import_module(f"ssmtool.cli.{COMMANDS[name][0]}").command
    commands = [command, *(command.commands[word] for word in words if word in getattr(command, "commands", ()))]
    known = {option for each in commands for parameter in each.params for option in parameter.opts}
    return known | {"--help", "--project", "--quiet", "--version"}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_option_that_a_page_gives_a_command_is_one(page: Path) -> None:
    said = re.finditer(r"\bssmtool(?: -q| -C \S+| --quiet)* ([a-z][a-z-]*)([^`\n#;|)]*)", page.read_text())
    for name, rest in ((match[1], match[2]) for match in said if match[1] in COMMANDS):
        unknown = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", rest)) - options_of(name, rest.split())
        assert not unknown, f"ssmtool {name}{rest}"
