"""GitHub Actions workflow commands: annotations on the lines of a change.

Format and escaping as GitHub's own toolkit writes them
(https://docs.github.com/actions/using-workflows/workflow-commands-for-github-actions).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.report.formats.text import finding_text, printable, skip_text, summary, verdict_word

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_github(
    outcome: Outcome,
    *,
    command: str,
    tool_version: str,
    extra: Mapping[str, Any] | None,  # noqa: ARG001 - one signature for all formats
) -> str:
    """A command a line for each finding and skip, then one plain line with the verdict.

    A runner obeys any line that begins with `::`, so no text from outside may start a line of its own. `extra` has no
    place in annotations.
    """
    lines = [_finding(finding) for finding in outcome.findings]
    lines += [_skip(skip, "error") for skip in outcome.required_skips]
    lines += [_skip(skip, "warning") for skip in outcome.skips]
    lines.append(f"ssmtool {_data(tool_version)} {_data(command)}: {verdict_word(outcome)}: {summary(outcome)}")
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> str:
    properties: dict[str, str] = {}
    if finding.path is not None:
        properties["file"] = finding.path.replace("\\", "/")
        if finding.line is not None:
            properties["line"] = str(finding.line)
            if finding.column is not None:
                properties["col"] = str(finding.column)
    properties["title"] = f"{finding.rule} ({finding.kernel})" if finding.kernel else finding.rule
    return _command(_COMMANDS[finding.severity], properties, finding_text(finding))


def _skip(skip: Skip, name: str) -> str:
    return _command(name, {"title": f"not checked: {skip.check}"}, skip_text(skip))


def _command(name: str, properties: Mapping[str, str], message: str) -> str:
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {shown}::{_data(message)}"


def _data(text: str) -> str:
    """`%` first: it starts the escapes of the others."""
    return printable(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    """As data, and the two characters that end a property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
