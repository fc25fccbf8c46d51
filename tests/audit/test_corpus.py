"""Texts of every compiler the front end is tested with: the audit reads them, and its counts are those of a search."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ssmtool.audit.inputs import read_input
from ssmtool.audit.kernels import analysis_of, audit
from ssmtool.audit.listing import listing
from ssmtool.report.graph import render_graph

TEXTS = sorted((Path(__file__).parents[1] / "ptx" / "corpus").glob("*.ptx"))


def test_there_are_texts_of_several_compilers() -> None:
    assert len({path.name.split("-")[0] for path in TEXTS}) >= 5


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_counts_listing_and_graph(path: Path) -> None:
    inputs = read_input(str(path))
    result = audit(inputs)
    for each in inputs:
        for function in each.module.entries:
            kernel = result.kernel(function.name)
            assert kernel is not None
            direct = [access for access in kernel.path.accesses if not access.generic]
            searched = re.findall(r"^\s*(?:@!?%p\d+\s+)?(?:ld|st)\.(?:volatile\.)?local\.", function.text, re.MULTILINE)
            assert len(direct) == len(searched)
            assert all(access.executed for access in kernel.path.accesses)
            analysis = analysis_of(each, function, [])
            assert [line.text for line in listing(analysis)] == function.text.splitlines()
            ET.fromstring(render_graph(analysis))
