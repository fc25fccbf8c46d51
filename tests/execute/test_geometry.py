"""Special registers by the shape of a block."""

from __future__ import annotations

import pytest

from ssmtool.execute.program.geometry import Geometry


@pytest.mark.parametrize(
    ("block", "lanes", "wanted"),
    [
        ((64, 1, 1), 32, (1, 0, 0)),
        ((32, 4, 2), 32, (1, 0, 0)),
        ((16, 4, 1), 32, (None, None, 0)),
        ((40, 1, 1), 32, (1, 0, 0)),
        ((40, 2, 1), 32, (None, None, 0)),
        ((1, 64, 1), 32, (0, None, 0)),
        ((8, 8, 4), 32, (None, None, 0)),
        ((64, 2, 1), 128, (None, None, 0)),
        ((128, 1, 1), 128, (1, 0, 0)),
    ],
)
def test_thread_numbers_by_the_block_s_shape(
    block: tuple[int, int, int], lanes: int, wanted: tuple[int | None, ...]
) -> None:
    geometry = Geometry(block, lanes)
    assert tuple(geometry.special(f"%tid.{axis}") for axis in "xyz") == wanted
