"""`ssmtool registry`: the ladder of every kernel, the simulated loader, and the loader's byte-exact fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ssmtool.cli.context import AppContext, exits_with_code, print_json, print_report, report_format_option

if TYPE_CHECKING:
    from ssmtool.findings import Outcome
    from ssmtool.registry import RegistryReport
    from ssmtool.registry.project import LoaderFix


@click.command(
    "registry",
    epilog="Exit codes: 0 all kernels load; 1 source, PTX, header and loader disagree; 2 it could not be checked.",
)
@click.option("--fix", is_flag=True, help="Add, remove and respell names in the loader, and correct its count.")
@report_format_option
@click.pass_obj
@exits_with_code
def command(app: AppContext, fix: bool, output_format: str) -> int:
    """Check that source, PTX, header and loader agree on the kernels.

    The loader is simulated: which names it would take, where it would stop, which kernels no launch could reach, and
    what the user would read. Needs neither a compiler nor a GPU.

    --fix edits nothing but the names, their commas and their lines, and the number that counts them. Names are never
    moved, since launches go by their index, and a loader that is not fully understood is left alone.

    \b
    Examples:
      ssmtool registry                  the ladder of every kernel, and what is wrong
      ssmtool registry --fix            mend the loader, then check again
      ssmtool registry --format json    the same for machines

    \b
    A new kernel takes three steps:
      1. define it in the source: extern "C" __global__ void NAME(...)
      2. ssmtool build                  compiles it into the header
      3. the same command names and counts it in the loader; after --no-sync: ssmtool registry --fix
    """
    from ssmtool.registry.project import check_project, plan_fixes, refused

    project = app.load_project()
    reports, outcome = check_project(project)
    fixes: list[LoaderFix] = []
    if fix:
        fixes = plan_fixes(project, reports)
        written = [planned.write() for planned in fixes]
        if any(written):
            reports, outcome = check_project(project)
        outcome.skips += refused(fixes)
    if output_format == "console":
        _print(reports, outcome, fixes, quiet=app.quiet)
    elif output_format == "json":
        print_json({**outcome.to_json(), **_data(reports, fixes)})
    else:
        from ssmtool.report.ladder import ladder_table

        extra = {**_data(reports, fixes), "tables": [ladder_table(report) for report in reports]}
        print_report(outcome, output_format, command="registry --fix" if fix else "registry", extra=extra)
    return int(outcome.verdict)


def _data(reports: list[RegistryReport], fixes: list[LoaderFix]) -> dict[str, object]:
    return {
        "modules": [report.to_json() for report in reports],
        "fixes": [{"path": planned.shown, "edits": list(planned.edits)} for planned in fixes if planned.edits],
    }


def _print(reports: list[RegistryReport], outcome: Outcome, fixes: list[LoaderFix], *, quiet: bool) -> None:
    from ssmtool.report.console import print_outcome
    from ssmtool.report.ladder import print_ladder

    if not quiet:
        for report in reports:
            print_ladder(report)
    for planned in fixes:
        for edit in planned.edits:
            click.echo(f"{planned.shown}: {edit}")
    skipped = len(outcome.skips) + len(outcome.required_skips)
    summary = "; ".join(report.summary for report in reports)
    if skipped:
        summary += f"; {skipped} skipped"
    print_outcome(outcome, summary=summary, quiet=quiet)
