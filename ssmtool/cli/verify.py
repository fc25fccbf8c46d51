"""`ssmtool verify`: golden vectors and relations on the CPU or on GPUs, one verdict."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ssmtool.cli.context import (
    AppContext,
    built_header,
    exits_with_code,
    print_report,
    report_format_option,
    scheduler_option,
)
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.findings import Finding
    from ssmtool.project import Project
    from ssmtool.verify import Options, Outcome, Text
    from ssmtool.verify.sources import Vectors

Relations = Literal["auto", "only", "none"]


@click.command(
    "verify",
    epilog="Exit codes: 0 all is right; 1 something is wrong; 2 something could not be checked, and nothing is wrong.",
)
@click.argument("files", nargs=-1, metavar="[FILE|FOLDER]...")
@click.option(
    "--ptx", metavar="FILE", help="Verify this: .ptx, or a C file with PTX in it (default: the project's header)."
)
@click.option("--device", metavar="WORDS", help="cpu, cuda[:N], pycuda[:N], all, ... (default: the GPUs, else cpu).")
@click.option("--require", metavar="sm_NN", help="Fail unless there is a card of this compute capability.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Cases, relations or kernels of this name or pattern.")
@click.option("--last-failed", is_flag=True, help="Only what was not right when it last ran.")
@click.option("--quick", is_flag=True, help="Every kernel, in seconds: fewer cases, one round, bounds checked only.")
@click.option(
    "--relations",
    type=click.Choice(["auto", "only", "none"]),
    default="auto",
    show_default=True,
    help="R1 to R12 on random inputs: unless FILEs are named, alone, or not.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the relations' random inputs.")
@click.option("--rounds", type=click.IntRange(1, 10000), metavar="N", help="Of each relation (default 3).")
@click.option(
    "--check",
    type=click.Choice(["auto", "all", "bounds"]),
    default="auto",
    show_default=True,
    help="On the CPU: races, unwritten memory and bounds; bounds only; auto: all for runs that are not large.",
)
@click.option(
    "--save-failure",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write each failure as a vector, with what was got and the PTX.",
)
@scheduler_option
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    files: tuple[str, ...],
    ptx: str | None,
    device: str | None,
    require: str | None,
    only: tuple[str, ...],
    last_failed: bool,
    quick: bool,
    relations: Relations,
    seed: int,
    rounds: int | None,
    check: Literal["auto", "all", "bounds"],
    save_failure: Path | None,
    scheduler: str | None,
    output_format: str,
) -> int:
    """Verify the PTX in the header against golden vectors and relations.

    Runs the checked-in PTX, never a fresh build, on the CPU or on GPUs. Each case starts from the same buffers, outputs
    poisoned, and ends with what is expected, within its tolerance; relations hold bit for bit between kernels. What is
    wrong is explained where a known mistake gives the same output.

    \b
    Examples:
      ssmtool verify                              all of golden/, and R1 to R12
      ssmtool verify --quick
      ssmtool verify --device cuda --require sm_37
      ssmtool verify --device all                 every device, and all of them bit for bit
      ssmtool verify my.npz --ptx my_kernels.ptx  any vector on any PTX
      ssmtool verify --only R2 --rounds 20 --seed 7
      ssmtool verify --last-failed --save-failure failures
      ssmtool verify --relations only --rounds 1000 --scheduler tcp://host:8786
    """
    from ssmtool.golden import require_numpy

    require_numpy()
    from ssmtool.verify import InterruptedRunError, Options

    options = Options(
        check="bounds" if check == "bounds" or (quick and check == "auto") else "all",
        seed=seed,
        rounds=rounds or (1 if quick else 3),
        keep=save_failure is not None,
    )
    if check == "all":
        from dataclasses import replace

        options = replace(options, all_work=1 << 62)
    plan = _plan(app, files, ptx, only, last_failed, quick, relations, options)
    progress = {"quiet": app.quiet or output_format != "console"}
    notes: list[str] = []
    try:
        if scheduler is None:
            outcome = _here(plan, device, require, notes, **progress)
        else:
            outcome = _on_cluster(plan, scheduler, device, require, notes, **progress)
    except InterruptedRunError as interrupt:
        outcome = interrupt.outcome
    outcome.kernels = tuple(dict.fromkeys(entry.name for text in plan.texts for entry in text.module.entries))
    outcome.results += plan.vectors.damaged
    outcome.extra += plan.findings
    whole = not (files or only or last_failed or relations != "auto" or outcome.partial)
    if whole:
        from ssmtool.verify.gaps import unlaunched

        outcome.skips += unlaunched(outcome.kernels, outcome, plan.ptx)
    for result in outcome:
        if result.path is not None:
            result.path = plan.show(Path(result.path))
    outcome.again = _again(files, ptx, device, scheduler)
    saved = _save(save_failure, outcome, plan.texts)
    _remember(app, plan.root, outcome, output_format, whole=whole and not quick)
    _report(app, outcome, output_format, files, notes=[*notes, *plan.notes], saved=saved)
    return 130 if outcome.partial else int(outcome.verdict)


@dataclass
class _Plan:
    """What is to be run on which PTX. `names` are relations, None for all."""

    vectors: Vectors
    texts: list[Text]
    options: Options
    relations: bool
    findings: list[Finding]
    notes: list[str]
    root: Path
    show: Callable[[Path], str]
    ptx: str


def _plan(
    app: AppContext,
    files: Sequence[str],
    ptx: str | None,
    only: Sequence[str],
    last_failed: bool,
    quick: bool,
    relations: Relations,
    options: Options,
) -> _Plan:
    from dataclasses import replace

    from ssmtool.verify.gaps import product_kernels, vectors_for
    from ssmtool.verify.relations import all_relations
    from ssmtool.verify.sources import Vectors, fits, header_findings, read_ptx, read_vectors
    from ssmtool.verify.state import read_failed

    project = _project(app, needed=ptx is None or not (files or relations == "only"))
    root = project.root if project else Path.cwd()
    show = project.show if project else str
    findings = header_findings(project) if ptx is None and project else []
    place = ptx
    if ptx is None:
        assert project is not None
        ptx, place = str(built_header(project)), project.settings.header
    assert place is not None
    texts = read_ptx(ptx, show)
    entries = [entry.name for text in texts for entry in text.module.entries]
    vectors = Vectors()
    if relations == "only" and not product_kernels(entries):
        raise SsmtoolError(
            "R1 to R12 are relations between the product's kernels, and this PTX has none of them", path=place,
            hint="ssmtool verify, with vectors of its own kernels",
        )  # fmt: skip
    if relations != "only":
        hint = vectors_for(entries, place)
        vectors = read_vectors(_vector_paths(files, project, hint), show, hint)
    with_relations = relations != "none" and (relations == "only" or not files)
    patterns, notes = list(only), []
    names = [each.name for each in all_relations()]
    wanted = {each.name for each in all_relations() if fits(patterns, each.name, each.entries)}
    vectors.cases = [case for case in vectors.cases if fits(patterns, case.meta.name, case.kernels)]
    if last_failed:
        failed = set(read_failed(root) or ())
        again = [case for case in vectors.cases if case.meta.name in failed]
        if again or wanted & failed:
            wanted &= failed
            vectors.cases = again
        else:
            notes.append("nothing that is here is known to have failed last time: everything runs")
    with_relations = with_relations and bool(wanted)
    options = replace(options, names=None if len(wanted) == len(names) else frozenset(wanted))
    if only and not vectors.cases and not with_relations:
        raise SsmtoolError(
            f"no case, relation or kernel fits {' or '.join(only)}", hint="ssmtool golden show lists the cases"
        )
    if quick:
        from ssmtool.verify.engine import applicable, relation_kernels
        from ssmtool.verify.quick import quick_cases

        needed = relation_kernels(applicable(texts, options)) if with_relations else set()
        count = len(vectors.cases)
        vectors.cases = quick_cases(vectors.cases, needed)
        if count > len(vectors.cases):
            notes.append(f"--quick: {len(vectors.cases)} of {count} cases; without it all of them run")
    return _Plan(vectors, texts, options, with_relations, findings, notes, root, show, place)


def _project(app: AppContext, *, needed: bool) -> Project | None:
    """The project around; None when there is none and nothing of it is needed."""
    try:
        return app.load_project()
    except SsmtoolError:
        if needed:
            raise
        return None


def _vector_paths(files: Sequence[str], project: Project | None, hint: str) -> list[Path]:
    if files:
        if any(not each or "\0" in each for each in files):
            raise SsmtoolError("an empty name, or one with a NUL, is no file")
        return [Path(each) for each in files]
    assert project is not None
    folder = project.path(project.settings.golden)
    if not folder.is_dir():
        raise SsmtoolError("there is no folder of golden vectors", path=project.settings.golden, hint=hint)
    return [folder]


def _here(plan: _Plan, device: str | None, require: str | None, notes: list[str], *, quiet: bool) -> Outcome:
    """On the devices of this machine; `notes` receives why they are not GPUs."""
    from ssmtool.device import open_preferred, shares
    from ssmtool.report.verify import progress
    from ssmtool.verify import run

    devices, why = open_preferred(device, require=require)
    notes += why
    with devices, progress(quiet=quiet) as listener:
        return run(
            plan.texts,
            plan.vectors.cases,
            list(devices),
            relations=plan.relations,
            options=plan.options,
            listener=listener,
            share=shares(device),
            warm=True,
        )


def _on_cluster(
    plan: _Plan, scheduler: str, device: str | None, require: str | None, notes: list[str], *, quiet: bool
) -> Outcome:
    """On the workers of a cluster; `notes` receives what there is to say about them."""
    from ssmtool.cluster import open_cluster
    from ssmtool.report.verify import progress

    with open_cluster(scheduler, notes=notes) as cluster:
        wanted = cluster.choose(device, require)
        with progress(quiet=quiet) as listener:
            return cluster.verify(
                plan.texts,
                plan.vectors.cases,
                wanted,
                relations=plan.relations,
                options=plan.options,
                listener=listener,
            )


def _again(files: Sequence[str], ptx: str | None, device: str | None, scheduler: str | None) -> str:
    """The command, for findings to add to. The executor has the same bits here, so its findings need no cluster."""
    words = ["ssmtool", "verify", *files]
    words += ["--ptx", ptx] if ptx else []
    words += ["--device", device] if device else []
    words += ["--scheduler", scheduler] if scheduler and device not in (None, "cpu") else []
    return shlex.join(words)


def _save(folder: Path | None, outcome: Outcome, texts: list[Text]) -> list[Path]:
    if folder is None:
        return []
    from ssmtool.verify.saving import save_failures

    return save_failures(folder, outcome.results, texts)


def _remember(app: AppContext, root: Path, outcome: Outcome, output_format: str, *, whole: bool) -> None:
    """What is not right now and, unless everything ran, what was not and did not run."""
    from ssmtool.verify import Status
    from ssmtool.verify.state import read_failed, write_failed

    ran = {each.name for each in outcome}
    bad = {each.name for each in outcome if each.status in (Status.WRONG, Status.UNCHECKED)}
    earlier = set() if whole else set(read_failed(root) or ()) - ran
    problem = write_failed(root, bad | earlier)
    if problem and not app.quiet and output_format == "console":
        click.echo(problem, err=True)


def _report(
    app: AppContext,
    outcome: Outcome,
    output_format: str,
    files: Sequence[str],
    *,
    notes: Sequence[str],
    saved: Sequence[Path],
) -> None:
    from ssmtool.report.console import print_outcome
    from ssmtool.report.verify import print_details, print_verify, summary, verify_json

    findings = outcome.findings()
    if output_format != "console":
        extra = {
            **verify_json(outcome),
            "partial": outcome.partial,
            "notes": list(notes),
            "saved": [str(path) for path in saved],
        }
        print_report(findings, output_format, command=" ".join(["verify", *files]), extra=extra)
        return
    if not app.quiet:
        for note in notes:
            click.echo(note, err=True)
        print_verify(outcome)
        print_details(outcome)
        for path in saved:
            click.echo(f"wrote {path}", err=True)
    partial = "interrupted, this report is partial; " if outcome.partial else ""
    print_outcome(findings, summary=f"{partial}{summary(outcome)}", quiet=app.quiet)
