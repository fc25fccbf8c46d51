"""The embedded compiler: NVRTC, loaded in a child process."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ssmtool.settings_form import table
from ssmtool.toolchain.diagnostics import compile_error, tidy
from ssmtool.toolchain.model import (
    CompileRequest,
    CompileResult,
    CompilerInfo,
    ToolchainError,
    no_such_target,
    virtual_architecture,
)
from ssmtool.toolchain.names import from_root, relative_files, shared_flags
from ssmtool.toolchain.process import run_tool

HEADERS = Path(__file__).parent / "nvrtc_headers"
_CHILD = Path(__file__).parent / "nvrtc_child.py"
_INSTALL = "ssmtool toolchain install"
# nvrtcResult: 3 invalid input, 5 invalid option and 6 compilation are the source's or the settings' fault.
_INVALID_OPTION, _COMPILATION = 5, 6


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """NVRTC at `info.path`; `builtins` is its companion library.

    NVRTC opens the companion by a plain name (`libnvrtc-builtins.so.11.4`) that wheels may have mangled, so both are
    reached through a folder of links under their plain names.
    """

    info: CompilerInfo
    builtins: Path

    @property
    def environment(self) -> str | None:
        """None: NVRTC takes no flags from the environment."""
        return None

    def compile(self, request: CompileRequest) -> CompileResult:
        """Compile to PTX. Raises CompileError or ToolchainError."""
        name = from_root(request.root, request.source)
        with _plain_names(self.info, self.builtins) as (folder, library):
            paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
            environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(paths)}
            message = {
                "library": str(library),
                "name": name,
                "source": request.text,
                "headers": _headers(request),
                "options": [
                    f"--gpu-architecture={virtual_architecture(request.target)}",
                    *shared_flags(request),
                ],
            }
            finished = run_tool(
                [sys.executable, "-I", _CHILD],
                name=self.info.title,
                timeout_s=request.timeout_s,
                cwd=request.root,
                env=environment,
                stdin=json.dumps(message),
                hint=f"{_INSTALL}, which checks the library and mends it",
                blame=self.info.path,
            )
        try:
            answer = json.loads(finished.stdout)
        except ValueError:
            words = finished.stderr.strip().splitlines() or ["it said nothing"]
            raise ToolchainError(
                f"{self.info.title} gave no answer (exit code {finished.code}): {words[-1]}",
                path=self.info.path,
                hint=_INSTALL,
            ) from None
        if "load_error" in answer:
            raise ToolchainError(f"NVRTC cannot be loaded: {answer['load_error']}", path=self.info.path, hint=_INSTALL)
        if answer["result"] != 0:
            if "gpu-architecture" in answer["log"] and answer["result"] == _INVALID_OPTION:
                raise no_such_target(self.info, request.target, answer["targets"])
            self._refuse(answer["result"], answer["error"], answer["log"], request, name)
        release = "{}.{}".format(*answer["version"])
        if release != self.info.release:
            raise ToolchainError(
                f"says it is NVRTC {release}, not {self.info.release}", path=self.info.path, hint=_INSTALL
            )
        return CompileResult(
            relative_files(answer["ptx"], request.root),
            tidy(answer["log"], request.root),
            finished.seconds,
            self.info,
            flags=request.flags,
        )

    def _refuse(self, result: int, error: str, log: str, request: CompileRequest, name: str) -> None:
        """Raise the error that belongs to an nvrtcResult other than success."""
        if result == _INVALID_OPTION:
            raise ToolchainError(
                f"{self.info.title} does not take these flags: {shlex.join(request.flags)}: {log.strip() or error}",
                hint=f"correct flags in {table()}; they are given to nvcc and NVRTC alike",
            )
        if result != _COMPILATION:
            raise ToolchainError(
                f"{self.info.title}: {error} {log.strip()}".rstrip(), path=self.info.path, hint=_INSTALL
            )
        raise compile_error(log, info=self.info, source=name, root=request.root)


def _headers(request: CompileRequest) -> dict[str, str]:
    """Our stand-ins for the system headers that NVRTC lacks, less those the project has files of its own for."""
    folders = (request.source.parent, *request.include_dirs)
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(HEADERS.iterdir())
        if not any((folder / path.name).is_file() for folder in folders)
    }


@contextmanager
def _plain_names(info: CompilerInfo, builtins: Path) -> Iterator[tuple[Path, Path]]:
    """A folder in which both libraries have their plain names, and the path of NVRTC in it."""
    plain = f"libnvrtc-builtins.so.{info.release}"
    if builtins.name == plain and builtins.parent == info.path.parent:
        yield builtins.parent, info.path
        return
    with tempfile.TemporaryDirectory(prefix="ssmtool-nvrtc-") as name:
        folder = Path(name)
        library = folder / f"libnvrtc.so.{info.release}"
        library.symlink_to(info.path.resolve())
        (folder / plain).symlink_to(builtins.resolve())
        yield folder, library
