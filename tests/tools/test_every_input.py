"""The comparison of the units on all inputs: counts what differs, and never takes the executor for a card."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from conftest import ROOT

RECORDED = json.loads((ROOT / "docs/results/units-nvidia-h200-2026-11-30.json").read_text())


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with blocks of 4096 inputs."""
    spec = importlib.util.spec_from_file_location("every_input", ROOT / "tools/numerics/every_input.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "BLOCK", 1 << 12)
    return module


def test_the_executor_agrees_with_itself_and_the_file_calls_that_no_evidence(tool: ModuleType, tmp_path: Path) -> None:
    assert tool.main(str(tmp_path / "units.json"), "cpu", str(1 << 17)) == 0
    found = json.loads((tmp_path / "units.json").read_text())
    assert found["every_input"] is False
    assert "no evidence" in found["evidence"]
    assert list(found["forms"]) == list(RECORDED["forms"])
    assert {form["inputs"] for form in found["forms"].values()} == {8 << 12}


def test_a_bit_that_differs_is_counted_with_its_input(tool: ModuleType) -> None:
    class Card:
        def launch(self, entry: str, grid: int, block: int, args: list[Any]) -> None:
            got, first = args
            x = np.arange(first, first + got.size, dtype=np.uint32)
            got[:] = tool.model("ex2.approx.ftz.f32")(x)
            if first == 4 << 29:
                got[7] ^= 1

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        tally = tool.compare("ex2.approx.ftz.f32", 0, Card(), 1 << 17, pool)
    assert tally.different == 1
    assert tally.examples[0][0] == f"0x{(4 << 29) + 7:08x}"


def test_what_is_recorded_is_every_input_of_every_form_on_a_card() -> None:
    assert RECORDED["every_input"] is True
    assert RECORDED["evidence"] == "answers of a card"
    assert all((form["inputs"], form["different"]) == (1 << 32, 0) for form in RECORDED["forms"].values())
    assert len(RECORDED["forms"]) == 14
