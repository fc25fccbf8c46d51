"""The registry check on a whole project: its files read, each module checked, the loaders' fixes planned."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ssmtool.csource import KernelSource, NameArray, find_name_array
from ssmtool.errors import ProductError, SsmtoolError
from ssmtool.files import read_bytes, read_source, write_atomic
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.header import Header, read_header
from ssmtool.project import LoaderSettings, ModuleSettings, Project
from ssmtool.registry.check import check_registry, without_loader
from ssmtool.registry.included import kernels_of_source, loader_includes
from ssmtool.registry.loader_kind import LoaderKind, recognise_loader
from ssmtool.registry.model import RegistryReport
from ssmtool.registry.rules_constant import constant_faults, in_report, shared_arrays, shared_findings
from ssmtool.registry.rules_source import FIX
from ssmtool.settings_form import table

T = TypeVar("T")
_QUOTED_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


class LoaderFix(msgspec.Struct, frozen=True):
    """What is planned for one loader file. `data` is None when the file stays as it is."""

    path: Path
    shown: str
    data: bytes | None
    edits: tuple[str, ...]
    refusals: tuple[str, ...]
    moved: tuple[str, ...] = ()

    def write(self) -> bool:
        """Write the file whole; True if it changed. Raises SsmtoolError when the folder or the disk refuses."""
        return self.data is not None and write_atomic(self.path, self.data)


def check_project(
    project: Project, header: Header | None = None, ptx_entries: Mapping[str, Sequence[str]] | None = None
) -> tuple[list[RegistryReport], Outcome]:
    """Check every module of the project.

    `header` is the generated header, read from disk when it is not given. `ptx_entries` maps the constants of modules
    that were compiled just now to their entries. Raises SsmtoolError when a file cannot be read or understood.
    """
    modules = project.settings.module
    if not modules:
        raise SsmtoolError(f"the settings name no {table('module')}", path=project.settings_file, hint="ssmtool init")
    held = header or _read_header(project)
    outcome = Outcome()
    reports = []
    shared = {module.constant_name for group in shared_arrays(project).values() for module in group}
    fresh = ptx_entries or {}
    read = [_check_module(project, module, held, fresh.get(module.constant_name)) for module in modules]
    faults = constant_faults(project, held)
    for module, report in zip(modules, read, strict=True):
        if module.constant_name in shared:
            # Names that belong to two modules are wrong in both, whatever is done to them: that is one finding.
            report = without_loader(report)
        elif module.constant_name in faults:
            report = in_report(report, faults[module.constant_name])
        reports.append(report)
        outcome.extend(_mendable(project, report))
        outcome.skips += report.skips
        outcome.required_skips += report.required_skips
    outcome.extend(shared_findings(project))
    outcome.extend(_unlisted_sources(project))
    return reports, outcome


def _mendable(project: Project, report: RegistryReport) -> list[Finding]:
    """The report's findings; where `--fix` would refuse the loader, they give its reason and not its command."""
    loader = report.input.loader
    findings = list(report.findings)
    if loader is None or not any((finding.fix or "").startswith(FIX) for finding in findings):
        return findings
    from ssmtool.registry.fix import plan_fix

    refusal = plan_fix(report, read_bytes(project.path(loader.path))).refusal
    if refusal is None:
        return findings
    by_hand = f"edit {loader.path} by hand; ssmtool registry --fix would leave it as it is: {refusal}"
    return [
        msgspec.structs.replace(finding, fix=by_hand) if (finding.fix or "").startswith(FIX) else finding
        for finding in findings
    ]


def _unlisted_sources(project: Project) -> list[Finding]:
    """Sources with kernels beside those of the settings: nothing compiles them, so their kernels are inert."""
    listed = {project.path(module.source).resolve() for module in project.settings.module}
    findings = []
    for folder in sorted({path.parent for path in listed if path.parent.is_dir()}):
        for path in sorted(folder.glob("*.cu")):
            if path.resolve() in listed or not path.is_file() or b"__global__" not in read_bytes(path):
                continue
            shown = project.show(path)
            findings.append(
                Finding(
                    rule="registry/unlisted-source",
                    severity=Severity.WARNING,
                    message="mentions __global__ and is in no [[module]] of the settings",
                    path=shown,
                    effect="its kernels, if it has any, are in no header: no program can load them",
                    fix=f'add a module with source = "{shown}" to the settings, or move the file',
                )
            )
    return findings


