"""What wrong arrays look like, against arrays made wrong in a known way."""

from __future__ import annotations

import numpy as np
import pytest

from ssmtool.golden.case import poisoned
from ssmtool.golden.generator import Stream
from ssmtool.verify.patterns import patterns

WANT = Stream("patterns").bell("s", (4, 64, 64))
BEFORE = Stream("patterns").bell("before", (4, 64, 64))
AXES = ("h", "j", "i")


def told(got: np.ndarray) -> str:
    return "; ".join(patterns(got.astype(np.float32), WANT, BEFORE, AXES))


def changed(**where: object) -> np.ndarray:
    got = WANT.copy()
    got[where.get("h", slice(None)), where.get("j", slice(None)), where.get("i", slice(None))] += np.float32(5)
    return got


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (WANT * np.float32(2), "it is 2 times what is expected"),
        (WANT * np.float32(128**0.5), "the square root of 128"),
        (-WANT, "it has the opposite sign"),
        (WANT + np.float32(3), "it is what is expected plus 3"),
        (WANT.swapaxes(1, 2), "j and i are exchanged"),
        (WANT[:, :, ::-1], "i runs backwards"),
        (WANT[[0, 2, 1, 3]], "h=1 holds what belongs to h=2, h=2 holds what belongs to h=1"),
        (np.roll(WANT, 1, axis=1), "j=n holds what belongs to j=n-1"),
        (changed(h=3), "only h=3 (the last)"),
        (changed(j=slice(32, 64)), "only j=32 to 63 (the last 32)"),
        (changed(i=slice(31, None, 32)), "lane 31 (i = 31 of every 32)"),
        (changed(h=[1, 2], j=5), "h=1 to 2, j=5"),
        (np.zeros_like(WANT), "what is wrong is 0"),
        (np.full_like(WANT, np.nan), "what is wrong is NaN"),
        (BEFORE, "as it was before the launch"),
        (poisoned(WANT.shape), "was never written"),
    ],
)
def test_a_pattern_is_recognised(got: np.ndarray, says: str) -> None:
    assert says in told(got)


def test_noise_has_no_pattern_but_a_place() -> None:
    assert told(Stream("noise").bell("x", WANT.shape)) == ""


def test_equal_arrays_have_nothing_to_tell() -> None:
    assert told(WANT) == ""
