"""`ssmtool init`: write settings for a project that has none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ssmtool.cli.context import AppContext, exits_with_code
from ssmtool.errors import SsmtoolError
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.discover import Guess, ModuleGuess


@click.command("init", epilog="Exit codes: 0 written; 2 there are settings already, or nothing to write them for.")
@click.option("--print", "print_only", is_flag=True, help="Print the table; write nothing.")
@click.pass_obj
@exits_with_code
def command(app: AppContext, print_only: bool) -> int:
    """Look at the tree and write a commented [tool.ssmtool] table.

    The table goes to the end of pyproject.toml when there is one, else into a new ssmtool.toml.

    \b
    Examples:
      ssmtool init --print     what would be written
      ssmtool init             write it
      ssmtool -C ../other init
    """
    from ssmtool.discover import discover
    from ssmtool.files import read_bytes, write_atomic
    from ssmtool.project import SETTINGS_FILES, read_project

    root = app.project_dir.absolute()
    if not root.is_dir():
        raise SsmtoolError("is no folder" if root.exists() else "no such folder", path=root)
    pyproject = root / "pyproject.toml"
    for name in SETTINGS_FILES:
        path = root / name
        project = read_project(path) if path.is_file() and not print_only else None
        if project is not None:
            raise _has_settings(path, modules=len(project.settings.module))
    guess = discover(root)
    target = pyproject if pyproject.is_file() else root / "ssmtool.toml"
    text = settings_text(guess, prefix="tool.ssmtool" if target == pyproject else "")
    if print_only:
        click.echo(text, nl=False)
    else:
        old = read_bytes(target) if target.is_file() else b""
        _refuse_to_break(target, old, text)
        end = b"\r\n" if b"\r\n" in old else b"\n"
        separator = b"" if not old else end if old.endswith(b"\n") else end + end
        write_atomic(target, old + separator + text.encode().replace(b"\n", end))
    for remark in [*guess.remarks, *_above(root)]:
        click.echo(f"note: {remark}", err=True)
    if not print_only and not app.quiet:
        kernels = sum(len(module.kernels) for module in guess.modules)
        found = f"{plural(len(guess.modules), 'source file')}, {plural(kernels, 'kernel')}"
        click.echo(f"wrote {target.name}: {found}; next: ssmtool build")
    return 0


def _above(root: Path) -> list[str]:
    """A remark when the folder belonged to a project already: from now on it is one of its own."""
    from ssmtool.project import find_project

    try:
        outer = find_project(root.parent).settings_file
    except SsmtoolError:
        return []
    return [f"the settings in {outer} do not apply in this folder: it has its own now"] if outer else []


def _has_settings(path: Path, *, modules: int) -> SsmtoolError:
    """Settings are the user's: they are never added to, only what to add is shown."""
    if modules:
        return SsmtoolError("has settings already", path=path, hint="ssmtool init --print shows what it would write")
    return SsmtoolError(
        "has settings already, and they name no module",
        path=path,
        hint="add the module tables that ssmtool init --print shows",
    )


def _refuse_to_break(target: Path, old: bytes, text: str) -> None:
    """Raise SsmtoolError when `text` after `old` is no TOML: `tool = 3`, say, takes no table [tool.ssmtool]."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        tomllib.loads(old.decode("utf-8-sig").replace("\r\n", "\n") + "\n\n" + text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"[tool.ssmtool] cannot be added to it: {error}; it is left as it is"
        raise SsmtoolError(message, path=target, hint="ssmtool init --print shows the table") from None


def settings_text(guess: Guess, *, prefix: str) -> str:
    """The table as commented TOML; `prefix` is `tool.ssmtool` in pyproject.toml and empty in ssmtool.toml."""
    dotted = f"{prefix}." if prefix else ""
    lines = [
        "# Settings of ssmtool. Paths are relative to this file.",
        *([f"[{prefix}]"] if prefix else []),
        "# The C header that `ssmtool build` writes: the PTX of every module below, as string constants.",
        f"header = {_quote(guess.header)}",
        "# Architecture of the PTX, and the CUDA release that makes it; another is refused unless asked for by name.",
        'target = "sm_37"',
        'cuda_release = "11.4"',
        "# Newest PTX ISA the driver of the target machine loads (7.4 is the last for Kepler, driver R470).",
        'max_ptx_isa = "7.4"',
        "# Extra compiler flags, and folders searched for #include.",
        "flags = []",
        f"include_dirs = [{', '.join(_quote(folder) for folder in guess.include_dirs)}]",
    ]
    folder = guess.header.rpartition("/")[0]
    if folder != "generated":
        baseline = f"{folder}/audit-baseline.json".lstrip("/")
        lines += ["# What each kernel's numbers were when `ssmtool audit-ptx --update-baseline` accepted them."]
        lines += [f"baseline = {_quote(baseline)}"]
    for module in guess.modules:
        lines += _module_lines(module, dotted)
    return "\n".join(lines) + "\n"


def _module_lines(module: ModuleGuess, dotted: str) -> list[str]:
    """One `[[module]]` table."""
    first = ", ".join(module.kernels[:4]) + (", ..." if len(module.kernels) > 4 else "")
    lines = [
        "",
        f"# {plural(len(module.kernels), 'kernel')}: {first}",
        f"[[{dotted}module]]",
        f"source = {_quote(module.source)}",
        "# Name of the string constant in the header.",
        f"constant = {_quote(module.constant)}",
    ]
    loader = module.loader
    if loader is None:
        return [
            *lines,
            "# No array of these kernels' names was found in the C files. If a loader assigns them by name, say where:",
            f"# [{dotted}module.loader]",
            '# path = "kernels/loader.c"',
            '# array = "kernel_names"',
            '# function = "load_functions"',
        ]
    table = [
        f"[{dotted}module.loader]",
        f"path = {_quote(loader.path)}",
        f"array = {_quote(loader.array)}",
    ]
    if loader.function:
        position = loader.count_argument
        counted = [] if position is None else [f"count_argument = {position}   # counted from 0"]
        table += [f"function = {_quote(loader.function)}", *counted]
    else:
        table.append('# function = "load_functions"   # no call that takes the array with a count was found')
    if module.shares:
        why = f"# {loader.array} is the array of {module.shares} already; when these kernels have their own:"
        return [*lines, why, *(f"# {line}" for line in table)]
    return [*lines, "# The loader's array of names, and the call that takes it with a count.", *table]


def _quote(text: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's."""
    return json.dumps(text, ensure_ascii=False)
