"""nvcc, run as a child process from the project's folder."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ssmtool.toolchain.diagnostics import compile_error, tidy
from ssmtool.toolchain.model import (
    CompileRequest,
    CompileResult,
    CompilerInfo,
    ToolchainError,
    virtual_architecture,
)
from ssmtool.toolchain.names import from_root, relative_files, shared_flags
from ssmtool.toolchain.process import run_tool


@dataclass(frozen=True, slots=True)
class Nvcc:
    """nvcc at `info.path`. It reads the source from disk, so `text` must be what the file holds."""

    info: CompilerInfo

    def compile(self, request: CompileRequest) -> CompileResult:
        """Compile to PTX. Raises CompileError or ToolchainError."""
        source = from_root(request.root, request.source)
        with tempfile.TemporaryDirectory(prefix="ssmtool-nvcc-") as name:
            output = Path(name) / f"{request.source.stem}.ptx"
            finished = run_tool(
                [
                    self.info.path,
                    "-ptx",
                    f"-arch={virtual_architecture(request.target)}",
                    "-Wno-deprecated-gpu-targets",
                    *shared_flags(request),
                    "-o",
                    output,
                    source,
                ],
                name=self.info.title,
                timeout_s=request.timeout_s,
                cwd=request.root,
                env={**os.environ, "LC_ALL": "C"},
            )
            said = finished.stdout + finished.stderr
            if finished.code != 0:
                self._refuse(said, request, source)
            try:
                ptx = output.read_text(encoding="utf-8")
            except OSError as error:
                raise ToolchainError(
                    f"{self.info.title} left no PTX: {error.strerror or error}", path=self.info.path
                ) from None
        return CompileResult(relative_files(ptx, request.root), tidy(said, request.root), finished.seconds, self.info)

    def _refuse(self, said: str, request: CompileRequest, source: str) -> None:
        """Raise what a non-zero exit of nvcc means: nvcc and its parts that fail, or a source that is wrong."""
        # nvcc fatal   : Unknown option '--frobnicate'
        # nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)
        # sh: 1: cicc: not found
        for line in said.splitlines():
            if line.startswith(("nvcc fatal", "nvcc error")) or line.endswith((": not found", ": Permission denied")):
                raise ToolchainError(f"{self.info.title} failed: {line.strip()}", path=self.info.path)
            # host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not ...
            if "#error -- unsupported" in line:
                raise ToolchainError(
                    f"{self.info.title} refuses the host compiler: {line.split('-- ')[-1].split('! The nvcc')[0]}",
                    path=self.info.path,
                    hint="NVCC_PREPEND_FLAGS='-ccbin clang-14' ssmtool build, or any host compiler this nvcc supports",
                )
        raise compile_error(said, info=self.info, source=source, root=request.root)
