"""What a finished build changes on disk: the header and the loaders, planned first and written after."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssmtool.build.difference import KernelChange, compare_modules
from ssmtool.build.pipeline import Build
from ssmtool.errors import SsmtoolError
from ssmtool.files import read_bytes, write_atomic
from ssmtool.findings import Finding, Outcome, Severity
from ssmtool.header import BEGIN, Header, HeaderModule, read_header
from ssmtool.project import Project
from ssmtool.registry.model import RegistryReport
from ssmtool.registry.project import LoaderFix, check_project, plan_fixes, refused
from ssmtool.toolchain.workers import signals_as_exits


@dataclass(slots=True)
class Plan:
    """The comparison of a build with what is on disk.

    `registry` and `outcome` speak of the state after `write()`: the loader fixes in `fixes` are taken as made when the
    plan was made with `sync`. `header_changed` is about bytes; `changes` says which kernels differ.
    """

    build: Build
    header_changed: bool
    changes: list[KernelChange]
    registry: list[RegistryReport]
    outcome: Outcome
    fixes: list[LoaderFix] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def write(self, project: Project) -> None:
        """Write header and loaders, each whole, and all or none: what was replaced is put back when a later one fails.

        Raises SsmtoolError when the folder or the disk refuses.
        """
        files = [(project.settings.header, project.header_path, self.build.header)]
        files += [(fix.shown, fix.path, fix.data) for fix in self.fixes if fix.data is not None]
        replaced: list[tuple[Path, bytes | None]] = []
        with signals_as_exits():
            try:
                for shown, path, data in files:
                    old = read_bytes(path) if path.exists() else None
                    replaced.append((path, old))
                    if write_atomic(path, data):
                        self.written.append(shown)
            except BaseException:  # Ctrl-C and SIGTERM as well as a full disk
                for path, old in replaced:
                    if old is None:
                        path.unlink(missing_ok=True)
                    else:
                        write_atomic(path, old)
                self.written.clear()
                raise
        if self.fixes:
            # The loaders are read again from disk: the verdict is on the files as they are now.
            self.registry, self.outcome = check_project(project, *_fresh(project, self.build))
            self.outcome.skips += refused(self.fixes)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON data, for machines."""
        compiler = self.build.compiler.info
        return {
            **self.outcome.to_json(),
            "compiler": {"kind": compiler.kind, "version": compiler.version},
            "seconds": {"total": round(self.build.seconds, 4), "compiler": round(self.build.compile_seconds, 4)},
            "written": self.written,
            "header_changed": self.header_changed,
            "changes": [
                {
                    "constant": change.constant,
                    "kernel": change.kernel,
                    "kind": change.kind,
                    "lines_added": change.lines_added,
                    "lines_removed": change.lines_removed,
                    "operations": list(change.operations),
                }
                for change in self.changes
            ],
            "modules": [
                {
                    "source": module.settings.source,
                    "constant": module.held.record.constant,
                    "ptx_isa": module.held.record.ptx_isa,
                    "target": module.held.record.target,
                    "kernels": list(module.held.entry_names),
                    "note": module.held.record.note,
                    "diagnostics": module.diagnostics,
                }
                for module in self.build.modules
            ],
            "registry": [report.to_json() for report in self.registry],
        }


def plan_rebuild(project: Project, build: Build, *, sync: bool, fail_on_change: bool) -> Plan:
    """Compare a build with the header and loaders on disk; writes nothing.

    `sync` plans the loader fixes; `fail_on_change` makes a header that differs an error (`--check --rebuild`). Raises
    SsmtoolError when a loader cannot be read or its array not be found, so that nothing is written then.
    """
    _refuse_to_overwrite(project)
    old = _old_modules(project)
    changes = compare_modules(old, [module.held for module in build.modules])
    changed = _bytes(project) != build.header
    reports, outcome = check_project(project, *_fresh(project, build))
    fixes: list[LoaderFix] = []
    if sync and any(finding.severity is Severity.ERROR for finding in outcome.findings):
        fixes = [_only_appending(fix) for fix in plan_fixes(project, reports)]
    if fail_on_change and changed:
        outcome.findings.insert(0, _differs(project, build, changes))
    return Plan(build, changed, changes, reports, outcome, fixes)


def _only_appending(fix: LoaderFix) -> LoaderFix:
    """The fix if it leaves every name at its index, else the same loader left alone with the reason.

    A build is run without a thought; launches go by index, so a removal or an insertion is asked for by name.
    """
    if not fix.moved:
        return fix
    reason = f"launches go by index, and this would change: {', '.join(fix.moved)}; ssmtool registry --fix does it"
    return LoaderFix(fix.path, fix.shown, None, (), (*fix.refusals, reason), ())


def _fresh(project: Project, build: Build) -> tuple[Header, dict[str, tuple[str, ...]]]:
    """The header as the build makes it, and the entries of each constant."""
    modules = tuple(module.held for module in build.modules)
    entries = {module.record.constant: module.entry_names for module in modules}
    return Header(project.header_path, modules, build.header), entries


def _bytes(project: Project) -> bytes | None:
    """The header on disk with LF line ends, None when there is none. Raises SsmtoolError when it cannot be read."""
    if not project.header_path.exists():
        return None
    return read_bytes(project.header_path).replace(b"\r\n", b"\n")


def _refuse_to_overwrite(project: Project) -> None:
    """Raise SsmtoolError when the header cannot lie there, or is a file that ssmtool did not write and would lose."""
    try:
        project.header_path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        # A link to itself, a file where its folder has to be, a folder that may not be entered, a name too long.
        raise SsmtoolError(
            f"the header cannot be written there: {error.strerror or error}",
            path=project.settings.header,
            hint="remove what is in the way, or set `header` to another path",
        ) from None
    if not project.header_path.exists():
        return
    data = read_bytes(project.header_path)
    if data.strip() and BEGIN.encode() not in data and b"Generated by `ssmtool build`" not in data:
        raise SsmtoolError(
            "the settings name this file as the generated header, and ssmtool did not write it; it is left as it is",
            path=project.settings.header,
            hint="set `header` to another path, or remove the file if it is an old generated header",
        )


def _old_modules(project: Project) -> tuple[HeaderModule, ...]:
    """The modules of the header on disk; none when it is missing or cannot be read: it is about to be replaced."""
    try:
        return read_header(project.header_path).modules
    except SsmtoolError:
        return ()


def _differs(project: Project, build: Build, changes: list[KernelChange]) -> Finding:
    """The header on disk is not what this compiler makes of this source."""
    kernels = [f"{change.kernel} ({change.kind})" for change in changes]
    what = f"in {', '.join(kernels)}" if kernels else "outside the PTX: its provenance or layout"
    return Finding(
        rule="header/rebuild-differs",
        severity=Severity.ERROR,
        message=f"the checked-in header is not what {build.compiler.info.title} makes of the source: it differs {what}",
        path=project.settings.header,
        effect="the program runs PTX that this source and compiler do not make",
        fix="ssmtool build --diff shows it; ssmtool build replaces it",
    )
