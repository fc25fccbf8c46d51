"""`ssmtool audit-ptx`: local memory by path, and what each kernel costs, from PTX text alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssmtool import __version__
from ssmtool.cli.context import AppContext, exits_with_code
from ssmtool.errors import SsmtoolError
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.audit.assumptions import Assumption
    from ssmtool.audit.inputs import Input
    from ssmtool.audit.launches import Launch
    from ssmtool.audit.result import AuditResult
    from ssmtool.project import Project
    from ssmtool.ptx import Function

_FORMATS = ("console", "json", "sarif", "junit", "markdown", "github")


@click.command(
    "audit-ptx",
    epilog="Exit codes: 0 all is well; 1 over a budget, worse than the baseline, or damaged PTX; 2 not checked.",
)
@click.argument("inputs", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option(
    "--assume",
    multiple=True,
    metavar="KERNEL.PARAM=VALUE",
    help="Take a parameter to have this value; adds to the settings. KERNEL may be a shell pattern.",
)
@click.option(
    "--launch",
    multiple=True,
    metavar="KERNEL=GRID/BLOCK[/SHARED]",
    help="Launch shape for --cost, --resources and --explain, sizes as X[,Y[,Z]]; adds to the settings.",
)
@click.option("--cost", is_flag=True, help="Issue slots by class, per block and per position, and K80 floors.")
@click.option("--resources", is_flag=True, help="Registers, frame and spills: PTX hint, ptxas estimate, driver truth.")
@click.option("--compare", metavar="OLD", help="Before and after, by kernel: a file, or git:REVISION of the input.")
@click.option("--explain", metavar="KERNEL", help="Print a kernel's PTX with class, liveness and cost in the margin.")
@click.option(
    "--graph",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Draw control flow of the --kernel: local traffic and dead paths coloured.",
)
@click.option("--kernel", metavar="KERNEL", help="With --graph: the kernel to draw.")
@click.option("--update-baseline", is_flag=True, help="Accept today's numbers as the baseline.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(_FORMATS),
    default="console",
    show_default=True,
    help="Report for people, or for machines.",
)
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    inputs: tuple[str, ...],
    assume: tuple[str, ...],
    launch: tuple[str, ...],
    cost: bool,
    resources: bool,
    compare: str | None,
    explain: str | None,
    graph: Path | None,
    kernel: str | None,
    update_baseline: bool,
    output_format: str,
) -> int:
    """Find local memory by path, and what each kernel costs.

    Without a file, audits the project's generated header against its budgets and baseline. A file may be PTX, a header
    or C source with PTX in its strings, or a folder of them; - is standard input. Nothing is run; no GPU is needed.

    \b
    Examples:
      ssmtool audit-ptx
      ssmtool audit-ptx --assume fc_ssm_conv1d_silu_seq.conv_kernel=4
      ssmtool audit-ptx --cost
      ssmtool audit-ptx kernel.ptx --resources --launch my_kernel=64,16/256
      ssmtool audit-ptx kernel.ptx --compare old.ptx
      ssmtool audit-ptx --compare git:HEAD~1
      ssmtool audit-ptx --explain fc_ssm_recurrence_seq
      ssmtool audit-ptx --graph seq.svg --kernel fc_ssm_conv1d_silu_seq
    """
    from ssmtool.audit.assumptions import parse_assumption
    from ssmtool.audit.inputs import read_input, read_inputs
    from ssmtool.audit.launches import launches_of

    if update_baseline and inputs:
        raise SsmtoolError(
            "--update-baseline is for the project's own header", hint="ssmtool audit-ptx --update-baseline"
        )
    if (kernel is None) != (graph is None):
        raise SsmtoolError("--graph and --kernel go together", hint="--graph FILE.svg --kernel KERNEL")
    _one_answer(
        {
            "--explain": explain is not None, "--graph": graph is not None, "--cost": cost, "--resources": resources,
            "--compare": compare is not None, "--update-baseline": update_baseline,
            f"--format {output_format}": output_format != "console",
        }
    )  # fmt: skip
    project = _project(app, needed=not inputs)
    show = project.show if project else str
    if inputs or project is None:
        texts = read_inputs(inputs, show)
    else:
        try:
            texts = read_input(str(project.header_path), show)
        except SsmtoolError as error:
            error.hint = error.hint or "ssmtool build"
            raise
    assumptions = [*_from_settings(project, optional=bool(inputs)), *map(parse_assumption, assume)]
    launches = _launches(project, launch, optional=bool(inputs))
    # Read here, so that a launch that fits no kernel is an error whatever else is asked for.
    launches_of((function for text in texts for function in text.module.entries), launches)
    if explain is not None:
        return _explain(texts, explain, assumptions, launches)
    if graph is not None and kernel is not None:
        return _graph(app, texts, graph, kernel, assumptions)
    return _audit(
        app, project, texts, assumptions, launches, inputs,
        cost=cost, resources=resources, compare=compare, update_baseline=update_baseline, output_format=output_format,
    )  # fmt: skip


def _one_answer(given: dict[str, bool]) -> None:
    """Raise SsmtoolError when --explain or --graph, which print or draw one kernel, stand beside another question."""
    asked = [option for option, is_given in given.items() if is_given]
    if len(asked) > 1 and asked[0] in ("--explain", "--graph"):
        raise SsmtoolError(f"{asked[0]} is about one kernel alone; it does not go with {', '.join(asked[1:])}")


def _project(app: AppContext, *, needed: bool) -> Project | None:
    """The project around; None when there is none and the files to audit were named."""
    try:
        return app.load_project()
    except SsmtoolError:
        if needed:
            raise
        return None


def _from_settings(project: Project | None, *, optional: bool) -> list[Assumption]:
    """The assumptions of the settings; `optional` when other files than the project's header are audited."""
    from ssmtool.audit.assumptions import make_assumption

    if project is None:
        return []
    return [replace(make_assumption(*pair), optional=optional) for pair in project.settings.assume.items()]


