"""The project's own files behind `#include`: kernels may stand in them, and the macros that count them.

Headers of the compiler and of the system lie outside the project and are left alone, and so is the generated header:
it holds PTX, not source.
"""

from __future__ import annotations

import os
from pathlib import Path

from ssmtool.csource.preprocess import Included, Resolver
from ssmtool.files import read_bytes
from ssmtool.project import Project


def source_includes(project: Project) -> Resolver:
    """What a compiler of the project's sources finds: beside the including file, then in the include folders."""
    folders = [project.path(folder) for folder in project.settings.include_dirs]
    folders += [project.path(folder) for folder in _flag_values(project, ("-I", "--include-path"))]

    def resolve(text: str, includer: Path) -> Included | None:
        name = text[1:-1]
        if text[:1] == '"' and text[-1:] == '"':
            return _find(project, name, [includer.parent, *folders])
        return _find(project, name, folders) if text[:1] == "<" and text[-1:] == ">" else None

    return resolve


def loader_includes(project: Project) -> Resolver:
    """Headers beside a loader. How its own build finds others is not known here."""

    def resolve(text: str, includer: Path) -> Included | None:
        return _find(project, text[1:-1], [includer.parent]) if text[:1] == text[-1:] == '"' else None

    return resolve


def includes_by_flag(project: Project) -> bool:
    """Whether a flag puts a file before every source, so that what it defines is not known here."""
    return bool(_flag_values(project, ("-include", "--pre-include")))


def _find(project: Project, name: str, folders: list[Path]) -> Included | None:
    """The first file of that name, if it is a part of the project."""
    if not name or "\0" in name:
        return None
    for folder in folders:
        path = Path(os.path.normpath(folder / name))
        if path.is_file():
            inside = path.is_relative_to(project.root) and path != project.header_path
            return Included(path, project.show(path), read_bytes(path)) if inside else None
    return None


def _flag_values(project: Project, names: tuple[str, ...]) -> list[str]:
    """What follows these flags, in the forms `-I x`, `-Ix` and `--include-path=x`."""
    values: list[str] = []
    flags = list(project.settings.flags)
    for index, flag in enumerate(flags):
        for name in names:
            if flag == name:
                values += flags[index + 1 : index + 2]
            elif flag.startswith(f"{name}=") or (name == "-I" and flag.startswith(name)):
                values.append(flag[len(name) :].removeprefix("="))
    return values
