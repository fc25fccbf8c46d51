"""The cases as they lie in golden/: making all of them takes each process seconds, and test_make.py makes each once."""

from __future__ import annotations

import functools

from conftest import ROOT
from ssmtool.golden.case import GoldenCase
from ssmtool.golden.cases import all_makers
from ssmtool.golden.format import read_case
from ssmtool.golden.make import path_of

NAMES = list(all_makers())


@functools.cache
def case(name: str) -> GoldenCase:
    return read_case(path_of(ROOT / "golden", name))
