"""Functions of other people's packages in double precision, taken from the installed source without importing it.

Their code names fp32 outright (`x.to(torch.float32)`, `x.float()`), and importing it pulls in Triton or a whole model
library. So the function's syntax tree is read from the file, float32 becomes float64 in it, and it is compiled as it is
otherwise. Nothing of it is kept here.
"""

from __future__ import annotations
import __future__

import ast
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ssmtool.errors import SsmtoolError

HINT = "pip install 'ssmtool[oracles]'"


def folder_of(package: str) -> Path:
    """The installed package's folder. Raises SsmtoolError where there is none."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SsmtoolError(f"the package {package} is not installed", hint=HINT)
    return Path(next(iter(spec.submodule_search_locations)))


def version_of(distribution: str) -> str:
    """Name and release, as in `torch 2.13.0`."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"{distribution} (release unknown)"


def import_torch() -> Any:
    """PyTorch. Raises SsmtoolError where it is not installed or does not load."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except (ImportError, OSError) as error:
        raise SsmtoolError(f"torch cannot be imported: {error}", hint=HINT) from None
    return torch


def in_double(path: Path, names: tuple[str, ...], namespace: dict[str, Any]) -> dict[str, Any]:
    """The functions and classes of the file, with float64 for float32; `namespace` is what they refer to.

    Raises SsmtoolError when the file or a name is not there: another release.
    """
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError) as error:
        raise SsmtoolError(f"cannot be read: {error}", path=path, hint=HINT) from None
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in names if name not in found]
    if missing:
        raise SsmtoolError(f"this release has no {', '.join(missing)}", path=path)
    chosen = [found[name] for name in names]
    for top in chosen:
        for node in ast.walk(top):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                node.decorator_list = []  # they look for faster kernels
    module = ast.fix_missing_locations(_Double().visit(ast.Module([*chosen], [])))
    made = dict(namespace)
    exec(compile(module, str(path), "exec", __future__.annotations.compiler_flag), made)
    return {name: made[name] for name in names}


class _Double(ast.NodeTransformer):
    """`torch.float32` to `torch.float64`, `x.float()` to `x.double()`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = {"float32": "float64", "float": "double"}.get(node.attr, node.attr)
        return node
