from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ssmtool.ptx import Function, Module, parse

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.ptx"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def corpus_file(request: pytest.FixtureRequest) -> Path:
    """Each file of real compiler output in turn."""
    assert isinstance(request.param, Path)
    return request.param


@pytest.fixture
def corpus() -> Callable[[str], Module]:
    """A corpus file by its stem, parsed."""
    return lambda stem: parse((CORPUS / f"{stem}.ptx").read_text(), f"{stem}.ptx")


@pytest.fixture
def kernel() -> Callable[..., Function]:
    """A kernel `k` from the text of its body."""

    def make(body: str, params: str = "", module: str = "") -> Function:
        head = ".version 7.4\n.target sm_37\n.address_size 64\n"
        return parse(f"{head}{module}\n.visible .entry k({params})\n{{\n{body}\n}}\n").functions[-1]

    return make
