"""The names under which files reach a compiler, and so the PTX."""

from __future__ import annotations

import os
from pathlib import Path


def from_root(root: Path, path: Path) -> str:
    """`path` counted from the project's folder, with forward slashes.

    Compilers run in that folder and write the names they were given into the PTX (`.file` of -lineinfo, `__FILE__` in
    assert), so an absolute name would make the PTX differ from one checkout to the next.
    """
    return os.path.relpath(path, root).replace(os.sep, "/")
