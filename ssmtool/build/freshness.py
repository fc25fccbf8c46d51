"""Is the checked-in header what the source makes? Answered from hashes alone, with no compiler.

For each module one of the states of `State`. The order of the questions matters: an edited header is told apart from a
stale one because the record inside it can only be trusted once its own text proves untouched.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ssmtool.build.includes import hash_includes, hash_source, toolkit_folders
from ssmtool.errors import SsmtoolError
from ssmtool.files import read_bytes
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.header import (
    Header,
    HeaderModule,
    ModuleRecord,
    NoProvenanceError,
    read_header,
    render_header,
    sha256,
)
from ssmtool.project import ModuleSettings, Project
from ssmtool.settings_form import table

_REBUILD = "ssmtool build"


class State(enum.Enum):
    """What a header's module is, in words a report prints."""

    FRESH = "fresh"
    MISSING = "not in the header"
    SOURCE_CHANGED = "source changed since the header was made"
    SETTINGS_CHANGED = "settings changed since the header was made"
    HEADER_EDITED = "header edited by hand"
    TOOLCHAIN_DIFFERS = "only the toolchain differs"
    CANNOT_TELL = "cannot tell"


class ModuleState(msgspec.Struct, frozen=True):
    """The state of one module, with the header's module where it could be read."""

    settings: ModuleSettings
    state: State
    held: HeaderModule | None


class Freshness(msgspec.Struct):
    """All modules' states, and the findings and skips they give."""

    modules: list[ModuleState]
    outcome: Outcome
    header: Header | None = None

    @property
    def told(self) -> str:
        """The state of all modules, or each module's where they differ: `scale (fresh), norm (not in the header)`."""
        states = {each.state for each in self.modules}
        if len(states) == 1:
            return states.pop().value
        return ", ".join(f"{each.settings.name} ({each.state.value})" for each in self.modules)


def check_freshness(project: Project) -> Freshness:
    """Compare source, settings and header. Raises SsmtoolError when the settings name no module at all."""
    if not project.settings.module:
        raise SsmtoolError(f"the settings name no {table('module')}", path=project.settings_file, hint="ssmtool init")
    outcome = Outcome()
    shown = project.settings.header
    everything = project.settings.module
    if _is_missing(project.header_path):
        outcome.findings.append(
            Finding(
                rule="header/missing",
                severity=Severity.ERROR,
                message="there is no generated header",
                path=shown,
                effect="the loader does not compile",
                fix=_REBUILD,
            )
        )
        return Freshness([ModuleState(module, State.MISSING, None) for module in everything], outcome)
    try:
        header = read_header(project.header_path)
    except NoProvenanceError as error:
        reason = f"{shown}: {error.message}, so what made its PTX cannot be told"
        outcome.required_skips.append(Skip("header freshness", reason, fix=_REBUILD))
        return Freshness([ModuleState(module, State.CANNOT_TELL, None) for module in everything], outcome)
    except SsmtoolError as error:
        if error.exit_code != 1:
            raise
        outcome.findings.append(
            Finding(
                rule="header/edited",
                severity=Severity.ERROR,
                message=f"the header was edited by hand or cut off: {error.message}",
                path=shown,
                line=error.line,
                effect="the loader does not compile, or loads PTX that no compiler made",
                fix=_REBUILD,
            )
        )
        return Freshness([ModuleState(module, State.HEADER_EDITED, None) for module in everything], outcome)

    states = [_module_state(project, module, header, outcome) for module in everything]
    _check_text(project, header, states, outcome)
    _check_leftovers(project, header, outcome)
    return Freshness(states, outcome, header)


