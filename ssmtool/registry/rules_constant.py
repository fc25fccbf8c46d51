"""Findings on the string constants that a loader hands to the driver, and on arrays that two modules claim.

The settings say which constant carries a module's kernels and which array has their names; only the C says which
constant is loaded. It is asked as far as its text answers plainly, and no further: a loader that is given its PTX by
another file names no constant, and nothing is wrong with that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ssmtool.csource.loads import Pair, code_words, find_pairs, loaded_constants, surely_used
from ssmtool.errors import SsmtoolError
from ssmtool.files import read_bytes
from ssmtool.findings import Finding, Severity
from ssmtool.header import Header
from ssmtool.project import ModuleSettings, Project
from ssmtool.registry.loader_kind import DRIVER_NOT_FOUND
from ssmtool.registry.model import RegistryReport, Simulation

_QUOTED_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_HEADERS = frozenset({".h", ".hh", ".hpp", ".hxx", ".inc", ".cuh"})


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a module's constant, and the message that its user reads; None when none is printed."""

    finding: Finding
    message: str | None


def shared_arrays(project: Project) -> dict[tuple[str, str], list[ModuleSettings]]:
    """(loader's path, array) -> the modules whose settings name it, where they are several."""
    users: dict[tuple[str, str], list[ModuleSettings]] = {}
    for module in project.settings.module:
        if module.loader is not None:
            users.setdefault((os.path.normpath(module.loader.path), module.loader.array), []).append(module)
    return {place: modules for place, modules in users.items() if len(modules) > 1}


def shared_findings(project: Project) -> list[Finding]:
    """One finding for each array that several modules name: no edit of names can mend it."""
    findings = []
    for (path, array), modules in shared_arrays(project).items():
        sources = " and ".join(module.source for module in modules)
        findings.append(
            Finding(
                rule="registry/shared-array",
                severity=Severity.ERROR,
                message=f"{array} is the array of {len(modules)} modules, {sources}: split it",
                path=path,
                effect="each module is loaded by itself, and lacks the names of the other: the loader stops there",
                fix=(
                    f"give the kernels of {modules[-1].source} an array and a loading call of their own, and name them"
                    " in that module's loader settings"
                ),
            )
        )
    return findings


def constant_faults(project: Project, header: Header) -> dict[str, Fault]:
    """Constant -> what is wrong with how its loader loads it, for the modules where that can be told."""
    groups: dict[str, list[ModuleSettings]] = {}
    for module in project.settings.module:
        if module.loader is not None:
            groups.setdefault(module.loader.path, []).append(module)
    faults: dict[str, Fault] = {}
    for shown, modules in groups.items():
        faults |= _of_loader(project, header, shown, modules)
    return faults


def in_report(report: RegistryReport, fault: Fault) -> RegistryReport:
    """The report of a module whose PTX is not what its loader loads: none of its kernels is reached."""
    simulation = report.simulation
    if simulation is None:
        return report
    inert = tuple(dict.fromkeys((*simulation.loaded, *simulation.inert)))
    return msgspec.structs.replace(
        report,
        simulation=Simulation("stopped", (), inert, 0, fault.message),
        rows=tuple(msgspec.structs.replace(row, loads=False) for row in report.rows),
        findings=(*report.findings, fault.finding),
    )


def _of_loader(project: Project, header: Header, shown: str, modules: Sequence[ModuleSettings]) -> dict[str, Fault]:
    path = project.path(shown)
    files = [(shown, path, read_bytes(path))]
    every = {module.constant_name for module in project.settings.module}
    mine = {module.constant_name for module in modules}
    if len(mine) == 1 and surely_used(files[0][2], shown, every) == mine:
        # The loader of one module, as most are: nothing is missing, and there is nothing to mistake it for.
        return {}
    makes_use = _add_headers(project, files)
    words = _words(files)
    if words is None:
        return {}
    loads = {
        name: (name_of, line)
        for name_of, _, data in files
        for name, line in loaded_constants(data, name_of).items()
        if name in words
    }
    faults: dict[str, Fault] = {}
    for module in modules:
        constant = module.constant_name
        if constant not in words and (makes_use or loads or words & every):
            faults[constant] = _never_loaded(module, loads, every)
    own = code_words(files[0][2], shown) or frozenset()
    if len(own & every) > 1 or (faults and own & every):
        pairs = find_pairs(files[0][2], shown, every, {module.loader.array for module in modules if module.loader})
        for module in modules:
            wrong = _crossed(header, module, shown, pairs, project) if module.constant_name not in faults else None
            if wrong is not None:
                faults[module.constant_name] = wrong
    return faults


