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
    from tree_sitter import Node, Parser

_MISSING = "the C grammar cannot be loaded ({error}), so the source cannot be read"
_INSTALL = "pip install tree-sitter tree-sitter-c tree-sitter-cuda"


@functools.cache
def _parser(language: str) -> Parser:
    """The parser of `c` or `cuda`. Raises SsmtoolError when a package is absent or made for another tree-sitter."""
    try:
        import tree_sitter

        if language == "c":
            import tree_sitter_c

            return tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
        import tree_sitter_cuda

        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
    except (ImportError, ValueError, TypeError) as error:
        raise SsmtoolError(_MISSING.format(error=error), hint=_INSTALL) from None


def parse(code: str, path: Path | str) -> Node:
    """The tree of `latin-1` text, so that a node's byte offsets index `code` itself.

    The grammar follows the suffix; where it stumbles and the other one does not, the other one is right.
    """
    first, second = ("c", "cuda") if Path(path).suffix in (".c", ".h") else ("cuda", "c")
    data = code.encode("latin-1")
    root = _parser(first).parse(data).root_node
    if root.has_error:
        other = _parser(second).parse(data).root_node
        if not other.has_error:
            return other
    return root


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything under it, in the order of the text."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def ancestors(node: Node) -> Iterator[Node]:
    """What encloses `node`, innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