def _is_missing(path: Path) -> bool:
    """Whether nothing is there. What is there and cannot be read, such as a link to itself, is told by who reads it."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _module_state(project: Project, module: ModuleSettings, header: Header, outcome: Outcome) -> ModuleState:
    """The state of one module, its finding added to `outcome`."""
    shown = project.settings.header
    held = header.module(module.constant_name)

    def found(state: State, message: str, effect: str, fix: str = _REBUILD, path: str = shown) -> ModuleState:
        rule = f"header/{state.name.lower().replace('_', '-')}"
        outcome.findings.append(
            Finding(rule=rule, severity=Severity.ERROR, message=message, path=path, effect=effect, fix=fix)
        )
        return ModuleState(module, state, held)

    if held is None:
        message = f"{module.source} has no string constant {module.constant_name} in the header"
        return found(State.MISSING, message, "none of its kernels can be loaded")
    record = held.record
    edited = _edited_entries(held)
    if edited is not None:
        message = f"the header was edited by hand: {edited} in {record.constant} is not what the compiler wrote"
        return found(State.HEADER_EDITED, message, "the program runs PTX that the source does not make")
    try:
        includes = hash_includes(project, project.path(module.source))
        changed = _changed_sources(project, module, record, includes)
    except SsmtoolError as error:
        outcome.required_skips.append(Skip(f"freshness of {module.constant_name}", str(error)))
        return ModuleState(module, State.CANNOT_TELL, held)
    if changed:
        message = _told(module.source, changed)
        effect = "the program runs the old kernels; one added since then is missing from the PTX"
        return found(State.SOURCE_CHANGED, message, effect, path=module.source)
    settings = _changed_settings(project, record)
    if settings:
        message = f"settings changed since the header was made: {'; '.join(settings)}"
        return found(State.SETTINGS_CHANGED, message, "the program runs PTX made with the old settings")
    toolkit = _changed_toolkit(project, record, includes, outcome)
    if toolkit:
        message = f"only the toolkit's headers differ from those that the header was made with: {', '.join(toolkit)}"
        effect = "same source, perhaps other code: a build shows whether the PTX differs"
        return found(State.TOOLCHAIN_DIFFERS, message, effect)
    release = project.settings.cuda_release
    if not f"{record.compiler.version}.".startswith(f"{release}."):
        message = (
            f"only the toolchain differs: the PTX was made by {record.compiler.kind} {record.compiler.version},"
            f" the settings pin CUDA {release}"
        )
        effect = "same source, other code: registers, local memory and speed may differ from what was measured"
        return found(State.TOOLCHAIN_DIFFERS, message, effect)
    return ModuleState(module, State.FRESH, held)


def _told(source: str, changed: list[str]) -> str:
    """What changed, where the report names the source already."""
    others = [name for name in changed if name != source]
    if not others:
        return "changed since the header was made"
    if len(others) < len(changed):
        return f"changed since the header was made, and so did {', '.join(others)}"
    return f"what it includes changed since the header was made: {', '.join(others)}"


def _edited_entries(held: HeaderModule) -> str | None:
    """What part of the PTX text is not what the record says, in words; None when all is as recorded."""
    from ssmtool.build.entries import entry_digests

    if sha256(held.ptx) == held.record.ptx_sha256:
        return None
    digests = entry_digests(held.ptx)
    recorded = {entry.name: entry.digest for entry in held.record.entries}
    kernels = [name for name, digest in recorded.items() if digests.get(name) != digest]
    kernels += [name for name in digests if name not in recorded]
    return f"the PTX of {', '.join(kernels)}" if kernels else "the PTX outside its kernels"


def _changed_sources(
    project: Project, module: ModuleSettings, record: ModuleRecord, now: Mapping[str, str]
) -> list[str]:
    """The source and included files whose content is not what the header was made from."""
    source = project.path(module.source)
    changed = []
    if hash_source(read_bytes(source)) != record.source_sha256 or module.source != record.source:
        changed.append(module.source)
    for name in sorted(name for name in {*now, *record.includes} if not name.startswith("<")):
        if name not in now:
            gone = not project.path(name).exists()
            changed.append(f"{name} ({'no such file any more' if gone else 'no longer included'})")
        elif name not in record.includes:
            changed.append(f"{name} (newly included)")
        elif now[name] != record.includes[name]:
            changed.append(name)
    return changed


def _changed_toolkit(
    project: Project, record: ModuleRecord, includes: Mapping[str, str], outcome: Outcome
) -> list[str]:
    """The toolkit's headers that are not those of the record; a skip for a toolkit that this machine does not have."""
    before = {name: digest for name, digest in record.includes.items() if name.startswith("<")}
    now = {name: digest for name, digest in includes.items() if name.startswith("<")}
    if before and not now:
        folders = ", ".join(map(str, toolkit_folders(project))) or "no absolute folder in include_dirs"
        reason = f"not found on this machine (in {folders})"
        outcome.skips.append(Skip(f"hashes of {', '.join(sorted(before))}", reason))
        return []
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _changed_settings(project: Project, record: ModuleRecord) -> list[str]:
    """Settings that reach the compiler and are not those the header was made with."""
    settings = project.settings
    changed = []
    if settings.target != record.target:
        changed.append(f"target was {record.target}, is {settings.target}")
    if _isa(record.ptx_isa) > _isa(settings.max_ptx_isa):
        changed.append(f"the PTX is ISA {record.ptx_isa}, max_ptx_isa is {settings.max_ptx_isa}")
    if settings.flags != record.flags:
        changed.append(f"flags were [{' '.join(record.flags)}], are [{' '.join(settings.flags)}]")
    return changed


def _isa(text: str) -> tuple[int, ...]:
    """`7.4` as numbers that compare."""
    return tuple(int(part) for part in text.split("."))


def _check_text(project: Project, header: Header, states: list[ModuleState], outcome: Outcome) -> None:
    """Find hand edits outside the PTX: the file must be byte for byte what its own record renders to."""
    if any(state.state is State.HEADER_EDITED for state in states):
        return
    expected = render_header(header.path.name, header.modules)
    actual = header.data.replace(b"\r\n", b"\n")
    if actual == expected:
        return
    pairs = enumerate(zip(expected.split(b"\n"), actual.split(b"\n"), strict=False), start=1)
    line = next((number for number, (wanted, found) in pairs if wanted != found), None)
    outcome.findings.append(
        Finding(
            rule="header/edited",
            severity=Severity.ERROR,
            message="the header was edited by hand: its text is not what `ssmtool build` writes for the same PTX",
            path=project.settings.header,
            line=line,
            effect="the next `ssmtool build` drops the edit",
            fix=_REBUILD,
        )
    )


def _check_leftovers(project: Project, header: Header, outcome: Outcome) -> None:
    """Constants in the header that no module of the settings makes any more."""
    wanted = {module.constant_name for module in project.settings.module}
    for module in header.modules:
        if module.record.constant not in wanted:
            outcome.findings.append(
                Finding(
                    rule="header/leftover",
                    severity=Severity.ERROR,
                    message=f"the header carries {module.record.constant}, which no module of the settings makes",
                    path=project.settings.header,
                    effect="the program carries kernels that are never rebuilt",
                    fix=_REBUILD,
                )
            )
