"""docs/architecture.md's table of rooms is the rule for imports, and the code keeps to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "ssmtool"
TABLE = re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", (ROOT / "docs/architecture.md").read_text())
ALLOWED = {room: re.findall(r"`(\w+)`", imports) for room, imports in TABLE}
# The page names these two itself.
UPWARDS = {("ci", "report"), ("doctor", "report")}
# Library -> the rooms that may import it.
LIBRARIES = {
    "rich": {"report"},
    "jinja2": {"report"},
    "llvmlite": {"execute"},
    "tree_sitter": {"csource"},
    "tree_sitter_c": {"csource"},
    "tree_sitter_cuda": {"csource"},
    "click": {"cli"},
    "distributed": {"cluster"},
    "dask": {"cluster"},
    "hypothesis": {"fuzz"},
}


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports, anywhere but for type checkers alone."""

    def within(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.ImportFrom) and child.module:
                yield from (
                    [f"ssmtool.{each.name}" for each in child.names] if child.module == "ssmtool" else [child.module]
                )
            elif isinstance(child, ast.Import):
                yield from (each.name for each in child.names)
            yield from within(child)

    return within(ast.parse(path.read_text("utf-8")))


def room_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {room for path in FILES if (room := room_of(path))}


def test_every_room_has_its_row_and_stands_below_what_it_imports() -> None:
    assert set(ALLOWED) == ROOMS
    order = list(ALLOWED)
    for room, above in ALLOWED.items():
        assert all(order.index(each) < order.index(room) for each in above), room


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_what_its_row_names_and_nothing_else(room: str) -> None:
    found = set()
    for path in FILES:
        if room_of(path) != room:
            continue
        for module in imports(path):
            parts = module.split(".")
            if parts[0] == "ssmtool" and len(parts) > 1 and parts[1] in ROOMS - {room}:
                found.add(parts[1])
            allowed = LIBRARIES.get(parts[0])
            assert allowed is None or room in allowed, f"{path}: {module}"
    if room == "cli":
        return
    extra = {each for each in found if (room, each) not in UPWARDS} - set(ALLOWED[room])
    assert not extra, f"docs/architecture.md does not let {room} import {extra}"


def test_the_files_at_the_root_import_no_room() -> None:
    for path in PACKAGE.glob("*.py"):
        if path.name != "__main__.py":
            assert not [each for each in imports(path) if each.split(".")[1:2] and each.split(".")[1] in ROOMS], path
