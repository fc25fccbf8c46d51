"""docs/coverage.md is what the tests' lists give, and what it calls refused is refused."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from execute.small import kernel

from conftest import ROOT
from ssmtool.errors import SsmtoolError
from ssmtool.execute.layout import Mode
from ssmtool.execute.lower import lower
from ssmtool.ptx import parse


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_page", ROOT / "tools/coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COVERAGE = tool()


def test_the_page_is_what_the_lists_give() -> None:
    assert (ROOT / "docs/coverage.md").read_text() == COVERAGE.page(), "run tools/coverage.py"


@pytest.mark.parametrize("name", [info.name for info in COVERAGE.unknown()])
def test_an_instruction_that_the_page_calls_refused_is(name: str) -> None:
    for operands in ("%r1, %r2;", "%r1, [%rd0];", "%r1, %r2, %r3;", "[%rd0], %r1;", "[%rd0], [%rd1], 16;", ";"):
        with pytest.raises(SsmtoolError):
            lower(parse(kernel(f"{name}.b32 {operands}")), "k", (32, 1, 1), Mode())
