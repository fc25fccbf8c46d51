"""`ssmtool build`: source -> PTX -> header -> loader, or a check that they still fit together."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import click

from ssmtool.cli.context import AppContext, exits_with_code, print_json, print_report, report_format_option
from ssmtool.errors import SsmtoolError
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.registry import RegistryReport


@click.command(
    "build",
    epilog="Exit codes: 0 all is well; 1 stale, edited, or the registry does not agree; 2 it could not be checked.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; is the checked-in header what the source makes? Needs no compiler.",
)
@click.option("--rebuild", is_flag=True, help="With --check: compile too, and compare the PTX itself.")
@click.option(
    "--diff", is_flag=True, help="Compile, write nothing, and show what would change, by kernel and in the loader."
)
@click.option(
    "--compiler",
    metavar="NAME",
    help="Use this compiler: nvcc, nvrtc, or one of another release by name, such as nvrtc-11.8.",
)
@click.option("--sync/--no-sync", default=True, show_default=True, help="Add new kernels to the loader's name array.")
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    check: bool,
    rebuild: bool,
    diff: bool,
    compiler: str | None,
    sync: bool,
    output_format: str,
) -> int:
    """Compile the kernels, regenerate the PTX header, sync the loader.

    \b
    Examples:
      ssmtool build                     compile, write the header, add new kernels to the loader
      ssmtool build --check             answer from hashes, in well under a second, with no compiler
      ssmtool build --check --rebuild   compile as well and compare
      ssmtool build --diff              what would change: the PTX kernel by kernel, and the loader
      ssmtool build --compiler nvrtc-11.8   another release, asked for by name
    """
    if rebuild and not check:
        raise SsmtoolError("--rebuild goes with --check", hint="ssmtool build --check --rebuild")
    if check and diff:
        raise SsmtoolError(
            "--diff compiles, --check does not; give one of them", hint="ssmtool build --check --rebuild"
        )
    if compiler and check and not rebuild:
        raise SsmtoolError("--check needs no compiler; --compiler goes with --check --rebuild")
    if check and not rebuild:
        # It ends in a tenth of a second; without the collector's passes over what the imports leave it is 8 % shorter.
        gc.disable()
        try:
            return _check(app, output_format)
        finally:
            gc.enable()
    mode: Literal["write", "check", "diff"] = "check" if check else "diff" if diff else "write"
    return _compile(app, compiler, mode, sync=sync, output_format=output_format)


def _check(app: AppContext, output_format: str) -> int:
    """Freshness by hash, then the registry rule on what the header holds."""
    from ssmtool.build.freshness import State, check_freshness
    from ssmtool.registry.project import check_project
    from ssmtool.report.console import print_outcome

    project = app.load_project()
    freshness = check_freshness(project)
    outcome = freshness.outcome
    states = [state.state for state in freshness.modules]
    reports: list[RegistryReport] = []
    if freshness.header is not None:
        # A stale header is reported once, by its own finding; the registry then speaks of the kernels it costs.
        reports, registry = check_project(project, freshness.header)
        outcome.extend(registry.findings)
        outcome.skips += registry.skips
        outcome.required_skips += registry.required_skips
    if output_format == "console":
        kernels = plural(sum(len(state.held.entry_names) for state in freshness.modules if state.held), "kernel")
        words = freshness.told
        fresh = all(state is State.FRESH for state in states)
        told = f"{project.settings.header} is {words}" if fresh else f"{project.settings.header}: {words}"
        # A fresh header is no whole verdict when the loader does not take what it holds.
        short = [each.summary for each in reports if each.simulation and not all(row.loads for row in each.rows)]
        print_outcome(outcome, summary="; ".join([told, kernels, *short]), quiet=app.quiet)
        return int(outcome.verdict)
    modules = [
        {
            "source": state.settings.source,
            "constant": state.settings.constant_name,
            "state": state.state.value,
        }
        for state in freshness.modules
    ]
    data = {"modules": modules, "registry": [report.to_json() for report in reports]}
    if output_format == "json":
        print_json({**outcome.to_json(), **data})
    else:
        from ssmtool.report.ladder import ladder_table

        extra = {**data, "tables": [ladder_table(report) for report in reports]}
        print_report(outcome, output_format, command="build --check", extra=extra)
    return int(outcome.verdict)


def _compile(
    app: AppContext, asked: str | None, mode: Literal["write", "check", "diff"], *, sync: bool, output_format: str
) -> int:
    """Compile, compare with the header on disk, and in mode `write` write header and loaders."""
    from ssmtool.build.pipeline import compile_project
    from ssmtool.build.rebuild import plan_rebuild
    from ssmtool.report.build import build_extra, print_build

    project = app.load_project()
    write = mode == "write"
    build = compile_project(project, asked=asked, progress=_progress(app, output_format))
    plan = plan_rebuild(project, build, sync=sync and mode != "check", fail_on_change=mode == "check")
    if write:
        plan.write(project)
    if output_format == "console":
        print_build(project, build, plan, write=write, diff=mode == "diff", quiet=app.quiet)
    elif output_format == "json":
        loaders = [
            {"path": fix.shown, "edits": list(fix.edits), "left_as_it_is": list(fix.refusals)} for fix in plan.fixes
        ]
        print_json({**plan.to_json(), "loaders": loaders})
    else:
        command = {"write": "build", "check": "build --check --rebuild", "diff": "build --diff"}[mode]
        print_report(plan.outcome, output_format, command=command, extra=build_extra(plan))
    return int(plan.outcome.verdict)


def _progress(app: AppContext, output_format: str) -> Callable[[str], None]:
    """Progress lines on stderr; none with --quiet or for machines."""
    if app.quiet or output_format != "console":
        return lambda _line: None
    return lambda line: print(line, file=sys.stderr, flush=True)
