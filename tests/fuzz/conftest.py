"""What the tests of fuzzing share: the product's PTX, right and with one thing wrong, and runs of a few rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssmtool.audit.inputs import read_input
from ssmtool.device.cpu import CpuDevice
from ssmtool.fuzz import Fuzzed, Limits, Plan, Subject, close, fuzz
from ssmtool.verify import Loaded, Text

ROOT = Path(__file__).parent.parent.parent
# One small size: each is a compilation.
SIZES = (2,)


@pytest.fixture(scope="session")
def text() -> Text:
    """The PTX of the 15 kernels."""
    found = read_input(str(ROOT / "generated" / "fc_cuda_ptx.h"))[0]
    return Text(found.module, found.parameters)


@pytest.fixture(scope="session")
def loaded(text: Text) -> Loaded:
    """The right kernels on the CPU."""
    return Loaded(CpuDevice(), [text], check="all")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No device is left open."""
    yield
    close()


Edited = Callable[..., str]


@pytest.fixture(scope="session")
def edited(text: Text) -> Edited:
    """The PTX with the `number`-th occurrence of `old` in one kernel replaced."""

    def make(entry: str, old: str, new: str, number: int = 0) -> str:
        whole = text.module.text
        start = whole.index(f".entry {entry}(")
        end = whole.find(".visible .entry", start)
        body = whole[start : end if end > 0 else len(whole)]
        pieces = body.split(old)
        assert len(pieces) > number + 1, f"{entry} has {len(pieces) - 1} {old!r}"
        changed = old.join(pieces[: number + 1]) + new + old.join(pieces[number + 1 :])
        return whole.replace(body, changed)

    return make


def fuzzed(ptx: str | Text, *targets: str, rounds: int = 20, seed: int = 1, **options: object) -> Fuzzed:
    """Rounds of some targets on the CPU, state size 2."""
    whole = ptx if isinstance(ptx, str) else ptx.module.text
    subject = Subject(((whole, {}),), sizes=SIZES, check=str(options.pop("check", "all")))  # type: ignore[arg-type]
    limits = Limits(tries=120, seconds=60, data_tries=80, data_seconds=60)
    return fuzz(Plan(subject, targets, seed, rounds=rounds, limits=limits, **options))  # type: ignore[arg-type]
