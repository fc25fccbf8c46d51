"""The project's own files behind `#include`: kernels may stand in them, and the macros that count them.

Headers of the compiler and of the system lie outside the project and are left alone, and so is the generated header:
it holds PTX, not source.
"""

from __future__ import annotations

import os
from pathlib import Path

from ssmtool.csource import KernelSource, defines_from_flags, read_kernels
from ssmtool.csource.flags import files_before, include_folders
from ssmtool.csource.view import Included, Resolver
from ssmtool.files import read_bytes
from ssmtool.project import ModuleSettings, Project


def kernels_of_source(project: Project, module: ModuleSettings, text: str) -> KernelSource:
    """The kernels of a module's source, whose text is given, and of the project's files that it includes.

    They are read as the project's flags and target have them compiled. Raises SsmtoolError for an included file that
    cannot be read or has no end.
    """
    flags = project.settings.flags
    return read_kernels(
        text,
        module.source,
        project.settings.target,
        # What a file that a flag puts before every source defines is not known here.
        None if files_before(flags) else defines_from_flags(flags),
        file=project.path(module.source),
        resolve=_source_includes(project),
    )


def _source_includes(project: Project) -> Resolver:
    """What a compiler of the project's sources finds: beside the including file, then in the include folders."""
    folders = [project.path(folder) for folder in project.settings.include_dirs]
    folders += [project.path(folder) for folder in include_folders(project.settings.flags)]

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
