"""Words of `--device` and `--require`, and the resource that a worker must have for them."""

from __future__ import annotations

import pytest

from ssmtool.cluster.resources import choose
from ssmtool.errors import SsmtoolError


@pytest.mark.parametrize(
    ("device", "require", "there", "chosen"),
    [
        (None, None, {"CPU"}, [("cpu", "CPU")]),
        (None, None, set(), [("cpu", "CPU")]),
        (None, None, {"CPU", "GPU"}, [("cuda", "GPU")]),
        (None, "sm_37", {"CPU"}, [("cuda", "sm_37")]),
        ("cpu", None, {"GPU"}, [("cpu", "CPU")]),
        ("pycuda", "sm_37", set(), [("pycuda", "sm_37")]),
        ("cpu, cuda", None, {"CPU"}, [("cpu", "CPU"), ("cuda", "GPU")]),
        ("all", None, {"CPU"}, [("cpu", "CPU")]),
        ("all", None, {"CPU", "GPU"}, [("cpu", "CPU"), ("cuda", "GPU")]),
        ("all", "sm_37", {"CPU"}, [("cpu", "CPU"), ("cuda", "sm_37")]),
    ],
)
def test_the_resource(device: str | None, require: str | None, there: set[str], chosen: list[tuple[str, str]]) -> None:
    assert [(each.word, each.resource) for each in choose(device, require, there)] == chosen


@pytest.mark.parametrize(
    ("device", "require", "message"),
    [
        ("cuda:1", None, "no numbers"),
        ("cpu,cpu", None, "named twice"),
        ("cuda,ctypes", None, "one library"),
        ("cpu", "sm_37", "needs a card"),
        ("cuda", "37", "such as sm_37"),
        ("gpu", None, "expected cpu"),
        ("", None, "of nothing"),
    ],
)
def test_words_that_mean_nothing(device: str, require: str | None, message: str) -> None:
    with pytest.raises(SsmtoolError, match=message):
        choose(device, require, {"CPU", "GPU"})
