"""The tree-sitter grammars, loaded on first use.

`tree_sitter_cuda` (C++ with CUDA's words) reads `.cu` and C++; `tree_sitter_c` reads C, where the C++ grammar would
trip over names such as `new`. Both are given text without directives or comments, the two things they read worst.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_MISSING = "the C grammar cannot be loaded ({error}), so the source cannot be read"
_INSTALL = "pip install tree-sitter tree-sitter-c tree-sitter-cuda"


class Tree:
    """A parsed text, by its root node."""

    def __init__(self, root: Node) -> None:
        self.root = root

    @functools.cached_property
    def _by_type(self) -> dict[str, list[Node]]:
        """Every named node, in the order of the text, by its type.

        One walk serves all look-ups in a file; it takes 1 to 3 ms on 600 lines. A tree-sitter query visits the tree
        faster, but compiling one for the CUDA grammar takes 15 to 25 ms, which one look-up a run does not earn back.
        """
        nodes: dict[str, list[Node]] = {}
        stack = [self.root]
        while stack:
            node = stack.pop()
            nodes.setdefault(node.type, []).append(node)
            stack.extend(reversed(node.named_children))
        return nodes

    def find(self, *types: str) -> list[Node]:
        """The named nodes of these types, in the order of the text, an outer one before those in it."""
        found = [node for name in types for node in self._by_type.get(name, ())]
        return found if len(types) == 1 else sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


@functools.cache
def _language(name: str) -> Language:
    """The grammar `c` or `cuda`. Raises SsmtoolError when a package is absent or made for another tree-sitter."""
    try:
        import tree_sitter

        if name == "c":
            import tree_sitter_c

            return tree_sitter.Language(tree_sitter_c.language())
        import tree_sitter_cuda

        return tree_sitter.Language(tree_sitter_cuda.language())
    except (ImportError, ValueError, TypeError) as error:
        raise SsmtoolError(_MISSING.format(error=error), hint=_INSTALL) from None


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


def ancestors(node: Node) -> Iterator[Node]:
    """What encloses `node`, innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
