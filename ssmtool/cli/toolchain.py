"""`ssmtool toolchain`: the compilers in reach, and the embedded one brought in by pinned hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssmtool.cli.context import AppContext, exits_with_code, format_option
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.project import Project
    from ssmtool.toolchain import CompilerInfo, Found
    from ssmtool.toolchain.ptxas import PtxasInfo


def version_lines() -> list[str]:
    """For `ssmtool --version`: one line for each compiler and each ptxas in reach, or that there is none."""
    from ssmtool.toolchain import find_compilers
    from ssmtool.toolchain.ptxas import find_ptxas

    compilers = [f"{item.title}{'' if item.info else f': does not work: {item.why}'}" for item in find_compilers()]
    assemblers = [info.title for info in find_ptxas()]
    return [
        *(compilers or ["no compiler in reach (ssmtool toolchain install)"]),
        *(assemblers or ["no ptxas in reach (pip install 'ssmtool[compiler]')"]),
    ]


@click.group(
    "toolchain", epilog="Exit codes: 0 all is well; 2 no compiler of the pinned release, or it could not be installed."
)
def command() -> None:
    """Show the compilers in reach, or install the embedded one.

    \b
    Examples:
      ssmtool toolchain show                 what is here, and which one a build would take
      ssmtool toolchain install              CUDA 11.4's NVRTC, by pinned hash (24 MB)
      ssmtool toolchain install --wheel F    the same from a file, without network
    """


@command.command("show")
@format_option
@click.pass_obj
@exits_with_code
def show(app: AppContext, output_format: str) -> int:
    """Show every compiler and ptxas in reach, and which one a build takes.

    Exit code 2 when no compiler fits the project.

    \b
    Example:
      ssmtool toolchain show --format json
    """
    from ssmtool.project import Project, Settings
    from ssmtool.toolchain import find_compilers, select_compiler
    from ssmtool.toolchain.ptxas import find_ptxas

    project = _project_or_none(app) or Project(root=Path.cwd(), settings=Settings())
    found = [_verified(item) for item in find_compilers(project)]
    refusal: SsmtoolError | None = None
    chosen: CompilerInfo | None = None
    try:
        chosen = select_compiler(project).info
        broken = next((item for item in found if item.path == chosen.path and item.info is None), None)
        if broken:
            refusal = SsmtoolError(broken.why or "damaged", path=broken.path, hint="ssmtool toolchain install")
            chosen = None
    except SsmtoolError as error:
        refusal = error
    if output_format == "json":
        click.echo(json.dumps(_as_json(project, found, find_ptxas(), chosen, refusal), indent=2))
    else:
        _print(project, found, find_ptxas(), chosen)
    if refusal:
        if output_format == "console":
            raise refusal
        return refusal.exit_code
    return 0


@command.command("install")
@click.option(
    "--wheel",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Install from this file, which must be the pinned wheel, instead of downloading it.",
)
@click.pass_obj
@exits_with_code
def install_command(app: AppContext, wheel: Path | None) -> int:
    """Install the embedded compiler (CUDA 11.4.152 NVRTC) for x86-64 Linux.

    It goes to the user's data folder, or to SSMTOOL_TOOLCHAIN_DIR when that is set. A second run checks that the files
    are whole and does nothing.

    \b
    Examples:
      ssmtool toolchain install
      SSMTOOL_TOOLCHAIN_DIR=/opt/ssmtool ssmtool toolchain install
    """
    from ssmtool.toolchain import store
    from ssmtool.toolchain.install import install

    def say(line: str) -> None:
        if not app.quiet:
            click.echo(line, err=True)

    result = install(wheel=wheel, say=say)
    if not app.quiet:
        state = "installed" if result.changed else "already installed"
        click.echo(f"NVRTC {store.VERSION} {state} in {result.folder}")
    return 0


def _project_or_none(app: AppContext) -> Project | None:
    """The project, or None outside of one; a settings file that is wrong is still an error."""
    try:
        return app.load_project()
    except SsmtoolError as error:
        if error.path is None:
            return None
        raise


def _verified(found: Found) -> Found:
    """The same; for the compiler that ssmtool installed, after its hashes were checked."""
    from dataclasses import replace

    from ssmtool.toolchain import store

    if found.info is None or found.path.parent != store.nvrtc_dir():
        return found
    fault = store.full_fault(store.nvrtc_dir())
    return replace(found, info=None, why=fault) if fault else found


def _print(project: Project, found: list[Found], assemblers: list[PtxasInfo], chosen: CompilerInfo | None) -> None:
    """The console form."""
    settings = project.settings
    click.echo(f"wanted: CUDA {settings.cuda_release}, {settings.target}, PTX ISA <= {settings.max_ptx_isa}")
    for item in found:
        taken = chosen is not None and item.path == chosen.path
        isa = f", PTX {item.info.ptx_isa[0]}.{item.info.ptx_isa[1]}" if item.info else ""
        click.echo(f"{'*' if taken else ' '} {item.title}{isa}: {project.show(item.path)}")
        if item.why:
            click.echo(f"    not taken: {item.why}")
    for info in assemblers:
        click.echo(f"  {info.title}: {project.show(info.path)}")
    if not assemblers:
        click.echo("  no ptxas in reach: resources and spills cannot be checked (pip install 'ssmtool[compiler]')")


def _as_json(
    project: Project,
    found: list[Found],
    assemblers: list[PtxasInfo],
    chosen: CompilerInfo | None,
    refusal: SsmtoolError | None,
) -> dict[str, Any]:
    """The JSON form."""
    from ssmtool.cli.context import error_json

    report: dict[str, Any] = {
        "verdict": "ok",
        "exit_code": 0,
        "wanted": {"cuda_release": project.settings.cuda_release, "target": project.settings.target},
        "compilers": [
            {
                "kind": item.kind,
                "version": item.info.version if item.info else None,
                "path": str(item.path),
                "origin": item.origin,
                "taken": chosen is not None and item.path == chosen.path,
                "why_not": item.why,
            }
            for item in found
        ],
        "ptxas": [{"version": info.version, "path": str(info.path), "origin": info.origin} for info in assemblers],
    }
    return report | error_json(refusal) if refusal else report
