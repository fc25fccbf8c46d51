"""Find ptxas, assemble PTX with it, and read what it says about registers, stack frames and spills."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from ssmtool.errors import ProductError
from ssmtool.toolchain.model import ToolchainError, cannot_target, ptx_isa_of
from ssmtool.toolchain.process import run_tool
from ssmtool.toolchain.ptxas_report import Resources, parse_report

_WHEEL = "nvidia-cuda-nvcc-cu11"
_INSTALL = "pip install 'ssmtool[compiler]'"

# Cuda compilation tools, release 11.8, V11.8.89
_RELEASE = re.compile(r"release (\d+\.\d+), V(\d+\.\d+\.\d+)")
# ptxas g.ptx, line 40; error   : Not a name of any known instruction: 'foo'
_ERROR = re.compile(r"^ptxas .*?, line (?P<line>\d+); (?:error|fatal)\s*: (?P<text>.*)$", re.MULTILINE)
# ptxas warning : Value of threads per SM for entry spill is out of range. .minnctapersm will be ignored
_WARNING = re.compile(r"^ptxas (?:[^:\n]*; )?warning\s*: (.*)$", re.MULTILINE)
# ptxas fatal   : Value 'sm_37' is not defined for option 'gpu-name'
_FATAL = re.compile(r"^ptxas fatal\s*: (.*)$", re.MULTILINE)
# .visible .entry fc_ssm_recurrence(
_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|weak|extern)\s+)*\.entry\s+([\w$%]+)", re.MULTILINE)
_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PtxasInfo:
    """A ptxas on this machine: `release` `11.8`, `version` `11.8.89`, and how it was found."""

    release: str
    version: str
    path: Path
    origin: str

    @property
    def title(self) -> str:
        """`ptxas 11.8.89 (package nvidia-cuda-nvcc-cu11 11.8.89)`."""
        return f"ptxas {self.version} ({self.origin})"


@dataclass(frozen=True, slots=True)
class PtxasReport:
    """What ptxas said of one module. Sizes are bytes; entries keep the order of the PTX.

    It is ptxas' estimate for `target`: the driver of the machine assembles again and has the last word.
    """

    ptxas: PtxasInfo
    target: str
    entries: tuple[Resources, ...]
    global_bytes: int
    constant_banks: dict[int, int]
    warnings: tuple[str, ...]
    seconds: float

    def entry(self, name: str) -> Resources:
        """The resources of one kernel. Raises KeyError."""
        for item in self.entries:
            if item.name == name:
                return item
        raise KeyError(name)


class PtxasError(ProductError):
    """ptxas refused the PTX. `line` is that of the first error in the PTX; `errors` are all of them, (line, text)."""

    def __init__(self, message: str, *, path: str, line: int, errors: tuple[tuple[int, str], ...]) -> None:
        super().__init__(message, path=path, line=line)
        self.errors = errors


@dataclass(slots=True)
class _Places:
    """Paths already seen, so that PATH and CUDA_HOME naming one file give one ptxas."""

    seen: set[Path] = field(default_factory=set)

    def new(self, path: Path) -> bool:
        """True the first time an existing file is named."""
        real = path.resolve()
        if not path.is_file() or real in self.seen:
            return False
        self.seen.add(real)
        return True


def find_ptxas() -> list[PtxasInfo]:
    """Every ptxas that runs: PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda-11.*, the nvidia-cuda-nvcc-cu11 wheel."""
    places = _Places()
    return [info for origin, path in _candidates() if places.new(path) and (info := _ask(path, origin)) is not None]


def select_ptxas(target: str, ptx_isa: tuple[int, int] | None = None) -> PtxasInfo:
    """The first ptxas that can assemble `ptx_isa` for `target`. Raises ToolchainError when there is none."""
    found = find_ptxas()
    for info in found:
        if cannot_target(info.release, target) is None and (ptx_isa is None or ptx_isa_of(info.release) >= ptx_isa):
            return info
    wanted = f"ptxas for {target}" + (f" that reads PTX {ptx_isa[0]}.{ptx_isa[1]}" if ptx_isa else "")
    if found:
        listing = ", ".join(f"{info.title} at {info.path}" for info in found)
        raise ToolchainError(f"no {wanted}; found {listing}", hint=_INSTALL)
    raise ToolchainError(
        f"no {wanted}; looked in PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda-11.* and the package {_WHEEL}",
        hint=_INSTALL,
    )


def assemble(
    ptx: str,
    target: str,
    *,
    ptxas: PtxasInfo | None = None,
    name: str = "kernel.ptx",
    flags: tuple[str, ...] = (),
    timeout_s: float = 300.0,
) -> PtxasReport:
    """Assemble `ptx` for `target` (`sm_37`) and report each kernel's resources; the machine code is thrown away.

    `name` is what errors call the PTX. Raises PtxasError when ptxas refuses the PTX, and ToolchainError when there is
    no fitting ptxas, when it is killed or out of time, or when its report does not speak of every kernel.
    """
    version = _VERSION.search(ptx)
    info = ptxas or select_ptxas(target, (int(version[1]), int(version[2])) if version else None)
    with tempfile.TemporaryDirectory(prefix="ssmtool-ptxas-") as folder:
        Path(folder, "in.ptx").write_text(ptx, encoding="utf-8")
        finished = run_tool(
            [info.path, "-v", f"--gpu-name={target}", *flags, "in.ptx", "-o", "out.cubin"],
            name=info.title,
            timeout_s=timeout_s,
            cwd=Path(folder),
            env={**os.environ, "LC_ALL": "C"},
        )
    said = finished.stdout + finished.stderr
    if finished.code != 0:
        raise _refusal(said, info, name)
    parsed = parse_report(said)
    order = _ENTRY.findall(ptx)
    by_name = {item.name: item for item in parsed.entries}
    missing = [entry for entry in order if entry not in by_name]
    if missing or (parsed.unread and not parsed.entries):
        what = f"nothing of {', '.join(missing[:3])}" if missing else "nothing that is understood"
        raise ToolchainError(f"{info.title} took the PTX but its report says {what}: {said.strip()[:200]!r}", path=name)
    return PtxasReport(
        ptxas=info,
        target=target,
        entries=tuple(by_name[entry] for entry in dict.fromkeys(order)),
        global_bytes=parsed.global_bytes,
        constant_banks=parsed.constant_banks,
        warnings=tuple(_WARNING.findall(said)),
        seconds=finished.seconds,
    )


def _refusal(said: str, info: PtxasInfo, name: str) -> PtxasError | ToolchainError:
    """The error of a ptxas that ended with a failure: the PTX's fault when it names a line of it."""
    errors = tuple((int(match["line"]), match["text"].strip()) for match in _ERROR.finditer(said))
    if not errors:
        fatal = _FATAL.search(said)
        return ToolchainError(
            f"{info.title} failed: {fatal[1] if fatal else said.strip()[:200] or 'no reason given'}", path=info.path
        )
    line, text = min(errors, key=lambda error: error[0])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return PtxasError(f"{text}{more}, says {info.title}", path=name, line=line, errors=errors)


