"""The same launches on several devices: equal, one bit off, failed, lost."""

from __future__ import annotations

import numpy as np
import pytest
from device.fake import SCALE, FakeDriver

from ssmtool.device import Launch, compare_devices, open_devices
from ssmtool.device.compare import copied, difference

NAMES = {"scale": ("y", "x", "a", "n")}


def launch(size: int = 100, **changes: object) -> Launch:
    args = {"y": np.zeros(size, np.float32), "x": np.arange(size, dtype=np.float32), "a": 2.5, "n": size}
    return Launch("scale", 4, 32, {**args, **changes})


def test_equal_bits_on_the_executor_and_both_dies(fake: FakeDriver) -> None:
    chosen = [launch(), launch(7)]
    with open_devices("cpu,ctypes") as devices:
        found = compare_devices(SCALE, chosen, devices, parameters=NAMES)
    assert [each.equal for each in found] == [True, True]
    assert set(found[0].outputs) == {"ctypes:0", "ctypes:1"}
    y, x = found[0].outputs["ctypes:0"]
    assert (y.buffer, y.elements, y.evidence, x.buffer) == ("y", 100, "exact", "x")
    assert found[0].written == {"y"}
    assert not chosen[0].args["y"].any()  # type: ignore[call-overload]
    assert fake.left() == (0, 0, 0)


def test_one_bit_is_a_difference_with_its_place_and_kind(fake: FakeDriver) -> None:
    fake.flips = [(0, 4 * 17)]
    with open_devices("cpu,ctypes:0") as devices:
        (found,) = compare_devices(SCALE, [launch()], devices, parameters=NAMES)
    ((device, output),) = found.differences
    assert (device, output.buffer, found.equal) == ("ctypes:0", "y", False)
    told = output.difference
    assert told is not None
    assert (told.count, told.first, told.expected, told.got) == (1, (17,), 0x422A0000, 0x422A0001)
    assert told.cause == "1 x 1 ulp"


def test_a_lost_die_fails_its_launches_and_the_other_goes_on(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fake.path
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cuCtxSynchronize=719@1")
    with open_devices("cpu,ctypes") as devices:
        found = compare_devices(SCALE, [launch(), launch()], devices, parameters=NAMES)
    for each in found:
        assert list(each.failures) == ["ctypes:1"]
        assert list(each.outputs) == ["ctypes:0"]
        assert not each.equal
    assert "out of use" in str(found[1].failures["ctypes:1"])


@pytest.mark.usefixtures("fake")
def test_ptx_that_one_device_refuses_fails_there_alone() -> None:
    with open_devices("cpu,ctypes:0") as devices:
        (found,) = compare_devices(SCALE.replace("7.4", "7.8"), [launch()], devices, parameters=NAMES)
    assert "error 222" in str(found.failures["ctypes:0"])
    assert not found.equal


@pytest.mark.usefixtures("fake")
def test_a_kernel_that_leaves_its_buffers_is_caught_by_the_executor() -> None:
    with open_devices("cpu,ctypes:0") as devices:
        (found,) = compare_devices(SCALE, [launch(n=120)], devices, parameters=NAMES)
    assert "past the end of" in str(found.failures["cpu"])


def test_copies_keep_what_is_shared_and_what_is_read_only() -> None:
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    whole_again, row, other = copied([whole, whole[1], np.ones(2)])
    row[0] = 99
    assert whole_again[1, 0] == 99 and whole[1, 0] == 4
    assert (other == 1).all()
    fixed = np.ones(3)
    fixed.flags.writeable = False
    assert not copied({"x": fixed})["x"].flags.writeable


def test_nan_payloads_and_zeros_signs_are_bits_too() -> None:
    a = np.array([0.0, 1.0], np.float32)
    assert difference(a, a.copy()) is None
    found = difference(a, np.array([-0.0, 1.0], np.float32))
    assert found is not None and found.cause == "1 x zero's sign"
