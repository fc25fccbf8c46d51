"""What the tests of verification share: the product's PTX, its vectors, and its source with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ssmtool import ptx
from ssmtool.audit.inputs import read_input
from ssmtool.build.pipeline import compile_project
from ssmtool.device.cpu import CpuDevice
from ssmtool.golden import GoldenCase, read_case
from ssmtool.project import read_project
from ssmtool.toolchain.model import ToolchainError
from ssmtool.verify import Options, Outcome, Text, run

ROOT = Path(__file__).parent.parent.parent

Cases = Callable[..., list[GoldenCase]]
Mutant = Callable[..., str]


@pytest.fixture(scope="session")
def cache_folder(kernel_cache: Path) -> Path:
    """Where compiled kernels are kept."""
    return kernel_cache


@pytest.fixture(scope="session")
def text() -> Text:
    """The PTX of the checked-in header."""
    found = read_input(str(ROOT / "generated" / "fc_cuda_ptx.h"))[0]
    return Text(found.module, found.parameters)


@pytest.fixture(scope="session")
def cases() -> Cases:
    """Cases of the product by name."""
    return lambda *names: [read_case(ROOT / "golden" / f"{name}.npz") for name in names]


@pytest.fixture
def mutant(product: Path) -> Mutant:
    """The PTX of the product's source with one text replaced; the compiler's own run."""

    def make(old: str, new: str, *, count: int = -1) -> str:
        source = product / "kernels" / "ssm_gated_delta.cu"
        before = source.read_text()
        assert old in before, f"the source has no {old!r} any more"
        source.write_text(before.replace(old, new, count))
        project = read_project(product / "pyproject.toml")
        assert project is not None
        try:
            return compile_project(project).modules[0].held.ptx
        except ToolchainError as error:
            pytest.skip(f"the mutant was not made, and so not tried: {error}")

    return make


def verified(
    given: str | Text,
    cases: Sequence[GoldenCase] = (),
    *relations: str,
    options: Options | None = None,
) -> Outcome:
    """Cases and the named relations on the CPU."""
    options = options or Options(names=frozenset(relations), rounds=1)
    return run(given, cases, CpuDevice(), relations=bool(relations), options=options)


def edited(text: Text, entry: str, old: str, new: str, number: int = 0) -> str:
    """The PTX with the `number`-th occurrence of `old` in one kernel replaced."""
    whole = text.module.text
    start = whole.index(f".entry {entry}(")
    end = whole.find(".visible .entry", start)
    body = whole[start : end if end > 0 else len(whole)]
    pieces = body.split(old)
    assert len(pieces) > number + 1, f"{entry} has {len(pieces) - 1} {old!r}"
    changed = old.join(pieces[: number + 1]) + new + old.join(pieces[number + 1 :])
    ptx.parse(whole.replace(body, changed))
    return whole.replace(body, changed)