def _candidates() -> Iterator[tuple[str, Path]]:
    """(origin, path) of each place for ptxas; the path need not exist."""
    on_path = shutil.which("ptxas")
    if on_path:
        yield "PATH", Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield variable, Path(folder) / "bin" / "ptxas"
    for path in sorted(Path("/usr/local").glob("cuda-11.*/bin/ptxas")):
        yield f"/usr/local/{path.parts[-3]}", path
    try:
        distribution = metadata.distribution(_WHEEL)
    except metadata.PackageNotFoundError:
        return
    yield f"package {_WHEEL} {distribution.version}", Path(str(distribution.locate_file("nvidia/cuda_nvcc/bin/ptxas")))


def _ask(path: Path, origin: str) -> PtxasInfo | None:
    """What `ptxas --version` says; None when it does not run or names no release."""
    version = _version_of(path)
    return PtxasInfo(version[0], version[1], path, origin) if version else None


@functools.cache
def _version_of(path: Path) -> tuple[str, str] | None:
    """(release, version), asked once a process: a build may assemble many modules."""
    try:
        finished = run_tool([path, "--version"], name="ptxas --version", timeout_s=30)
    except ToolchainError:
        return None
    match = _RELEASE.search(finished.stdout)
    return (match[1], match[2]) if match and finished.code == 0 else None