def _launches(project: Project | None, given: Sequence[str], *, optional: bool) -> list[Launch]:
    """The launches of the settings, then those of the command line."""
    from ssmtool.audit.launches import parse_launch, settings_launches

    known: list[Launch] = []
    if project is not None:
        try:
            known = settings_launches(project.settings.launch, optional=optional)
        except SsmtoolError as error:
            error.path = project.show(project.settings_file) if project.settings_file else None
            raise
    return [*known, *map(parse_launch, given)]


def _audit(
    app: AppContext,
    project: Project | None,
    texts: list[Input],
    assumptions: list[Assumption],
    launches: list[Launch],
    inputs: tuple[str, ...],
    *,
    cost: bool,
    resources: bool,
    compare: str | None,
    update_baseline: bool,
    output_format: str,
) -> int:
    """The audit itself: kernels, limits, and the extra tables asked for."""
    from ssmtool.audit.kernels import audit
    from ssmtool.report.audit import table_json

    result = audit(texts, assumptions)
    tables: list[dict[str, Any]] = [table_json(result)]
    extra: dict[str, Any] = {"tool": "audit-ptx", **result.to_json()}
    if project is not None:
        from ssmtool.audit.limits import check_limits

        check_limits(project, texts, result, whole=not inputs, update_baseline=update_baseline)
    if compare is not None:
        tables.append(_compare(project, compare, inputs, assumptions, result))
    if cost:
        from ssmtool.audit.cost import cost_report
        from ssmtool.report.cost import cost_tables

        costs = cost_report(texts, assumptions, launches)
        result.outcome.skips += costs.skips
        extra["cost"] = costs.to_json()
        tables += cost_tables(costs)
    if resources:
        from ssmtool.audit.cost import no_launch
        from ssmtool.audit.launches import launches_of
        from ssmtool.audit.occupancy import occupancy_rows, occupancy_table
        from ssmtool.audit.resources import three_tiers

        for text in texts:
            tiers = three_tiers(text.module.text, text.module.target, name=text.name, module=text.module)
            # Several texts miss the same driver: that is said once.
            result.outcome.skips += [skip for skip in tiers.skips if skip not in result.outcome.skips]
            tables += [_of(text, tiers.table(), several=len(texts) > 1)]
            shapes = launches_of(text.module.entries, [replace(each, optional=True) for each in launches])
            rows = occupancy_rows((tier.estimate for tier in tiers.kernels if tier.estimate), shapes.values())
            if rows:
                tables += [_of(text, occupancy_table(rows, target=text.module.target), several=len(texts) > 1)]
            unknown = [tier.kernel for tier in tiers.kernels if tier.estimate and tier.kernel not in shapes]
            if unknown:
                result.outcome.skips.append(no_launch("occupancy", unknown))
    extra["tables"] = tables
    _report(app, result, extra, output_format, inputs)
    return int(result.outcome.verdict)