def _add_headers(project: Project, files: list[tuple[str, Path, bytes]]) -> bool:
    """Add the headers that a loader includes, directly or not; whether the loader itself includes the generated one.

    A loader that is a header may include it for those who include the loader.
    """
    folders = [project.path(folder) for folder in project.settings.include_dirs]
    loader = files[0][1]
    seen, makes_use = {loader}, False
    for _, includer, data in files:  # Grows as it goes.
        for name in _QUOTED_INCLUDE.findall(data):
            text = name.decode("utf-8", "replace")
            places = [Path(os.path.normpath(folder / text)) for folder in (includer.parent, *folders)]
            if project.header_path in places or places[0].name == project.header_path.name:
                makes_use = makes_use or (includer == loader and loader.suffix not in _HEADERS)
                continue
            place = next((place for place in places if place.is_file()), None)
            if place is not None and place not in seen:
                seen.add(place)
                files.append((project.show(place), place, read_bytes(place)))
    return makes_use


def _words(files: Sequence[tuple[str, Path, bytes]]) -> frozenset[str] | None:
    """The words of all the files; None where one of them makes words, or is no text (a header may be UTF-16)."""
    words: frozenset[str] = frozenset()
    try:
        for name, _, data in files:
            found = code_words(data, name)
            if found is None:
                return None
            words |= found
    except SsmtoolError:
        return None
    return words


def _never_loaded(module: ModuleSettings, loads: Mapping[str, tuple[str, int]], every: set[str]) -> Fault:
    """The loader names constants, and this module's is not among them."""
    assert module.loader is not None
    constant, shown = module.constant_name, module.loader.path
    unknown = [name for name in loads if name not in every]
    told = f"{constant}, the PTX of {module.source}, is never mentioned in the code of this loader"
    path, line = shown, None
    effect = f"the PTX of {module.source} is never loaded: no launch reaches its kernels"
    fix = f"load {constant}, in the call that fills the module {module.loader.array} is looked up in"
    if unknown:
        name = unknown[0]
        path, line = loads[name]
        told += f"; it loads {', '.join(unknown)}, which no module of the settings makes"
        effect += f"; {name} is in no generated header, and without one that has it the C does not compile"
        fix = f'write {constant} instead of {name} here, or set constant = "{name}" for {module.source} in the settings'
        fix += " and run: ssmtool build"
    elif loads:
        path, line = next(iter(loads.values()))
        told += f"; it loads {', '.join(loads)}"
    return Fault(
        Finding(
            rule="registry/constant-not-loaded",
            severity=Severity.ERROR,
            message=told,
            path=path,
            line=line,
            effect=effect,
            fix=fix,
        ),
        None,
    )


def _crossed(
    header: Header, module: ModuleSettings, shown: str, pairs: Sequence[Pair], project: Project
) -> Fault | None:
    """The array is looked up in the module of another constant, at every place that can be told."""
    assert module.loader is not None
    array, constant = module.loader.array, module.constant_name
    mine = [pair for pair in pairs if pair.array == array]
    if not mine or any(pair.constant == constant for pair in mine) or len({pair.constant for pair in mine}) > 1:
        return None
    pair = mine[0]
    other = next((each for each in project.settings.module if each.constant_name == pair.constant), None)
    held = header.module(pair.constant)
    theirs = frozenset(held.entry_names if held else ())
    ours = header.module(constant)
    names = [name for name in (ours.entry_names if ours else ()) if name not in theirs]
    source = other.source if other else "another source"
    effect = f"{pair.constant} is the PTX of {source}: "
    effect += (
        f"it has no {names[0]}, the loader stops there; the user sees: {DRIVER_NOT_FOUND}"
        if names
        else f"the program runs its kernels in place of those of {module.source}, and no message says so"
    )
    return Fault(
        Finding(
            rule="registry/wrong-constant",
            severity=Severity.ERROR,
            message=(
                f"{array} (line {pair.line}) is looked up in the module loaded from {pair.constant}; its kernels are"
                f" in {constant}"
            ),
            path=shown,
            line=pair.loaded,
            effect=effect,
            fix=f"write {constant} here, or hand {array} to the call with the module that {constant} was loaded into",
        ),
        DRIVER_NOT_FOUND if names else None,
    )
