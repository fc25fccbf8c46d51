"""The project's own files that a `.cu` file includes, and their hashes.

NVRTC 11.4 has no dependency output, and `build --check` must work with no compiler at all, so the `#include` lines are
read here. The scan takes the union over all preprocessor branches: a file too many can only ask for a rebuild that was
not needed, never miss one that was.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ssmtool.csource.flags import files_before, include_folders
from ssmtool.csource.mask import mask
from ssmtool.files import read_bytes
from ssmtool.header import sha256
from ssmtool.project import Project

#   #include "gdn/tree.cuh"          %: include <common.h>          #include TREE_HEADER
_INCLUDE = re.compile(r'^[ \t]*(?:#|%:)[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\w+))', re.MULTILINE)
#   #define TREE_HEADER "gdn/tree.cuh"
_DEFINE = re.compile(r'^[ \t]*(?:#|%:)[ \t]*define[ \t]+(\w+)[ \t]+(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def hash_includes(project: Project, source: Path) -> dict[str, str]:
    """Path from the project's folder -> SHA-256 of every included file that lies in the project or its include folders.

    A header of a folder that the settings give by an absolute path, such as a toolkit's, is named by what `#include`
    says, `<cuda_fp16.h>`: its path is that of one machine. Comments and spliced lines are resolved first. An include by
    macro stands for every file that a `#define` of that name gives anywhere in the files read. Headers of the compiler
    itself (`cuda_runtime.h`, `stdint.h`) are not found and are left out: they belong to the compiler's release, which
    is recorded on its own. Raises SsmtoolError when a file cannot be read.
    """
    given = [*project.settings.include_dirs, *include_folders(project.settings.flags)]
    folders = [project.path(folder) for folder in given]
    toolkits = toolkit_folders(project)
    found: dict[str, str] = {}
    texts: list[tuple[Path, str]] = []
    defined: dict[str, set[str]] = {}

    def take(path: Path, *, record: bool = True) -> None:
        path = Path(os.path.normpath(path))
        toolkit = next((folder for folder in toolkits if path.is_relative_to(folder)), None)
        if toolkit is not None:
            shown = f"<{path.relative_to(toolkit).as_posix()}>"
        else:
            # Counted from the project even outside of it: a folder beside it is beside it on every machine.
            shown = os.path.relpath(path, project.root).replace(os.sep, "/")
        if shown in found or (record and path == source):
            return
        content = read_bytes(path)
        if record:
            found[shown] = sha256(content.replace(b"\r\n", b"\n"))
        code = _code(content, path)
        # mask() leaves a blank for each character of a splice, so a directive over several lines reads as one.
        texts.append((path, code))
        for name, quoted, angled in _DEFINE.findall(code):
            defined.setdefault(name, set()).add(quoted or angled)

    take(source, record=False)
    for name in files_before(project.settings.flags):
        if project.path(name).is_file():
            take(project.path(name))
    # Over the texts again until nothing is added: a macro may be defined in a file that is read later.
    size = -1
    while size != len(found):
        size = len(found)
        for includer, code in texts:
            for quoted, angled, macro in _INCLUDE.findall(code):
                for name in defined.get(macro, ()) if macro else (quoted or angled,):
                    places = folders if angled else [includer.parent, source.parent, *folders]
                    path = next((place / name for place in places if (place / name).is_file()), None)
                    if path is not None:
                        take(path)
    return dict(sorted(found.items()))


def toolkit_folders(project: Project) -> list[Path]:
    """Include folders outside the project that the settings give by absolute paths: they are this machine's own."""
    given = [*project.settings.include_dirs, *include_folders(project.settings.flags)]
    folders = [Path(os.path.normpath(folder)) for folder in given if Path(folder).is_absolute()]
    return [folder for folder in folders if not folder.is_relative_to(project.root)]


def _code(data: bytes, path: Path) -> str:
    """The text without comments; mask() works on bytes as Latin-1, and a file's name may have other letters."""
    masked = mask(data.replace(b"\r\n", b"\n"), path).code
    return masked.encode("latin-1").decode("utf-8", "surrogateescape")


def named_includes(data: bytes, path: Path) -> list[tuple[str, bool]]:
    """(name, whether it is in quotes) of each `#include` of a file; a macro that the file defines is looked up.

    Raises SsmtoolError for what is no source text.
    """
    code = _code(data, path)
    defined = {name: (quoted, angled) for name, quoted, angled in _DEFINE.findall(code)}
    found = [
        (quoted, angled) if not macro else defined.get(macro, ("", ""))
        for quoted, angled, macro in _INCLUDE.findall(code)
    ]
    return [(quoted or angled, bool(quoted)) for quoted, angled in dict.fromkeys(found) if quoted or angled]


def hash_source(data: bytes) -> str:
    """SHA-256 of a source with LF line ends, so that a checkout with CRLF is the same source."""
    return sha256(data.replace(b"\r\n", b"\n"))
