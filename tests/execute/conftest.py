"""What all tests of the executor share."""

from __future__ import annotations

from pathlib import Path

import pytest
from execute import handmade


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of compiled kernels of its own for every test, never the user's."""
    monkeypatch.setenv("SSMTOOL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "execute"


@pytest.fixture
def lowering(monkeypatch: pytest.MonkeyPatch) -> handmade.Lowering:
    """Kernels written by hand instead of lowered ones."""
    return handmade.install(monkeypatch)
