"""What was checked, with what, on what: the facts under which a report's verdict holds."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ssmtool import __version__
from ssmtool.ci.model import Context
from ssmtool.errors import SsmtoolError
from ssmtool.files import read_bytes

_TIMEOUT_S = 20.0


def provenance(context: Context) -> dict[str, Any]:
    """Raises nothing: what cannot be told is None."""
    project = context.project
    header: str | None = None
    try:
        from ssmtool.header import sha256

        header = sha256(read_bytes(project.header_path))
    except SsmtoolError:
        header = None
    changed = git(project.root, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return {
        "ssmtool": __version__,
        "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "commit": git(project.root, "rev-parse", "HEAD"),
        "uncommitted_changes": None if changed is None else bool(changed),
        "header": project.settings.header,
        "header_sha256": header,
        "target": project.settings.target,
        "cuda_release": project.settings.cuda_release,
        "ptxas": context.ptxas,
        "devices": list(context.devices),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "quick": context.options.quick,
    }


def git(folder: Path, *arguments: str) -> str | None:
    """What git says, stripped; None where there is no git, no repository, or an error."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=_TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(sys.getfilesystemencoding(), "replace").strip() if done.returncode == 0 else None
