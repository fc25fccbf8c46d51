"""In which way bits differ: one pair of each kind."""

from __future__ import annotations

import numpy as np
import pytest

from ssmtool.device.causes import cause_of, classify


@pytest.mark.parametrize(("a", "b", "cause"), [
    (0x7FC00000, 0x7FFFFFFF, "nan payload"), (0x7FC00000, 0x3F800000, "nan against a number"),
    (0x00000000, 0x80000000, "zero's sign"), (0x00000001, 0x00000000, "subnormal flushed"),
    (0x80000000, 0x807FFFFF, "subnormal flushed"), (0x7F800000, 0x7F7FFFFF, "infinity against a number"),
    (0x3F800000, 0xBF800000, "sign"), (0x3F800000, 0x3F800001, "1 ulp"), (0x3F800000, 0x3F800010, "2 to 16 ulp"),
    (0x3F800000, 0x40000000, "more than 16 ulp"),
])  # fmt: skip
def test_each_kind_of_difference_has_its_name(a: int, b: int, cause: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert classify("f32", np.array([x], np.uint32), np.array([y], np.uint32)) == {cause: 1}


def test_integers_have_no_such_kinds_and_counts_are_told() -> None:
    assert cause_of("u32", np.array([1, 2], np.uint32), np.array([2, 1], np.uint32)) == "2 x other bits"
    a, b = np.array([0, 1, 0x3C00], np.uint16), np.array([0x8000, 0, 0x3C01], np.uint16)
    assert cause_of("f16", a, b) == "1 x zero's sign, 1 x subnormal flushed, 1 x 1 ulp"
