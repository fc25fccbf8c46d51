"""The tree-sitter grammars, loaded on first use.

`tree_sitter_cuda` (C++ with CUDA's words) reads `.cu` and C++; `tree_sitter_c` reads C, where the C++ grammar would
trip over names such as `new`. Both are given text without directives or comments, the two things they read worst.
"""

from __future__ import annotations

import bisect
import functools
import importlib
from collections.abc import Collection, Iterator, Sequence
from importlib.machinery import ExtensionFileLoader, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_MISSING = "the C grammar cannot be loaded ({error}), so the source cannot be read"
_INSTALL = "pip install tree-sitter tree-sitter-c tree-sitter-cuda"


# The kinds of node that look-ups ask for; the others, most of a file, are not kept.
_KEPT = frozenset(
    {
        "array_declarator",
        "assignment_expression",
        "call_expression",
        "declaration",
        "enumerator",
        "enumerator_list",
        "function_definition",
        "init_declarator",
        "initializer_list",
        "parameter_declaration",
    }
)


class Tree:
    """A parsed text, by its root node."""

    def __init__(self, root: Node) -> None:
        self.root = root

    @functools.cached_property
    def _by_type(self) -> dict[str, list[Node]]:
        """The named nodes that look-ups ask for, in the order of the text, by their type.

        One walk serves all look-ups in a file; it takes 1 to 3 ms on 600 lines. A tree-sitter query visits the tree
        faster, but compiling one for the CUDA grammar takes 15 to 25 ms, which one look-up a run does not earn back.
        """
        nodes: dict[str, list[Node]] = {}
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.type in _KEPT:
                nodes.setdefault(node.type, []).append(node)
            stack.extend(reversed(node.named_children))
        return nodes

    def find(self, *types: str) -> list[Node]:
        """The named nodes of these types, in the order of the text, an outer one before those in it."""
        assert _KEPT.issuperset(types)
        found = [node for name in types for node in self._by_type.get(name, ())]
        return found if len(types) == 1 else sorted(found, key=lambda node: (node.start_byte, -node.end_byte))

    def around(self, offsets: Sequence[int], types: Collection[str]) -> Iterator[tuple[Node, Chain | None]]:
        """The named nodes of these types that hold one of the sorted `offsets`, in order, each with what encloses it.

        Only branches that hold an offset are walked. The way up is handed out because a node asked for its parent
        walks down to it from the root, once for each level.
        """
        stack: list[tuple[Node, Chain | None]] = [(self.root, None)]
        while stack:
            node, above = stack.pop()
            at = bisect.bisect_left(offsets, node.start_byte)
            if at == len(offsets) or offsets[at] >= node.end_byte:
                continue
            if node.type in types:
                yield node, above
            chain = Chain(node, above)
            stack.extend((child, chain) for child in reversed(node.named_children))


class Chain(NamedTuple):
    """A node and the chain of those that enclose it."""

    node: Node
    above: Chain | None


@functools.cache
def _language(name: str) -> Language:
    """The grammar `c` or `cuda`. Raises SsmtoolError when a package is absent or made for another tree-sitter."""
    try:
        import tree_sitter

        return tree_sitter.Language(_binding(f"tree_sitter_{name}").language())
    except (ImportError, ValueError, TypeError) as error:
        raise SsmtoolError(_MISSING.format(error=error), hint=_INSTALL) from None


def _binding(package: str) -> ModuleType:
    """The compiled part of a grammar's package, which is all that is needed of it.

    The rest of `tree_sitter_c` imports importlib.resources to find its queries: 4 ms of every `build --check`.
    """
    outer = PathFinder.find_spec(package)
    inner = PathFinder.find_spec(f"{package}._binding", outer.submodule_search_locations) if outer else None
    if inner is None or not isinstance(inner.loader, ExtensionFileLoader):
        return importlib.import_module(package)
    module = inner.loader.create_module(inner)
    inner.loader.exec_module(module)
    return module


def parse(code: str, path: Path | str) -> Tree:
    """The tree of `latin-1` text, so that a node's byte offsets index `code` itself.

    The grammar follows the suffix; where it stumbles and the other one does not, the other one is right.
    """
    first, second = ("c", "cuda") if Path(path).suffix in (".c", ".h") else ("cuda", "c")
    data = code.encode("latin-1")
    tree = _parse(first, data)
    if tree.root.has_error:
        other = _parse(second, data)
        if not other.root.has_error:
            return other
    return tree


def _parse(language: str, data: bytes) -> Tree:
    from tree_sitter import Parser

    # Nodes keep their tree alive.
    return Tree(Parser(_language(language)).parse(data).root_node)
