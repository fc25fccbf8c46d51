"""The registry's ladder for people: a table for each module, and what its loader would do.

JSON needs no renderer: `RegistryReport.to_json` is the same data.
"""

from __future__ import annotations

from typing import Any

from ssmtool.registry import LadderRow, RegistryReport
from ssmtool.report.table import print_table
from ssmtool.wording import folded, plural

_STYLES = {"-": "bold red", "no": "bold red", "yes": "green"}


def print_ladder(report: RegistryReport) -> None:
    """The table and the simulation of one module, to stdout."""
    table = ladder_table(report)
    print_table(
        f"{table['title']}\n", table["columns"], table["rows"], styles=lambda _row, _column, cell: _STYLES.get(cell, "")
    )
    for line in simulation_lines(report):
        print(folded(line))
    print()


def ladder_table(report: RegistryReport) -> dict[str, Any]:
    """A row for each kernel: the line in the source, then its 0-based index in PTX, header and loader.

    As `title`, `columns` and `rows` of text, which is what report formats take.
    """
    columns = ["kernel", "source", "PTX", "header", "loader", "counted", "loads"]
    rows = [_cells(row, report.input.loader is not None) for row in report.rows]
    if any(row.note for row in report.rows):
        columns.append("note")
        rows = [[*cells, row.note] for cells, row in zip(rows, report.rows, strict=True)]
    return {"title": _title(report), "columns": columns, "rows": rows}


def _title(report: RegistryReport) -> str:
    given = report.input
    loader = f"{given.loader.path}: {given.loader.array}" if given.loader else "no loader in the settings"
    return f"{given.source.path} -> {given.header_path}: {given.constant} -> {loader}"


def _cells(row: LadderRow, has_loader: bool) -> list[str]:
    line = f"line {row.source_line}" if row.source_line is not None else "-"
    indices = ["-" if index is None else str(index) for index in (row.ptx_index, row.header_index, row.loader_index)]
    if not has_loader:
        return [row.kernel, line, *indices[:2], "", "", ""]
    return [row.kernel, line, *indices, "yes" if row.counted else "no", "yes" if row.loads else "no"]


def simulation_lines(report: RegistryReport) -> list[str]:
    """What the loader would do, in words; the message the user would see stands as it would be printed."""
    simulation, loader = report.simulation, report.input.loader
    if simulation is None or loader is None:
        return []
    loaded, inert = len(simulation.loaded), len(simulation.inert)
    index = simulation.stopped_index
    name = loader.names[index] if index is not None and index < len(loader.names) else None
    stop = f"{loader.array}[{index}] ({name})" if name else f"{loader.array}[{index}], past its last name"
    told = {
        "loaded": f"the loader takes all {loaded} names it counts"
        if loaded != 1
        else "the loader takes the 1 name it counts",
        "compile": "the loader does not compile, so nothing loads",
        "refused": "the loader refuses its own lists, so nothing loads",
        "stopped": f"the loader takes {plural(loaded, 'name')} and stops at {stop}",
        "undefined": f"the loader takes {plural(loaded, 'name')} and reads past the end of {loader.array}:"
        " undefined behaviour",
    }[simulation.when]
    lines = [told]
    if inert:
        lines.append(f"inert ({inert}): {', '.join(simulation.inert)}")
    if simulation.message:
        lines.append("what is seen then:" if simulation.when != "compile" else "the compiler says:")
        lines += [f"    {line}" for line in simulation.message.splitlines()]
    return lines
