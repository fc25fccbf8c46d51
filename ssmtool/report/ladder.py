"""The registry's ladder for people: a table for each module, and what its loader would do.

JSON needs no renderer: `RegistryReport.to_json` is the same data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssmtool.registry import LadderRow, RegistryReport
from ssmtool.report.console import console

if TYPE_CHECKING:
    from rich.table import Table

_MISSING = "[bold red]-[/]"


def print_ladder(report: RegistryReport) -> None:
    """The table and the simulation of one module, to stdout."""
    from rich.markup import escape

    out = console()
    out.print(f"[bold]{escape(_title(report))}[/]", soft_wrap=True)
    out.print(ladder_table(report))
    for line in simulation_lines(report):
        out.print(escape(line), soft_wrap=True)
    out.print()


def ladder_table(report: RegistryReport) -> Table:
    """A row for each kernel: the line in the source, then its 0-based index in PTX, header and loader."""
    from rich import box
    from rich.table import Table

    given = report.input
    loader = given.loader
    table = Table(box=box.SIMPLE)
    table.add_column("kernel", no_wrap=True)
    for column in ("source", "PTX", "header", "loader"):
        table.add_column(column, justify="right")
    table.add_column("counted", justify="center")
    table.add_column("loads", justify="center")
    notes = any(row.note for row in report.rows)
    if notes:
        table.add_column("note")
    for row in report.rows:
        cells = _cells(row, loader is not None)
        table.add_row(*cells, *([_plain(row.note)] if notes else []))
    return table


def _title(report: RegistryReport) -> str:
    given = report.input
    loader = f"{given.loader.path}: {given.loader.array}" if given.loader else "no loader in the settings"
    return f"{given.source.path} -> {given.header_path}: {given.constant} -> {loader}"


def _cells(row: LadderRow, has_loader: bool) -> list[str]:
    line = f"line {row.source_line}" if row.source_line is not None else _MISSING
    indices = [_MISSING if index is None else f"{index}" for index in (row.ptx_index, row.header_index)]
    if not has_loader:
        return [_plain(row.kernel), line, *indices, "", "", ""]
    loader = _MISSING if row.loader_index is None else f"{row.loader_index}"
    return [_plain(row.kernel), line, *indices, loader, _yes(row.counted), _yes(row.loads)]


def _yes(value: bool) -> str:
    return "[green]yes[/]" if value else "[bold red]no[/]"


def _plain(text: str) -> str:
    """Text that rich must not read as markup."""
    from rich.markup import escape

    return escape(text)


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
        "loaded": f"the loader takes all {loaded} names it counts",
        "compile": "the loader does not compile, so nothing loads",
        "refused": "the loader refuses its own lists, so nothing loads",
        "stopped": f"the loader takes {loaded} names and stops at {stop}",
        "undefined": f"the loader takes {loaded} names and reads past the end of {loader.array}: undefined behaviour",
    }[simulation.when]
    lines = [told]
    if inert:
        lines.append(f"inert ({inert}): {', '.join(simulation.inert)}")
    if simulation.message:
        lines.append("what is seen then:" if simulation.when != "compile" else "the compiler says:")
        lines += [f"    {line}" for line in simulation.message.splitlines()]
    return lines
