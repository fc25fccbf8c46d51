"""The chain of one build: source -> PTX -> header, computed whole before anything is written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from ssmtool.build.entries import record_entries, split_entries
from ssmtool.build.includes import hash_includes, hash_source
from ssmtool.build.normalise import normalise
from ssmtool.build.unresolved import refuse_unresolved
from ssmtool.errors import ProductError, SsmtoolError
from ssmtool.files import decode_source, read_bytes
from ssmtool.header import CompilerRecord, HeaderModule, ModuleRecord, render_header, sha256
from ssmtool.project import ModuleSettings, Project
from ssmtool.settings_form import table
from ssmtool.toolchain import Compiler, CompileRequest, CompileResult, select_compiler
from ssmtool.toolchain.loadable import make_loadable
from ssmtool.toolchain.model import TargetError
from ssmtool.toolchain.workers import worker_pool


@dataclass(frozen=True, slots=True)
class BuiltModule:
    """One compiled module: what goes into the header, and what the compiler said."""

    settings: ModuleSettings
    held: HeaderModule
    diagnostics: str
    compile_seconds: float


@dataclass(frozen=True, slots=True)
class Build:
    """A finished build that has not been written: the header's bytes and the modules in it."""

    compiler: Compiler
    modules: tuple[BuiltModule, ...]
    header: bytes
    seconds: float

    @property
    def compile_seconds(self) -> float:
        """Seconds spent inside the compiler; modules are compiled side by side, so the longest counts."""
        return max((module.compile_seconds for module in self.modules), default=0.0)


def compile_project(
    project: Project, *, asked: str | None = None, progress: Callable[[str], None] = lambda _: None
) -> Build:
    """Compile every module of the project; writes nothing.

    `asked` is a compiler named by the user (`nvcc`, `nvrtc-11.8`). `progress` gets a line as each module starts. Raises
    SsmtoolError (no compiler, killed, timed out, no modules in the settings) or ProductError (a source that does not
    compile, is not text, or has no kernels).
    """
    started = time.perf_counter()
    modules = project.settings.module
    if not modules:
        raise SsmtoolError(f"the settings name no {table('module')}", path=project.settings_file, hint="ssmtool init")
    requests = [_request(project, module) for module in modules]
    compiler = select_compiler(project, asked=asked)
    for module in modules:
        progress(f"compiling {module.source} for {project.settings.target} with {compiler.info.label}")
    if compiler.environment:
        progress(f"note: in the environment, {compiler.environment}; the header's provenance says so")
    with worker_pool(4) as pool:
        running = [pool.submit(compiler.compile, request) for request in requests]
        # The parser of C sources loads and runs while the compiler works; it would otherwise add to every build.
        pairs = zip(modules, requests, strict=True)
        names = [_parameter_names(project, module, request.text) for module, request in pairs]
        try:
            results = [future.result() for future in running]
        except TargetError as error:
            error.path, error.line = _place_of_target(project)
            raise
    built = tuple(
        _finish(project, module, request, result, name_map)
        for module, request, result, name_map in zip(modules, requests, results, names, strict=True)
    )
    header = render_header(project.header_path.name, tuple(module.held for module in built))
    return Build(compiler, built, header, time.perf_counter() - started)


def _request(project: Project, module: ModuleSettings) -> CompileRequest:
    """What the compiler is asked for one module."""
    settings = project.settings
    source = project.path(module.source)
    try:
        text = decode_source(read_bytes(source), source)
    except SsmtoolError as error:
        error.path = module.source
        error.hint = error.hint or f"the settings name it as the source of {module.constant_name}"
        raise
    if not text.strip():
        raise ProductError("is empty: there is no kernel to compile", path=project.show(source))
    return CompileRequest(
        source=source,
        text=text,
        root=project.root,
        target=settings.target,
        include_dirs=tuple(project.path(folder) for folder in settings.include_dirs),
        flags=settings.flags,
        timeout_s=settings.compile_timeout,
    )


def _place_of_target(project: Project) -> tuple[str | None, int | None]:
    """The settings file, and the line in it that sets `target`."""
    if project.settings_file is None:
        return None, None
    lines = read_bytes(project.settings_file).decode("utf-8", "replace").splitlines()
    number = next((at for at, line in enumerate(lines, 1) if re.match(r"\s*target\s*=", line)), None)
    return project.show(project.settings_file), number


def _parameter_names(project: Project, module: ModuleSettings, text: str) -> dict[str, list[str]]:
    """Kernel -> parameter names, as the C source and the project's files that it includes have them."""
    from ssmtool.registry.included import kernels_of_source

    kernels = kernels_of_source(project, module, text).kernels
    return {kernel.name: [parameter.name for parameter in kernel.parameters] for kernel in kernels}


def _finish(
    project: Project,
    module: ModuleSettings,
    request: CompileRequest,
    result: CompileResult,
    names: dict[str, list[str]],
) -> BuiltModule:
    """Normalised PTX and its record."""
    loadable, note = make_loadable(result.ptx, project)
    ptx = normalise(loadable, request.root.as_posix())
    if not split_entries(ptx):
        raise ProductError(
            'has no kernels: it defines no extern "C" __global__ function',
            path=module.source,
            hint='declare each kernel as: extern "C" __global__ void NAME(...)',
        )
    refuse_unresolved(ptx, module.source)
    info = result.compiler
    record = ModuleRecord(
        constant=module.constant_name,
        source=module.source,
        source_sha256=hash_source(read_bytes(request.source)),
        includes=hash_includes(project, request.source),
        flags=result.flags,
        compiler=CompilerRecord(kind=info.kind, version=info.version),
        ptx_isa=_version(ptx),
        target=project.settings.target,
        entries=record_entries(ptx, names),
        ptx_sha256=sha256(ptx),
        note="; ".join(filter(None, (note, result.note))) or None,
    )
    return BuiltModule(module, HeaderModule(record, ptx), result.diagnostics, result.seconds)


def _version(ptx: str) -> str:
    """The PTX ISA of the text, as in `7.4`."""
    first = ptx.split("\n", 1)[0].split()
    if len(first) != 2 or first[0] != ".version":
        raise SsmtoolError(f"the compiler's output does not start with .version but with: {' '.join(first)[:60]}")
    return first[1]
