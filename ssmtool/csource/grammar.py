"""The tree-sitter grammars, loaded on first use.

`tree_sitter_cuda` (C++ with CUDA's words) reads `.cu` and C++; `tree_sitter_c` reads C, where the C++ grammar would
trip over names such as `new`. Both are given text without directives or comments, the two things they read worst.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_MISSING = "the C grammar cannot be loaded ({error}), so the source cannot be read"
_INSTALL = "pip install tree-sitter tree-sitter-c tree-sitter-cuda"


class Tree(msgspec.Struct, frozen=True):
    """A parsed text: its root node, and the language that the queries on it are written in."""

    root: Node
    language: Language

    def find(self, *types: str) -> list[Node]:
        """The nodes of these types, in the order of the text, an outer one before those in it.

        By a query, which visits the tree in C: a walk in Python took a tenth of the time of `build --check`.
        """
        from tree_sitter import Query, QueryCursor

        query = Query(self.language, f"[{' '.join(f'({name})' for name in types)}] @node")
        found = QueryCursor(query).captures(self.root).get("node", [])
        return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


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

    loaded = _language(language)
    return Tree(Parser(loaded).parse(data).root_node, loaded)


def ancestors(node: Node) -> Iterator[Node]:
    """What encloses `node`, innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
