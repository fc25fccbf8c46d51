"""PTX as it goes into the header: what the compiler says about itself, its host and the clock is left out.

Two runs on two machines must give the same bytes, or the checked-in header would change with whoever built it last.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

# A string, a line comment, or a block comment; strings are kept, so that "//" inside one is no comment.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
#   .file	1 "/home/ci/kernels/ssm_gated_delta.cu", 1638230000, 18244
_FILE = re.compile(r'^([ \t]*\.file[ \t]+\d+[ \t]+)"([^"\n]*)"[^\n]*$', re.MULTILINE)


def normalise(ptx: str, root: str) -> str:
    """The PTX without comments, blank lines, trailing blanks, absolute paths and file times; lines end in LF.

    `.file` paths below `root` become relative to it; any other absolute path (the toolkit's own headers) keeps its last
    part. The optional time stamp and size of `.file` go.
    """
    text = ptx.replace("\r\n", "\n").rstrip("\0")
    text = _STRING_OR_COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else "", text)

    def relative(match: re.Match[str]) -> str:
        path = match[2].replace("\\", "/")
        if path.startswith(root.rstrip("/") + "/"):
            path = path[len(root.rstrip("/")) + 1 :]
        elif path.startswith("/") or re.match(r"[A-Za-z]:/", path):
            path = PurePosixPath(path).name
        return f'{match[1]}"{path}"'

    text = _FILE.sub(relative, text)
    lines = (line.rstrip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line) + "\n"
