"""Cases, each made once per process."""

from __future__ import annotations

import functools

from ssmtool.golden.case import GoldenCase
from ssmtool.golden.cases import all_makers

NAMES = list(all_makers())


@functools.cache
def case(name: str) -> GoldenCase:
    return all_makers()[name]()
