"""An outcome for machines: JSON, SARIF, JUnit, markdown and GitHub annotations behind one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ssmtool.errors import SsmtoolError
from ssmtool.findings import Outcome
from ssmtool.report.formats.github import render_github
from ssmtool.report.formats.json import render_json
from ssmtool.report.formats.junit import render_junit
from ssmtool.report.formats.markdown import render_markdown
from ssmtool.report.formats.sarif import render_sarif

__all__ = ["FORMATS", "render"]


class _Renderer(Protocol):
    def __call__(
        self, outcome: Outcome, *, command: str, tool_version: str, extra: Mapping[str, Any] | None
    ) -> str: ...


_RENDERERS: dict[str, _Renderer] = {
    "json": render_json,
    "sarif": render_sarif,
    "junit": render_junit,
    "markdown": render_markdown,
    "github": render_github,
}
FORMATS = tuple(_RENDERERS)


def render(
    outcome: Outcome,
    format: str,  # noqa: A002 - the word of the option, --format
    *,
    command: str,
    tool_version: str,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """The outcome as text that ends with a line end.

    `command` is what ran, without the program's name, as in `audit-ptx --compare old.ptx`. `extra` is JSON data beyond
    findings: `json` and `sarif` carry all of it, `junit` its scalars, `markdown` the tables under its key `tables`.
    No text in the outcome, a kernel's name for one, can end or forge an element of the format.
    Raises SsmtoolError for a format that is not in FORMATS.
    """
    renderer = _RENDERERS.get(format)
    if renderer is None:
        raise SsmtoolError(f'"{format}" is not a report format', hint=f"one of {', '.join(FORMATS)}")
    return renderer(outcome, command=command, tool_version=tool_version, extra=extra)
