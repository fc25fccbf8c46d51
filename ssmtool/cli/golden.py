"""`ssmtool golden`: the vectors that say what the kernels must compute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssmtool.cli.context import (
    AppContext,
    exits_with_code,
    format_option,
    print_json,
    print_report,
    report_format_option,
)
from ssmtool.errors import SsmtoolError
from ssmtool.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ssmtool.findings import Outcome
    from ssmtool.golden import GoldenCase
    from ssmtool.golden.oracles import Agreement, Oracle
    from ssmtool.golden.signature import Parameter
    from ssmtool.project import Project

# Those of ssmtool.golden.oracles, which is not imported for a list of words.
_ORACLES = ("transformers", "fla", "torch", "python")

_folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder of the vectors (default: golden/ of the project).",
)


@click.group("golden", epilog="Exit codes: 0 all is well; 1 a vector is wrong; 2 it could not be checked or made.")
def command() -> None:
    """Make, check and show the vectors that kernels are verified by.

    \b
    Examples:
      ssmtool golden make                        write what changed, byte for byte the same on every machine
      ssmtool golden check                       are they whole, and do they expect what the reference computes?
      ssmtool golden check --oracle transformers --oracle fla
      ssmtool golden show recurrence/reference-t1
      ssmtool golden new my_kernel               a script that writes a vector for another kernel
    """


@command.command("make")
@click.option("--only", multiple=True, metavar="PATTERN", help="Cases by name or shell pattern; a family by its name.")
@_folder_option
@format_option
@click.pass_obj
@exits_with_code
def make(app: AppContext, only: tuple[str, ...], folder: Path | None, output_format: str) -> int:
    """Make the product's vectors; only files that changed are written.

    A project whose kernels are others has no use for them, and is refused unless --folder is given.

    \b
    Example:
      ssmtool golden make --only 'slots/*' --only sigmoid
    """
    from ssmtool.golden import require_numpy

    require_numpy()
    from ssmtool.golden.make import make as make_all

    place = _folder(app, folder)
    if folder is None:
        _refuse_foreign(app)
    made = []
    for each in make_all(place, only):
        made.append(each)
        if each.changed and not app.quiet and output_format == "console":
            click.echo(f"wrote {_shown(app, each.path)}")
    changed, size = sum(each.changed for each in made), sum(each.size for each in made)
    if output_format == "json":
        files = [{"name": each.name, "bytes": each.size, "changed": each.changed} for each in made]
        print_json({"verdict": "ok", "exit_code": 0, "changed": changed, "bytes": size, "cases": files})
    elif not app.quiet:
        click.echo(f"ok: {plural(len(made), 'case')}, {size / 1e6:.1f} MB, {changed} written")
    return 0


@command.command("check")
@click.argument("files", nargs=-1, metavar="[FILE|NAME]...")
@click.option(
    "--oracle",
    "oracles",
    multiple=True,
    type=click.Choice(_ORACLES),
    help="Compute the cases with other people's code as well. Repeatable.",
)
@click.option("--mistakes", is_flag=True, help="See that each case fails the mistakes that it names.")
@_folder_option
@report_format_option
@click.pass_obj
@exits_with_code
def check(
    app: AppContext,
    files: tuple[str, ...],
    oracles: tuple[str, ...],
    mistakes: bool,
    folder: Path | None,
    output_format: str,
) -> int:
    """Check that vectors are whole and expect what the reference computes.

    Vectors of the product are made anew and compared byte by byte; others are computed by the reference, if they are of
    a kernel that it knows, and by their own tolerances. Without FILE, all of the folder.

    \b
    Examples:
      ssmtool golden check
      ssmtool golden check mine.npz --format json
      ssmtool golden check --oracle transformers --oracle fla    needs pip install 'ssmtool[oracles]'
    """
    from ssmtool.golden import require_numpy

    require_numpy()
    from ssmtool.golden.check import check_files
    from ssmtool.golden.oracles import load

    judges = [load(name) for name in dict.fromkeys(oracles)]
    paths, place = _paths(app, files, folder)
    outcome, cases = check_files(paths, place, mistakes=mistakes)
    agreements = _judge(cases, judges, outcome)
    for finding in range(len(outcome.findings)):
        outcome.findings[finding] = _placed(app, outcome.findings[finding])
    summary = f"{plural(len(paths), 'vector')}" + (f", {len(agreements)} by other people's code" if judges else "")
    if output_format == "console":
        from ssmtool.report.console import print_outcome
        from ssmtool.report.golden import print_agreements

        if judges:
            print_agreements(judges, agreements)
        print_outcome(outcome, summary=summary, quiet=app.quiet)
    else:
        from ssmtool.report.golden import agreements_json

        extra: dict[str, Any] = {"vectors": len(paths)}
        if judges:
            extra["agreements"] = agreements_json(judges, agreements)
        print_report(outcome, output_format, command="golden check", extra=extra)
    return int(outcome.verdict)


@command.command("show")
@click.argument("files", nargs=-1, metavar="[FILE|NAME]...")
@click.option("--mistakes", is_flag=True, help="List the mistakes that cases expose and a diagnosis knows.")
@_folder_option
@format_option
@click.pass_obj
@exits_with_code
def show(
    app: AppContext, files: tuple[str, ...], mistakes: bool, folder: Path | None, output_format: str
) -> int:  # fmt: skip
    """Show one case readably, or list them all.

    \b
    Examples:
      ssmtool golden show
      ssmtool golden show recurrence/nan-s8
      ssmtool golden show mine.npz --format json
    """
    from ssmtool.golden import read_case, require_numpy

    require_numpy()
    from ssmtool.report import golden as report

    if mistakes:
        if output_format == "json":
            print_json({"mistakes": report.mistakes_json()})
        else:
            report.print_mistakes()
        return 0
    paths, _ = _paths(app, files, folder)
    cases = [read_case(path) for path in paths]
    if output_format == "json":
        print_json({"cases": [report.case_json(case) for case in cases]})
    elif files:
        for case in cases:
            report.print_case(case)
    else:
        report.print_list(cases)
    return 0


@command.command("new")
@click.argument("entry")
@click.option(
    "--from", "source", metavar="FILE", help="PTX, or a C file with PTX in it (default: the project's header)."
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.py",
    help="The script (default: make_ENTRY.py).",
)
@click.option("--force", is_flag=True, help="Write over a script that is there.")
@click.pass_obj
@exits_with_code
def new(app: AppContext, entry: str, source: str | None, output: Path | None, force: bool) -> int:
    """Write a script that writes a vector for the kernel ENTRY, with NumPy alone.

    Which parameters are buffers, of which type, read or written, is taken from the PTX and, in a project, from the C
    source. What remains are the lines marked EDIT: sizes, inputs and the formula.

    \b
    Examples:
      ssmtool golden new scale                      of the project's header
      ssmtool golden new scale --from scale.ptx
    """
    from ssmtool.files import write_atomic
    from ssmtool.golden.scaffold import script

    if not entry.isidentifier():
        raise SsmtoolError(f"{entry!r} is no kernel's name")
    path = output or Path(f"make_{entry}.py")
    if path.exists() and not force:
        raise SsmtoolError("is there already", path=path, hint="another name with -o, or --force")
    header = _header(app) if source is None else None
    place = source if source is not None else str(header) if header else None
    write_atomic(path, (script(entry) if place is None else script(entry, _parameters(app, entry, place))).encode())
    if place is None:
        # Never silent: nothing of it is the kernel's.
        click.echo(
            f"parameters y, x and n are made up: there is no project here and no --from FILE that has {entry}", err=True
        )
    if not app.quiet:
        click.echo(f"wrote {path}: edit the lines marked EDIT, then run it")
    return 0


def _judge(cases: list[GoldenCase], judges: list[Oracle], outcome: Outcome) -> list[Agreement]:
    """Every case by every oracle; a disagreement is a finding, a case that nobody knows a skip."""
    from ssmtool.findings import Finding, Severity, Skip
    from ssmtool.golden.oracles import AGREEMENT, judge

    found = []
    for case in cases if judges else ():
        said = [judge(case, each) for each in judges]
        found += [each for each in said if not each.skipped]
        if all(each.skipped for each in said):
            why = "; ".join(f"{each.oracle} {each.skipped}" for each in said)
            outcome.skips.append(Skip(f"{case.meta.name} by other people's code", why))
        for each in said:
            if not each.skipped and not each.ok:
                message = f"{case.meta.name}: {each.oracle} computes another {each.buffer}: NMSE {each.nmse:.1e}"
                message += f", allowed {AGREEMENT:g}"
                outcome.findings.append(
                    Finding("golden/oracle", Severity.ERROR, message, kernel=case.kernels[0], path=str(case.path))
                )
    return found


def _refuse_foreign(app: AppContext) -> None:
    """Raise SsmtoolError where the project's header, or without one its sources, name none of the product's kernels."""
    import re

    from ssmtool.files import read_bytes
    from ssmtool.golden.reference import KERNELS

    project = app.load_project()
    places = [project.header_path] if project.header_path.exists() else []
    places = places or [project.path(each.source) for each in project.settings.module]
    texts = [read_bytes(place) for place in places if place.exists()]
    names = "|".join(KERNELS).encode()
    if texts and not any(re.search(rb"\b(%s)\b" % names, text) for text in texts):
        entries = re.findall(rb"\.entry\s+([\w$]+)|__global__\s+void\s+(\w+)", texts[0])
        own = next((name.decode() for pair in entries for name in pair if name), "KERNEL")
        raise SsmtoolError(
            "has none of the kernels that these vectors are of, fc_ssm_recurrence and its like: no file is written",
            path=project.show(places[0]), hint=f"ssmtool golden new {own}, or --folder FOLDER for these all the same",
        )  # fmt: skip


def _folder(app: AppContext, folder: Path | None) -> Path:
    if folder is not None:
        return folder
    project = app.load_project()
    return project.path(project.settings.golden)


def _paths(app: AppContext, files: tuple[str, ...], folder: Path | None) -> tuple[list[Path], Path | None]:
    """The files that are meant, and the folder that names count from: a file as it is, or a case by its name."""
    from ssmtool.golden.make import files_in, path_of

    if not files:
        whole = _folder(app, folder)
        return files_in(whole), whole
    paths: list[Path] = []
    place: Path | None = None
    for name in files:
        path = Path(name)
        if not path.exists() and not name.endswith(".npz"):
            place = _folder(app, folder)
            path = path_of(place, name)
            if not path.exists():
                raise SsmtoolError(f"no vector is named {name}", hint="ssmtool golden show")
        paths.append(path)
    return paths, place


def _shown(app: AppContext, path: Path) -> str:
    """The path as the project counts it."""
    root = app.root
    return path.relative_to(root).as_posix() if root is not None and path.is_relative_to(root) else str(path)


def _placed(app: AppContext, finding: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(finding, path=_shown(app, Path(finding.path))) if finding.path else finding


def _header(app: AppContext) -> Path | None:
    """The header of the project around, None where there is no project. Raises SsmtoolError where it is not built."""
    project = _around(app)
    if project is None:
        return None
    if not project.header_path.exists():
        raise SsmtoolError(
            "there is no generated header to take the kernel's parameters from", path=project.settings.header,
            hint="ssmtool build, or --from FILE",
        )  # fmt: skip
    return project.header_path


def _around(app: AppContext) -> Project | None:
    """The project around, None where there is none (a folder without settings)."""
    try:
        project = app.load_project()
    except SsmtoolError as error:
        if error.path is not None:
            raise
        return None
    return project


def _parameters(app: AppContext, entry: str, source: str) -> list[Parameter]:
    """The kernel's parameters, from PTX and the project's C source. Raises SsmtoolError where the file has no such."""
    from ssmtool.audit.inputs import read_input
    from ssmtool.audit.names import no_entry
    from ssmtool.golden.signature import of_kernel

    texts = read_input(source, lambda path: _shown(app, path))
    for text in texts:
        for kernel in text.module.entries:
            if kernel.name == entry:
                names = text.parameters.get(entry) or [f"param_{index}" for index in range(len(kernel.params))]
                return of_kernel(kernel, names, _c_types(app, entry, names))
    known = [kernel.name for text in texts for kernel in text.module.entries]
    raise SsmtoolError(no_entry(entry, known), path=_shown(app, Path(source)))


def _c_types(app: AppContext, entry: str, names: Sequence[str]) -> list[str]:
    """The types as the project's sources write them; none where no source has this kernel with these parameters."""
    from ssmtool.files import read_source
    from ssmtool.registry.included import kernels_of_source

    project = _around(app)
    for module in project.settings.module if project else ():
        assert project is not None
        try:
            found = kernels_of_source(project, module, read_source(project.path(module.source))).kernels
        except SsmtoolError:
            continue  # what it would add is only surer types
        for kernel in found:
            if kernel.name == entry and [each.name for each in kernel.parameters] == list(names):
                return [each.type for each in kernel.parameters]
    return []
