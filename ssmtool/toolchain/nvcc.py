"""nvcc, run as a child process from the project's folder."""

from __future__ import annotations

import os
import re
import tempfile
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
from ssmtool.toolchain.nvcc_environment import environment_flags
from ssmtool.toolchain.process import run_tool

# nvcc fatal   : Value 'compute_999' is not defined for option 'gpu-architecture'
# nvcc fatal   : Unsupported gpu architecture 'compute_37'
_NO_TARGET = re.compile(r"(?:Value|Unsupported gpu architecture) 'compute_\w+'")


@dataclass(frozen=True, slots=True)
class Nvcc:
    """nvcc at `info.path`. It reads the source from disk, so `text` must be what the file holds."""

    info: CompilerInfo

    @property
    def environment(self) -> str | None:
        """What NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS add, or None. Raises ToolchainError."""
        return environment_flags().told

    def compile(self, request: CompileRequest) -> CompileResult:
        """Compile to PTX. Raises CompileError or ToolchainError."""
        source = from_root(request.root, request.source)
        added = environment_flags()
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
        return CompileResult(
            relative_files(ptx, request.root),
            tidy(said, request.root),
            finished.seconds,
            self.info,
            flags=(*added.prepend, *request.flags, *added.append),
            note=f"host compiler {added.host_compiler}" if added.host_compiler else None,
        )

    def _refuse(self, said: str, request: CompileRequest, source: str) -> None:
        """Raise what a non-zero exit of nvcc means: nvcc and its parts that fail, or a source that is wrong."""
        # nvcc fatal   : Unknown option '--frobnicate'
        # nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)
        # sh: 1: cicc: not found
        for line in said.splitlines():
            if line.startswith("nvcc fatal") and _NO_TARGET.search(line):
                raise no_such_target(self.info, request.target, self._targets(request.timeout_s))
            if line.startswith(("nvcc fatal", "nvcc error")) or line.endswith((": not found", ": Permission denied")):
                told = self.environment
                raise ToolchainError(
                    f"{self.info.title} failed: {line.strip()}",
                    path=self.info.path,
                    hint=f"look at flags in {table()}; in the environment, {told}" if told else None,
                )
            # host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not ...
            if "#error -- unsupported" in line:
                raise ToolchainError(
                    f"{self.info.title} refuses the host compiler: {line.split('-- ')[-1].split('! The nvcc')[0]}",
                    path=self.info.path,
                    hint="NVCC_PREPEND_FLAGS='-ccbin clang-14' ssmtool build, or any host compiler this nvcc supports",
                )
        raise compile_error(said, info=self.info, source=source, root=request.root)

    def _targets(self, timeout_s: float) -> list[int]:
        """The architectures that `nvcc --list-gpu-arch` names (11.0 and newer; none from an older one)."""
        finished = run_tool([self.info.path, "--list-gpu-arch"], name=self.info.title, timeout_s=timeout_s)
        return [int(number) for number in re.findall(r"^compute_(\d+)$", finished.stdout, re.MULTILINE)]
