"""The C, C++ and CUDA files of a tree, without other people's code, and never without end."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

C_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cxx"})
HEADER_SUFFIXES = frozenset({".h", ".hh", ".hpp", ".hxx", ".inc", ".cuh"})
SOURCE_SUFFIX = ".cu"

_SKIPPED = frozenset(
    {"node_modules", "build", "dist", "venv", "site-packages", "third_party", "vendor", "__pycache__", "CMakeFiles"}
)
_SKIPPED_BEGINNINGS = (".", "cmake-build-", "bazel-")
# A folder with one of these in it is a virtual environment or a build, whatever its name.
_MARKS = frozenset({"pyvenv.cfg", "CMakeCache.txt", "conda-meta"})
# Names that are looked at in all; a home folder or a monorepo has more, and then the project's own folder is meant.
MAX_NAMES = 50_000
# A file larger than this is data, not a loader or a header written for people.
_MAX_BYTES = 8_000_000


@dataclass(slots=True)
class Tree:
    """The files found, sorted; `remarks` says what was left out, `cut` that the limit was reached."""

    root: Path
    files: list[Path] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    cut: bool = False

    def show(self, path: Path) -> str:
        """`path` as the settings write it."""
        return path.relative_to(self.root).as_posix()

    def of(self, *suffixes: str) -> list[Path]:
        """The files with one of these suffixes."""
        return [path for path in self.files if path.suffix in suffixes]


def read_tree(root: Path, *, max_names: int = MAX_NAMES) -> Tree:
    """Look through `root`, the near folders first, so that a limit cuts off what lies deepest.

    Links to folders are not followed (they may lead round in a circle), nor are links to files that lie in the tree
    themselves.
    """
    tree = Tree(root)
    seen = 0
    waiting = deque([root])
    while waiting:
        folder = waiting.popleft()
        try:
            with os.scandir(folder) as entries:
                names = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if folder == root:
                raise
            tree.remarks.append(f"{_printable(tree.show(folder))} was left out: {error.strerror or error}")
            continue
        if folder != root and any(entry.name in _MARKS for entry in names):
            continue
        for entry in names:
            seen += 1
            if seen > max_names:
                tree.cut = True
                tree.remarks.append(
                    f"only the first {max_names} files and folders were looked at; "
                    "run ssmtool init in the folder that holds the kernels"
                )
                tree.files.sort()
                return tree
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED and not entry.name.startswith(_SKIPPED_BEGINNINGS):
                    waiting.append(Path(entry.path))
            elif _wanted(entry, tree):
                tree.files.append(Path(entry.path))
    tree.files.sort()
    return tree


def read_small(path: Path) -> bytes | None:
    """The file's bytes, or None for what is too large or cannot be read: a guess passes over those."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= _MAX_BYTES else None
    except OSError:
        return None


def _wanted(entry: os.DirEntry[str], tree: Tree) -> bool:
    """Whether a file is one to read."""
    suffix = Path(entry.name).suffix
    if suffix not in C_SUFFIXES and suffix not in HEADER_SUFFIXES and suffix != SOURCE_SUFFIX:
        return False
    if _printable(entry.path) != entry.path:
        tree.remarks.append(f"{_printable(tree.show(Path(entry.path)))} was left out: its name is not UTF-8")
        return False
    try:
        if entry.is_symlink() and Path(os.path.realpath(entry.path)).is_relative_to(os.path.realpath(tree.root)):
            return False
        return entry.is_file()
    except OSError:
        return False


def _printable(name: str) -> str:
    """The name with `?` for bytes that are not UTF-8."""
    return name.encode("utf-8", "replace").decode("utf-8")
