"""A probe's result for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ssmtool.report.table import print_table
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.probe.result import Result


def print_probe(result: Result) -> None:
    """One table: a row for each kind of trial."""
    rows: dict[str, list[int]] = {}
    for title, total in result.totals().items():
        row = rows.setdefault(title.partition(":")[0], [0, 0, 0, 0])
        for index, key in enumerate(("forms", "cases", "forms_different", "different")):
            row[index] += total[key]
    where = f"{result.model}, {result.target}" + (f", driver of CUDA {result.driver}" if result.driver else "")
    print_table(
        f"{result.device}: {where}; {result.evidence}",
        ("trial", "forms", "cases", "forms that differ", "cases that differ"),
        [(title, *map(str, row)) for title, row in rows.items()],
    )
    if result.refused or result.unanswered:
        print(
            f"  the executor refuses {plural(len(result.refused) + len(result.unanswered), 'form')} by name:"
            f" {len(result.refused)} are refused here too, of {len(result.unanswered)} the results are hashed\n"
        )


def summary(results: Sequence[Result], files: Sequence[Path]) -> str:
    """The last line."""
    parts = []
    for result, path in zip(results, files, strict=True):
        forms = len({each.name for each in result.forms})
        differ = len({each.name for each in result.different})
        equal = "every bit is the executor's" if not differ else f"{plural(differ, 'form')} of them differ"
        note = "; no evidence about any card" if result.binding == "cpu" else ""
        parts.append(
            f"{result.device}: {plural(forms, 'form')}, {result.cases} results compared, {equal}{note};"
            f" {result.seconds:.0f} s; wrote {path}"
        )
    return "; ".join(parts)
