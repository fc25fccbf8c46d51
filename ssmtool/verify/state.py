"""Which cases failed last, for `--last-failed`: one small file for each project in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.files import write_atomic

_MOST_BYTES = 1 << 20


def state_path(root: Path) -> Path:
    """The file of a project's folder; it need not exist."""
    override = os.environ.get("SSMTOOL_CACHE_DIR")
    if override:
        cache = Path(override).absolute()
    else:
        import platformdirs

        cache = Path(platformdirs.user_cache_dir("ssmtool"))
    return cache / "verify" / f"{hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:24]}.json"


def read_failed(root: Path) -> list[str] | None:
    """The names that were not OK when a verification of this project last ended; None if that is not known."""
    path = state_path(root)
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    failed = data.get("failed") if isinstance(data, dict) else None
    if not isinstance(failed, list) or not all(isinstance(each, str) for each in failed):
        return None
    return failed


def write_failed(root: Path, failed: Iterable[str]) -> str | None:
    """Keep the names; what went wrong in words, since a verdict does not depend on it."""
    text = json.dumps({"failed": sorted(set(failed))}, indent=1)
    try:
        write_atomic(state_path(root), text.encode())
    except (SsmtoolError, OSError) as error:
        return f"--last-failed will not know this run: {error}"
    return None