def _check_module(
    project: Project, module: ModuleSettings, header: Header, fresh: Sequence[str] | None
) -> RegistryReport:
    held = header.module(module.constant_name)
    loader, kind = (None, LoaderKind()) if module.loader is None else _read_loader(project, module.loader)
    return check_registry(
        module_name=module.name,
        source=read_module_source(project, module, fresh if fresh is not None else held.entry_names if held else ()),
        ptx_entries=fresh,
        header_entries=held.entry_names if held else (),
        header_path=project.settings.header,
        constant=module.constant_name,
        loader=loader,
        kind=kind,
        elsewhere={
            name: other.record.source
            for other in header.modules
            if other.record.constant != module.constant_name
            for name in other.entry_names
        },
    )


def read_module_source(project: Project, module: ModuleSettings, entries: Sequence[str] = ()) -> KernelSource:
    """The kernels of one module's source and of the project's files it includes, with the project's flags and target.

    Raises ProductError when there are none, and no `entries` of a PTX either that say that there must be some.
    """
    source = kernels_of_source(project, module, _shown(project, project.path(module.source), read_source))
    if source.kernels or source.unread or (source.includes and entries):
        return source
    raise ProductError(
        "defines no __global__ function, so there is no kernel to look for",
        path=module.source,
        hint='declare each kernel as: extern "C" __global__ void NAME(...)',
    )


def plan_fixes(project: Project, reports: Sequence[RegistryReport]) -> list[LoaderFix]:
    """The fixes of all loaders, one for each file, however many modules it loads. Writes nothing.

    Raises SsmtoolError for a loader that needs an edit and whose mode says that it is read-only.
    """
    from ssmtool.registry.fix import plan_fix

    fixes = []
    by_path: dict[str, list[RegistryReport]] = {}
    for report in reports:
        if report.input.loader is not None:
            by_path.setdefault(report.input.loader.path, []).append(report)
    for shown, group in by_path.items():
        path = project.path(shown)
        old = data = read_bytes(path)
        edits: list[str] = []
        refusals: list[str] = []
        moved: list[str] = []
        for report in group:
            fix = plan_fix(report, data)
            data = fix.data
            edits += fix.edits
            refusals += [fix.refusal] if fix.refusal else []
            moved += fix.moved
        changed = data if data != old else None
        if changed is not None and not path.stat().st_mode & stat.S_IWUSR:
            # A rename would replace it all the same; whoever took the bit away meant that nobody does.
            raise SsmtoolError(
                "is read-only, and its names or its count need an edit; nothing was changed",
                path=shown,
                hint=f"chmod u+w {shown}",
            )
        fixes.append(LoaderFix(path, shown, changed, tuple(edits), tuple(refusals), tuple(moved)))
    return fixes


def refused(fixes: Sequence[LoaderFix]) -> list[Skip]:
    """Loaders left alone although something is wrong, each with the reason."""
    return [Skip(f"fix of {fix.shown}", f"left as it is: {reason}") for fix in fixes for reason in fix.refusals]


def _read_header(project: Project) -> Header:
    try:
        return read_header(project.header_path)
    except SsmtoolError as error:
        error.path = project.settings.header
        error.hint = error.hint or "ssmtool build"
        raise


def _read_loader(project: Project, settings: LoaderSettings) -> tuple[NameArray, LoaderKind]:
    path = project.path(settings.path)
    data = _shown(project, path, read_bytes)
    array = _find_array(project, settings, data, path)
    headers = []
    for name in _QUOTED_INCLUDE.findall(data):
        included = path.parent / name.decode("utf-8", "replace")
        if included.is_file():
            headers.append((included, read_bytes(included)))
    return array, recognise_loader(data, headers)


def _find_array(project: Project, settings: LoaderSettings, data: bytes, path: Path) -> NameArray:
    """The loader's array; the headers beside it are read only where the file alone leaves something open."""
    named = (data, settings.path, settings.array, settings.function, settings.count_argument)
    failure: SsmtoolError | None = None
    array: NameArray | None = None
    try:
        array = find_name_array(*named)
    except SsmtoolError as error:
        failure = error
    if not _QUOTED_INCLUDE.search(data):
        pass
    elif array is None or _open_questions(array):
        array = find_name_array(*named, file=path, resolve=loader_includes(project))
    if array is None:
        assert failure is not None, "there is an array or an error"
        raise failure
    return array


def _open_questions(array: NameArray) -> bool:
    numbers = (array.count, array.declared, *(size for _, size in array.buffers))
    unknown = any(number is not None and number.value is None for number in numbers)
    return unknown or any(entry.condition for entry in array.entries)


def _shown(project: Project, path: Path, read: Callable[[Path], T]) -> T:
    """`read(path)`, with an error's path as reports print it."""
    try:
        return read(path)
    except SsmtoolError as error:
        error.path = project.show(path)
        raise
