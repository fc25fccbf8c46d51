"""What a name of a loader stands for: a macro in force at its place, an enumerator, a constant.

Looked for in the file and in the project's headers that it includes. A name that is declared twice, in two scopes or
two branches, is not told apart here: it stands for nothing.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import msgspec

from ssmtool.csource.grammar import Tree, parse
from ssmtool.csource.macros import Macro
from ssmtool.csource.view import View

if TYPE_CHECKING:
    from tree_sitter import Node

_FLOATING = re.compile(r"\b(?:float|double)\b")
_CONSTANT = re.compile(r"\b(?:const|constexpr|constinit)\b")


class Constant(msgspec.Struct, frozen=True):
    """A name with a fixed value: that of `initial` (zero for None), and `step` more.

    An enumerator without a value of its own is the last one with a value and the distance to it. `before` is the place
    that decides which macros are in force in it, `type` the words of a constant's type.
    """

    initial: str | None
    step: int
    before: int
    line: int
    path: str | None = None
    type: tuple[str, ...] = ()


class Scope:
    """The names of one preprocessed file; `tree` is the tree of its code."""

    def __init__(self, view: View, tree: Tree) -> None:
        self.view = view
        self.tree = tree

    def macro(self, name: str, before: int) -> Macro | None:
        """The macro that `name` surely is at an offset."""
        macro = self.view.macro(name, before)
        return macro if macro is not None and macro.certain else None

    def is_macro(self, name: str) -> bool:
        """Whether anything defines it as a macro, for sure or not."""
        return name in self.view.macros

    def is_value(self, name: str) -> bool:
        """Whether it is known as something other than a type."""
        return name in self.view.macros or name in self._constants

    def constant(self, name: str) -> Constant | None:
        """The enumerator or constant of that name, if there is just one and no macro of that name is met."""
        found = self._constants.get(name, ())
        return found[0] if len(found) == 1 and found[0] is not None and name not in self.view.macros else None

    def definition(self, name: str, before: int) -> tuple[int, str | None] | None:
        """The line that gives a name its value, and its file if that is another one."""
        macro = self.macro(name, before)
        if macro is not None:
            return macro.line, macro.header
        constant = self.constant(name)
        return (constant.line, constant.path) if constant else None

    @functools.cached_property
    def _constants(self) -> dict[str, list[Constant | None]]:
        """Name -> everything that declares it; None for what has no fixed value."""
        found: dict[str, list[Constant | None]] = {}
        self._collect(self.tree, self.view.code, None, found)
        for shown, code in self.view.headers:
            self._collect(parse(code, shown), code, shown, found)
        return found

    def _collect(self, tree: Tree, code: str, path: str | None, found: dict[str, list[Constant | None]]) -> None:
        for node in tree.find("enumerator_list", "init_declarator", "parameter_declaration"):
            if node.type == "enumerator_list":
                self._enumerators(node, code, path, found)
                continue
            declarator = node.child_by_field_name("declarator")
            if declarator is None or declarator.type != "identifier":
                continue
            name = code[declarator.start_byte : declarator.end_byte]
            found.setdefault(name, []).append(self._variable(node, code, path))

    def _variable(self, node: Node, code: str, path: str | None) -> Constant | None:
        initial = node.child_by_field_name("value")
        if node.type != "init_declarator" or initial is None or node.parent is None:
            return None
        head = code[node.parent.start_byte : node.start_byte]
        if "," in head or not _CONSTANT.search(head) or _FLOATING.search(head) or self._doubtful(node, path):
            return None
        words = tuple(re.findall(r"\w+|::", head))
        text = code[initial.start_byte : initial.end_byte]
        return Constant(text, 0, self._before(node, path), _line(node), path, words)

    def _enumerators(self, node: Node, code: str, path: str | None, found: dict[str, list[Constant | None]]) -> None:
        last: str | None = None
        step = 0
        certain = not self._doubtful(node, path) and not self._cut(node, path)
        for child in node.named_children:
            if child.type != "enumerator":
                # A macro inside the enum: what follows it cannot be counted.
                certain = False
                continue
            declared, initial = child.child_by_field_name("name"), child.child_by_field_name("value")
            if initial is not None:
                last, step = code[initial.start_byte : initial.end_byte], 0
            if declared is not None:
                name = code[declared.start_byte : declared.end_byte]
                constant = Constant(last, step, self._before(child, path), _line(child), path)
                found.setdefault(name, []).append(constant if certain else None)
            step += 1

    def _before(self, node: Node, path: str | None) -> int:
        return node.start_byte if path is None else len(self.view.code)

    def _doubtful(self, node: Node, path: str | None) -> bool:
        return path is None and self.view.undecided_at(node.start_byte) is not None

    def _cut(self, node: Node, path: str | None) -> bool:
        """Whether an undecided `#if` lies inside."""
        return path is None and any(node.start_byte <= group.start < node.end_byte for group in self.view.undecided)


def _line(node: Node) -> int:
    return node.start_point[0] + 1
