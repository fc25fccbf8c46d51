"""JSON: everything the command knows, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ssmtool.findings import Outcome
from ssmtool.report.formats.text import encodable


def render_json(outcome: Outcome, *, command: str, tool_version: str, extra: Mapping[str, Any] | None) -> str:
    """One object: `tool`, `version`, `command`, then the outcome's own keys, then `extra` when there is any."""
    document: dict[str, Any] = {"tool": "ssmtool", "version": tool_version, "command": command, **outcome.to_json()}
    if extra is not None:
        document["extra"] = extra
    return dump(document)


def dump(document: Mapping[str, Any]) -> str:
    """Indented JSON text that any UTF-8 encoder takes. Raises ValueError for NaN and infinities, which JSON lacks."""
    return encodable(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
