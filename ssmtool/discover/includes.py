"""Which folders a source's `#include` lines need, and which header a loader wants that is not there yet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ssmtool.build.includes import named_includes
from ssmtool.discover.tree import C_SUFFIXES, HEADER_SUFFIXES, Tree, read_small
from ssmtool.errors import SsmtoolError

# Headers of the CUDA toolkit that a loader may include; none of them is made by a build.
_TOOLKIT = ("cuda", "nvrtc", "device_", "vector_", "driver_types", "builtin_types", "channel_descriptor")


def guess_include_dirs(tree: Tree, sources: Iterable[Path]) -> list[str]:
    """Folders, as settings write them, that make the includes of `sources` resolve; doubts go to the tree's remarks.

    An include that resolves from the file's own folder needs none. Of the files elsewhere in the tree whose path ends
    in the name, only a single one is taken.
    """
    headers = tree.of(*HEADER_SUFFIXES)
    folders: dict[Path, None] = {}
    waiting, read = list(sources), set[Path]()
    while waiting:
        path = waiting.pop(0)
        if path in read:
            continue
        read.add(path)
        for name, _quoted in _names(path):
            near = Path(os.path.normpath(path.parent / name))
            places = [near, *(Path(os.path.normpath(folder / name)) for folder in folders)]
            there = next((place for place in places if place.is_file()), None)
            if there is None:
                there, doubt = _single(headers, name)
                if doubt:
                    shown = ", ".join(tree.show(item) for item in doubt)
                    tree.remarks.append(f"{tree.show(path)} includes {name}, which may be {shown}: see include_dirs")
                if there is None:
                    continue
                folders[Path(str(there)[: -len(os.path.normpath(name)) - 1])] = None
            if there.is_relative_to(tree.root):
                waiting.append(there)
    return [tree.show(folder) for folder in folders]


def guess_header(tree: Tree, loader: Path) -> str | None:
    """The header that `loader` includes and that is missing or empty: the one a build is to make. None when unclear.

    One with `ptx` in its name is preferred; without such a name it has to be the only one.
    """
    missing: dict[str, str] = {}
    for name, quoted in _names(loader):
        if not quoted or Path(name).name.lower().startswith(_TOOLKIT):
            continue
        place = Path(os.path.normpath(loader.parent / name))
        elsewhere = [path for path in tree.of(*HEADER_SUFFIXES) if _ends_with(path, name)]
        content = read_small(elsewhere[0] if len(elsewhere) == 1 else place)
        if content is not None and content.strip():
            continue
        if len(elsewhere) == 1:
            place = elsewhere[0]
        if place.is_relative_to(tree.root):
            missing[name] = tree.show(place)
    named = [shown for name, shown in missing.items() if "ptx" in name.lower()] or list(missing.values())
    return named[0] if len(set(named)) == 1 else None


def including(tree: Tree, header: Path) -> list[Path]:
    """The C files and headers that name `header` in an include."""
    word = header.name.encode()
    return [
        path
        for path in tree.of(*C_SUFFIXES, *HEADER_SUFFIXES)
        # To look for the bytes first is quick; to read the include lines of every file of a large tree takes seconds.
        if path != header and word in (read_small(path) or b"") and _includes(path, header)
    ]


def _includes(path: Path, header: Path) -> bool:
    names = [name for name, _ in _names(path)]
    return any(_ends_with(header, name) or Path(os.path.normpath(path.parent / name)) == header for name in names)


def _names(path: Path) -> list[tuple[str, bool]]:
    data = read_small(path)
    try:
        return named_includes(data, path) if data is not None else []
    except SsmtoolError:
        return []


def _single(headers: list[Path], name: str) -> tuple[Path | None, list[Path]]:
    """The one header whose path ends in `name`, or all of several."""
    found = [path for path in headers if _ends_with(path, name)]
    return (found[0], []) if len(found) == 1 else (None, found)


def _ends_with(path: Path, name: str) -> bool:
    return path.as_posix().endswith("/" + os.path.normpath(name).replace(os.sep, "/"))
