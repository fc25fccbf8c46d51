"""Words such as `cuda:0`, and what is said when there is no such device."""

from __future__ import annotations

from pathlib import Path

import pytest
from device.fake import FakeDriver

from ssmtool.device import DeviceError, NoDeviceError, list_devices, open_devices


@pytest.mark.parametrize(("words", "names"), [
    ("cpu", ["cpu"]), ("cuda", ["cuda:0", "cuda:1"]), ("ctypes:1", ["ctypes:1"]), ("all", ["cpu", "cuda:0", "cuda:1"]),
    ("cpu, cuda:0", ["cpu", "cuda:0"]),
])  # fmt: skip
def test_words_mean_devices_and_both_dies_of_a_k80_are_used(fake: FakeDriver, words: str, names: list[str]) -> None:
    with open_devices(words) as devices:
        assert [device.name for device in devices] == names
        assert [device.real for device in devices] == [name != "cpu" for name in names]
    assert fake.left()[0] == 0


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(("words", "said"), [
    ("gpu", "--device gpu: expected cpu, cuda"), ("", "of nothing"), ("cpu:1", "--device cpu:1"), ("cuda:x", "cuda:x"),
    ("cpu,cpu", "named twice"), ("cuda:7", "there is no device 7; there is: cuda:0 Fake K80; cuda:1 Fake K80"),
])  # fmt: skip
def test_words_that_mean_nothing_are_refused_and_nothing_falls_back_to_the_cpu(words: str, said: str) -> None:
    with pytest.raises(DeviceError) as caught:
        open_devices(words)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_required_card_that_is_not_there_fails_and_names_what_is(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA_CAPABILITY", "90")
    with pytest.raises(NoDeviceError, match=r"no card is sm_37; there is: cuda:0 \(Fake K80, sm_90, driver of CUDA"):
        open_devices("cuda", require="sm_37")
    assert fake.left()[0] == 0


@pytest.mark.usefixtures("fake")
def test_the_executor_is_never_the_required_card() -> None:
    with pytest.raises(NoDeviceError, match="names the executor alone"):
        open_devices("cpu", require="sm_37")
    with pytest.raises(DeviceError, match="such as sm_37"):
        open_devices("cpu", require="K80")
    with open_devices("all", require="sm_37") as devices:
        assert len(devices) == 3


def test_no_driver_is_said_and_all_does_not_become_the_cpu_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ssmtool.device.libcuda.LIBRARIES", (str(tmp_path / "libcuda.so.1"),))
    monkeypatch.setattr("ssmtool.device.select._has_cuda_python", lambda: False)
    for words in ("cuda", "all", "ctypes:0"):
        with pytest.raises(NoDeviceError, match="no CUDA driver on this machine"):
            open_devices(words)
    assert list_devices()[1].startswith("no card: no CUDA driver")


@pytest.mark.usefixtures("fake")
def test_a_driver_that_does_not_start_is_told_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cuInit=802")
    with pytest.raises(NoDeviceError, match=r"system not yet initialized.*fabric manager") as caught:
        open_devices("cuda")
    assert caught.value.code == 802


@pytest.mark.usefixtures("fake")
def test_a_driver_that_sees_no_card_is_no_empty_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_DEVICES", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(NoDeviceError) as caught:
        open_devices("cuda")
    assert "CUDA_VISIBLE_DEVICES" in str(caught.value) or "plugged in" in str(caught.value)


@pytest.mark.usefixtures("fake")
def test_pycuda_is_asked_for_by_name_and_its_absence_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pycuda", None)
    with pytest.raises(NoDeviceError, match="pycuda") as caught:
        open_devices("pycuda")
    assert "CUDA_ROOT" in (caught.value.hint or "")
