"""Compiles kernels/fc_cuda.c with a small host program and a test driver library, and runs them as processes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KERNELS = ROOT / "kernels"
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

# The contract's kernels in order, with their parameters' types: pointer, int, float. Written out here, not read from
# fc_cuda.h, so that the header has something to be wrong against.
CONTRACT = {
    "fc_ssm_recurrence": "pppppppif",
    "fc_ssm_conv1d_silu": "ppppii",
    "fc_ssm_gated_norm": "ppppif",
    "fc_sigmoid": "pi",
    "fc_ssm_decay_gate": "ppppi",
    "fc_ssm_qknorm_gqa": "pppiiiif",
    "fc_ssm_conv1d_silu_seq": "ppppiiip",
    "fc_ssm_recurrence_seq": "pppppppiiifp",
    "fc_ssm_recurrence_seq_unroll128": "pppppppiiifp",
    "fc_ssm_recurrence_seq_warp": "pppppppiiifp",
    "fc_ssm_conv1d_silu_slots": "ppppii",
    "fc_ssm_recurrence_slots": "pppppppiif",
    "fc_ssm_recurrence_slots_2pass": "pppppppiif",
    "fc_ssm_decay_gate_nx": "ppppii",
    "fc_ssm_qknorm_gqa_nx": "ppppiiiiif",
}

# The fast kernels, a module of their own.
FAST = {
    "fc_ssm_recurrence_slots_warp": "pppppppiif",
    "fc_ssm_recurrence_seq_warp_multi": "pppppppiiifp",
    "fc_ssm_decode_step": "pppppppppppiiiifff",
}

_TYPES = {"p": "u64", "i": "u32", "f": "f32"}


def ptx(kernels: dict[str, str], isa: str = "7.4") -> str:
    """PTX text that declares `kernels` and lets each return at once."""
    lines = [f".version {isa}", ".target sm_37", ".address_size 64", ""]
    for name, types in kernels.items():
        parameters = ",\n".join(f"\t.param .{_TYPES[kind]} {name}_param_{i}" for i, kind in enumerate(types))
        lines += [f".visible .entry {name}(", parameters, ")", "{", "\tret;", "}", ""]
    return "\n".join(lines)


def header(text: str, fast: str | None = None) -> str:
    """A header that carries `text` as the generated one does, and beside it the fast kernels' PTX."""
    return _constant("FC_PTX_SSM_GATED_DELTA", text) + _constant(
        "FC_PTX_SSM_GATED_DELTA_FAST", ptx(FAST) if fast is None else fast
    )


def _constant(name: str, text: str) -> str:
    literal = "\n".join(
        '    "{}"'.format(line.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for line in text.splitlines(keepends=True)
    )
    return f"static const char {name}[] =\n" + (literal or '    ""') + ";\n"


@dataclass
class Result:
    """One run of the host program."""

    code: int
    output: str
    errors: str
    calls: list[str]

    @property
    def status(self) -> int:
        match = re.search(r"^status (\d+)", self.output, re.MULTILINE)
        assert match, (self.output, self.errors)
        return int(match[1])

    @property
    def left(self) -> str:
        """What the driver was still holding when the process ended."""
        return self.calls[-1]

    def names(self, prefix: str) -> list[str]:
        return [call for call in self.calls if call.startswith(prefix)]


@dataclass
class Host:
    """A compiled host program beside its test driver library."""

    program: Path
    driver: Path
    runs: int = field(default=0)

    def run(self, mode: str, *, driver: Path | str | None = None, **environment: str) -> Result:
        """Runs one mode; `driver=""` gives the program no path, so that the loader takes its own."""
        self.runs += 1
        record = self.program.parent / f"{self.program.name}-calls-{self.runs}"
        words = [str(self.program), mode]
        if driver != "":
            words.append(str(driver or self.driver))
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("FC_", "HOST_"))}
        done = subprocess.run(
            words,
            env={**inherited, "LC_ALL": "C", **environment, "FC_TEST_CALLS": str(record)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        calls = record.read_text().splitlines() if record.exists() else []
        assert "STATUS DIFFERS" not in done.stdout, done.stdout
        return Result(done.returncode, done.stdout, done.stderr, calls)


@dataclass(frozen=True)
class Workshop:
    """Compiles into one folder with one compiler."""

    compiler: str
    folder: Path

    ptx = staticmethod(ptx)
    header = staticmethod(header)
    sanitize: ClassVar = SANITIZE
    root: ClassVar = ROOT
    contract: ClassVar = CONTRACT
    fast: ClassVar = FAST

    def cc(self, output: str, sources: Sequence[Path], *flags: str) -> subprocess.CompletedProcess[str]:
        command = [self.compiler, *STRICT, *flags, *map(str, sources), "-o", str(self.folder / output), "-ldl"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def library(self, name: str, *flags: str) -> Path:
        path = self.folder / f"{name}.so"
        if not path.exists():
            done = self.cc(path.name, [HERE / "test_driver.c"], "-shared", "-fPIC", *flags)
            assert done.returncode == 0, done.stderr
        return path

    def compile(
        self, name: str, header_text: str, *flags: str, loader: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The host program `name`, with the loader's own source or another text of it."""
        generated = self.folder / f"{name}.h"
        generated.write_text(header_text)
        source = KERNELS / "fc_cuda.c"
        if loader is not None:
            source = self.folder / f"{name}.c"
            source.write_text(loader)
        define = f'-DFC_CUDA_PTX_HEADER="{generated}"'
        return self.cc(name, [source, HERE / "host.c"], f"-I{KERNELS}", define, *flags)

    def host(self, name: str, header_text: str, *flags: str, loader: str | None = None) -> Host:
        done = self.compile(name, header_text, *flags, loader=loader)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        sanitized = SANITIZE[0] in flags
        return Host(
            self.folder / name, self.library("checked" if sanitized else "plain", *(SANITIZE if sanitized else ()))
        )


@pytest.fixture(scope="session", params=["gcc", "clang"])
def each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A workshop for each of the two compilers the loader promises to be free of warnings under."""
    compiler = str(request.param)
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is absent: not checked that the loader compiles under it without a warning, and runs")
    return Workshop(compiler, tmp_path_factory.mktemp(compiler))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A workshop for what does not depend on the compiler."""
    for compiler in ("gcc", "clang", "cc"):
        if shutil.which(compiler):
            return Workshop(compiler, tmp_path_factory.mktemp("workshop"))
    pytest.skip("no C compiler: the loader was not compiled, and none of its failure paths was checked")


@pytest.fixture
def contract() -> dict[str, str]:
    """The 15 kernels in order, each with its parameters' types; the test's own to change."""
    return dict(CONTRACT)


@pytest.fixture(scope="session")
def host(workshop: Workshop) -> Host:
    """The host program with all 15 kernels in its PTX."""
    return workshop.host("host", header(ptx(CONTRACT)))


@pytest.fixture(scope="session")
def loader_text() -> str:
    return (KERNELS / "fc_cuda.c").read_text()
