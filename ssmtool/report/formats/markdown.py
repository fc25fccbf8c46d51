"""Markdown (GitHub's), for comments on a change and job summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ssmtool.findings import Outcome
from ssmtool.report.formats.text import printable, summary, verdict_word

# What a plain code span can hold without any escape, in a table too.
_TAME = re.compile(r"[\w./:,+=()-]+(?: [\w./:,+=()-]+)*", re.ASCII)
# Everything that could begin markup, as an entity: an entity is text to the parser of blocks, tables and spans alike,
# whereas a backslash before `|` is eaten by the table and then missing in front of what follows.
_MARKUP = re.compile(r"[&<>|\\`*~\[\]!#$@]|\b_+|_+\b|(?<=:)//|(?<=\bwww)\.")


def render_markdown(outcome: Outcome, *, command: str, tool_version: str, extra: Mapping[str, Any] | None) -> str:
    """A heading with the verdict, a table of findings, a table of skips, and the tables in `extra["tables"]`.

    Each of those is a mapping with `title`, `columns` and `rows`; rows hold as many cells as there are columns.
    """
    sections = [
        f"## ssmtool {escape(command)}: {verdict_word(outcome)}",
        f"{summary(outcome)}. (ssmtool {tool_version})",
    ]
    if outcome.findings:
        rows = [
            (
                finding.severity.value,
                code(finding.rule),
                code(finding.kernel),
                code(finding.where),
                escape(finding.message),
                escape(finding.effect),
                code(finding.fix),
            )
            for finding in outcome.findings
        ]
        sections.append(_table(("Severity", "Rule", "Kernel", "Place", "What", "At run time", "Mend it"), rows))
    skips = [("**yes**", skip) for skip in outcome.required_skips] + [("no", skip) for skip in outcome.skips]
    if skips:
        cells = [(escape(skip.check), need, escape(skip.reason), code(skip.fix)) for need, skip in skips]
        sections.append(_table(("Not checked", "Required", "Why", "Mend it"), cells))
    for table in (extra or {}).get("tables", ()):
        sections.append(f"### {escape(table['title'])}")
        columns: Sequence[str] = [escape(column) for column in table["columns"]]
        sections.append(_table(columns, [[escape(str(cell)) for cell in row] for row in table["rows"]]))
    return "\n\n".join(sections) + "\n"


def escape(text: str | None) -> str:
    """Text that shows as itself inside a table cell or heading; a line end becomes `<br>`, no value is empty."""
    escaped = _MARKUP.sub(lambda match: "".join(f"&#{ord(char)};" for char in match[0]), printable(text or ""))
    # A mention is looked for in the finished page, where an entity is a plain character: only a joiner stops it.
    return escaped.replace("&#64;", "&#64;&#8203;").replace("\n", "<br>").replace("\t", " ")


def code(text: str | None) -> str:
    """The text as a code span where that needs no escaping, else as `escape` has it."""
    return f"`{text}`" if text and _TAME.fullmatch(text) else escape(text)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
