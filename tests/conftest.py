"""Fixtures that every room's tests share."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import settings

# A shell starts `make test &` with SIGINT ignored, and nohup SIGHUP; children inherit that, and then tests of Ctrl-C
# would interrupt nothing.
for _signal, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)

ROOT = Path(__file__).parent.parent

# Timings live in benchmarks: a slow or busy machine must not fail a property test. The seed is fixed so that a red run
# is red again.
settings.register_profile("ssmtool", deadline=None, derandomize=True)
settings.load_profile("ssmtool")


@dataclass(frozen=True)
class Ran:
    """One run of the command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.out)
        return data


Run = Callable[..., Ran]


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compiled kernels of the whole run, of all its processes, in a folder of their own and never the user's.

    Compiling the product's kernels again in every room took a minute. Tests of the cache itself have their own.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    folder.mkdir(exist_ok=True)
    patch = pytest.MonkeyPatch()
    patch.setenv("SSMTOOL_CACHE_DIR", str(folder))
    yield folder
    patch.undo()


@pytest.fixture
def whole_product(tmp_path: Path) -> Path:
    """A copy of the product in a folder of its own: sources, loader, generated header, settings."""
    folder = tmp_path / "product"
    folder.mkdir()
    for name in ("kernels", "generated"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def product(whole_product: Path) -> Path:
    """The same with its first module alone: the 15 kernels, one source, one constant, one loader."""
    from ssmtool.header import read_header, render_header

    header = whole_product / "generated" / "fc_cuda_ptx.h"
    header.write_bytes(render_header(header.name, read_header(header).modules[:1]))
    settings = whole_product / "pyproject.toml"
    text = settings.read_text("utf-8")
    first, second = text.index("# Faster kernels with the same bits"), text.index("# What the model uses")
    third, fourth = text.index("# Of the fast kernels."), text.index("[tool.ruff]")
    settings.write_text(text[:first] + text[second:third] + text[fourth:], "utf-8")
    (whole_product / "kernels" / "ssm_gated_delta_fast.cu").unlink()
    baseline = whole_product / "generated" / "audit-baseline.json"
    accepted = json.loads(baseline.read_text("utf-8"))
    accepted["kernels"] = {
        name: kernel
        for name, kernel in accepted["kernels"].items()
        if name in read_header(header).modules[0].entry_names
    }
    baseline.write_text(json.dumps(accepted), "utf-8")
    return whole_product


@pytest.fixture
def run() -> Run:
    """Run `ssmtool -C FOLDER ARGS...` in this process; an exception other than an exit is a failure of the test."""
    from ssmtool.cli import main

    def call(folder: Path, *arguments: str) -> Ran:
        result = CliRunner().invoke(main, ["-C", str(folder), *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return call


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` with its bytes: equal snapshots mean that nothing was touched, added or left behind."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
