"""The project's own files that a `.cu` file includes, and their hashes.

NVRTC 11.4 has no dependency output, and `build --check` must work with no compiler at all, so the `#include` lines are
read here. The scan takes the union over all preprocessor branches: a file too many can only ask for a rebuild that was
not needed, never miss one that was.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ssmtool.files import read_bytes
from ssmtool.header import sha256
from ssmtool.project import Project

#   #include "gdn/tree.cuh"          # include <common.h>
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def hash_includes(project: Project, source: Path) -> dict[str, str]:
    """Project-relative path -> SHA-256 of every included file that lies in the project or its include folders.

    Headers of the compiler itself (`cuda_runtime.h`, `stdint.h`) are not found there and are left out: they belong to
    the compiler's release, which is recorded on its own. Raises SsmtoolError when a file cannot be read.
    """
    folders = [project.path(folder) for folder in project.settings.include_dirs]
    found: dict[str, str] = {}
    waiting = [(source, read_bytes(source))]
    while waiting:
        includer, data = waiting.pop()
        for quoted, angled in _INCLUDE.findall(data):
            name = os.fsdecode(quoted or angled)
            places = [includer.parent, source.parent, *folders] if quoted else folders
            path = next((place / name for place in places if (place / name).is_file()), None)
            if path is None:
                continue
            path = Path(os.path.normpath(path))
            shown = project.show(path)
            if shown not in found and path != source:
                content = read_bytes(path)
                found[shown] = sha256(content.replace(b"\r\n", b"\n"))
                waiting.append((path, content))
    return dict(sorted(found.items()))


def hash_source(data: bytes) -> str:
    """SHA-256 of a source with LF line ends, so that a checkout with CRLF is the same source."""
    return sha256(data.replace(b"\r\n", b"\n"))