def _of(text: Input, table: dict[str, Any], *, several: bool) -> dict[str, Any]:
    """The table, its title with the text's name where there are several."""
    return {**table, "title": f"{text.name}: {table['title']}"} if several else table


def _compare(
    project: Project | None,
    compare: str,
    inputs: tuple[str, ...],
    assumptions: Sequence[Assumption],
    result: AuditResult,
) -> dict[str, Any]:
    from ssmtool.audit.compare import compare_results, read_old
    from ssmtool.audit.kernels import audit
    from ssmtool.report.audit import comparison_table

    root = project.root if project else Path.cwd()
    old = read_old(compare, inputs, root, str(project.header_path) if project else None)
    before = audit(old, [replace(each, optional=True) for each in assumptions])
    return comparison_table(compare_results(before, result))


def _report(
    app: AppContext, result: AuditResult, extra: dict[str, Any], output_format: str, inputs: tuple[str, ...]
) -> None:
    from ssmtool.report.audit import print_audit, short_names
    from ssmtool.report.console import print_outcome
    from ssmtool.report.table import print_table

    if output_format != "console":
        from ssmtool.report.formats import render

        words = " ".join(["audit-ptx", *inputs])
        click.echo(
            render(result.outcome, output_format, command=words, tool_version=__version__, extra=extra), nl=False
        )
        return
    if not app.quiet:
        short = short_names(kernel.name for kernel in result)
        print_audit(result, short)
        for table in extra["tables"][1:]:
            rows = [[short.get(row[0], row[0]), *row[1:]] for row in table["rows"]]
            print_table(table["title"], table["columns"], rows)
    local = sum(any(kernel.path_local) for kernel in result)
    depots = sum(bool(kernel.local_bytes) for kernel in result)
    kernels = plural(len(result.kernels), "kernel")
    summary = f"{kernels}; {depots} declare local memory, {local} may execute local traffic"
    print_outcome(result.outcome, summary=summary, quiet=app.quiet)


def _entry(texts: Sequence[Input], name: str) -> tuple[Input, Function]:
    """The entry of a name, or the only one that a shell pattern fits. Raises SsmtoolError when there is none such."""
    from fnmatch import fnmatchcase

    from ssmtool.audit.names import no_entry

    entries = [(text, function) for text in texts for function in text.module.entries]
    found = next((each for each in entries if each[1].name == name), None)
    if found is not None:
        return found
    fitting = [each for each in entries if fnmatchcase(each[1].name, name)]
    if len(fitting) > 1:
        names = ", ".join(function.name for _, function in fitting[:4]) + (", ..." if len(fitting) > 4 else "")
        raise SsmtoolError(f"{name} fits {len(fitting)} entries: {names}")
    if not fitting:
        raise SsmtoolError(no_entry(name, [function.name for _, function in entries]))
    return fitting[0]


def _explain(texts: Sequence[Input], kernel: str, assumptions: Sequence[Assumption], launches: Sequence[Launch]) -> int:
    from ssmtool.audit.cost import walked_counts
    from ssmtool.audit.kernels import analysis_of
    from ssmtool.audit.listing import listing
    from ssmtool.report.listing import print_listing

    text, function = _entry(texts, kernel)
    optional = [replace(each, optional=True) for each in assumptions]
    analysis = analysis_of(text, function, optional)
    executed, why = walked_counts(text, function, optional, [replace(each, optional=True) for each in launches])
    print_listing(listing(analysis, executed), analysis.assumed.shown)
    if why:
        click.echo(f"executed counts are missing: {why}", err=True)
    return 0


def _graph(app: AppContext, texts: Sequence[Input], graph: Path, kernel: str, assumptions: Sequence[Assumption]) -> int:
    from ssmtool.audit.kernels import analysis_of
    from ssmtool.files import read_bytes, write_atomic
    from ssmtool.report.graph import render_graph

    text, function = _entry(texts, kernel)
    analysis = analysis_of(text, function, [replace(each, optional=True) for each in assumptions])
    if graph.exists() and b"<svg" not in read_bytes(graph)[:1000]:
        raise SsmtoolError("is there and is no SVG; it is left as it is", path=graph, hint="give --graph another file")
    write_atomic(graph, render_graph(analysis).encode())
    if not app.quiet:
        print(f"wrote {graph}: {plural(len(analysis.flow.blocks), 'block')}", file=sys.stderr)
    return 0
