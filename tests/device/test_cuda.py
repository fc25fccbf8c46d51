"""A card through real ctypes calls into a driver that computes on the executor, and every way it can fail."""

from __future__ import annotations

import numpy as np
import pytest
from device.fake import SCALE, FakeDriver

from ssmtool.device import DeviceError, LoadError, OutsideWriteError, open_devices
from ssmtool.device.errors import RefusedPtxError
from ssmtool.execute import ArgumentError, LaunchError
from ssmtool.settings_form import table

pytestmark = pytest.mark.usefixtures("fake")


def vectors(size: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(size, np.float32), np.arange(size, dtype=np.float32)


def test_a_launch_changes_the_caller_s_arrays_and_leaves_nothing_behind(fake: FakeDriver) -> None:
    y, x = vectors()
    with open_devices("ctypes:1") as (card,):
        assert str(card) == "ctypes:1 (Fake K80, sm_37, driver of CUDA 11.4, by ctypes)"
        assert (card.properties.dies, card.properties.ptx_isa) == (2, (7, 4))
        module = card.load(SCALE, parameters={"scale": ("y", "x", "a", "n")})
        ran = module.launch("scale", 8, 128, {"y": y, "x": x, "a": 2.5, "n": x.size})
        assert ran.buffers["y"] is y
        assert np.array_equal(y, x * np.float32(2.5))
        module.close()
    assert fake.left() == (0, 0, 0)


def test_overlapping_arrays_are_one_allocation_as_on_the_executor() -> None:
    both = np.arange(64, dtype=np.float32)
    with open_devices("ctypes:0") as (card,):
        card.load(SCALE).launch("scale", 1, 32, [both[:32], both, 2.0, 32])
    assert np.array_equal(both[:32], np.arange(32, dtype=np.float32) * 2)
    assert np.array_equal(both[32:], np.arange(32, 64, dtype=np.float32))


def test_times_start_from_the_same_buffers_and_leave_the_caller_s_alone() -> None:
    x = np.ones(32, np.float32)
    with open_devices("ctypes:0") as (card,):
        assert card.load(SCALE).time("scale", 1, 32, [x, x, 2.0, 32], repeat=3, warmup=1) == (0.0005,) * 3
    assert (x == 1).all()


@pytest.mark.parametrize(("where", "element"), [(0, 32), (5, 33)])
def test_a_store_past_the_end_is_seen_afterwards(fake: FakeDriver, where: int, element: int) -> None:
    y, x = vectors(32)
    fake.outside = where
    with (
        open_devices("ctypes:0") as (card,),
        pytest.raises(OutsideWriteError, match=rf"param_0\[{element}\], past its end"),
    ):
        card.load(SCALE).launch("scale", 1, 32, [y, x, 2.0, 32])
    assert fake.left() == (0, 0, 0)


def test_a_store_into_a_read_only_array_is_seen_afterwards(fake: FakeDriver) -> None:
    y, x = vectors(32)
    x.flags.writeable = False
    fake.flips = [(1, 0)]
    with open_devices("ctypes:0") as (card,), pytest.raises(OutsideWriteError, match="param_1, which is read-only"):
        card.load(SCALE).launch("scale", 1, 32, [y, x, 2.0, 32])
    assert x[0] == 0


def test_arguments_and_shapes_are_refused_by_the_executor_s_rules() -> None:
    y, x = vectors(32)
    with open_devices("ctypes:0") as (card,):
        module = card.load(SCALE)
        with pytest.raises(ArgumentError, match="missing: param_3"):
            module.launch("scale", 1, 32, [y, x, 2.0])
        with pytest.raises(LaunchError, match="2048 threads"):
            module.launch("scale", 1, (1024, 2), [y, x, 2.0, 32])
        with pytest.raises(LaunchError, match="no entry is named scala; entries: scale"):
            module.launch("scala", 1, 32, [])
        with pytest.raises(LaunchError, match="49153 bytes of shared memory"):
            module.launch("scale", 1, 32, [y, x, 2.0, 32], 49153)
        assert card.problem is None


def test_a_null_pointer_and_an_empty_buffer_go_through() -> None:
    with open_devices("ctypes:0") as (card,):
        card.load(SCALE).launch("scale", 1, 32, [None, np.zeros(0, np.float32), 2.0, 0])


def test_out_of_memory_fails_one_launch_and_the_card_goes_on(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    y, x = vectors(32)
    with open_devices("ctypes:0") as (card,):
        module = card.load(SCALE)
        monkeypatch.setenv("FAKE_CUDA_FAIL", "cuMemAlloc=2")
        with pytest.raises(DeviceError, match="scale on ctypes:0: cuMemAlloc failed: out of memory") as caught:
            module.launch("scale", 1, 32, [y, x, 2.0, 32])
        assert (caught.value.code, caught.value.fatal, card.problem) == (2, False, None)
        monkeypatch.delenv("FAKE_CUDA_FAIL")
        module.launch("scale", 1, 32, [y, x, 2.0, 32])
    assert fake.left()[2] == 0


@pytest.mark.parametrize(("code", "words"), [(700, "illegal memory access"), (719, "unspecified launch failure"),
                                             (214, "uncorrectable ECC"), (999, "lost its card"), (702, "timed out"),
                                             (777, "error 777")])  # fmt: skip
def test_a_lost_card_is_out_of_use_and_the_other_die_goes_on(
    monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    y, x = vectors(32)
    with open_devices("ctypes") as (first, second):
        modules = [first.load(SCALE), second.load(SCALE)]
        monkeypatch.setenv("FAKE_CUDA_FAIL", f"cuCtxSynchronize={code}@0")
        with pytest.raises(DeviceError, match=f"{words}.*out of use for the rest of this run") as caught:
            modules[0].launch("scale", 1, 32, [y, x, 2.0, 32])
        # A kernel that leaves all memory is a wrong product; a card that fails is not.
        assert caught.value.exit_code == (1 if code in (700, 719) else 2)
        with pytest.raises(DeviceError, match="ctypes:0 is out of use: scale on ctypes:0"):
            modules[0].launch("scale", 1, 32, [y, x, 2.0, 32])
        modules[1].launch("scale", 1, 32, [y, x, 2.0, 32])
        assert y[31] == 62


def test_a_card_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    y, x = vectors(32)
    with open_devices("ctypes") as (first, second):
        modules = [first.load(SCALE), second.load(SCALE)]
        monkeypatch.setenv("FAKE_CUDA_HANG", "0")
        with pytest.raises(DeviceError, match=r"no answer within 0\.2 s"):
            modules[0].launch("scale", 1, 32, [y, x, 2.0, 32], timeout_s=0.2)
        modules[1].launch("scale", 1, 32, [y, x, 2.0, 32])


def test_newer_ptx_is_refused_before_loading_and_error_222_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cuModuleLoadDataEx=1")  # never reached
    with open_devices("ctypes:0") as (card,), pytest.raises(LoadError) as caught:
        card.load(SCALE.replace("7.4", "7.8"))
    assert "error 222" in str(caught.value) and "R470 is Kepler's last" in str(caught.value)
    assert caught.value.hint == f'set max_ptx_isa = "7.4" in {table()} and run: ssmtool build'


def test_error_222_of_a_driver_that_no_table_knows_is_explained_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_VERSION", "99000")
    monkeypatch.setenv("FAKE_CUDA_CAPABILITY", "90")
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cuModuleLoadDataEx=222")
    with open_devices("ctypes:0") as (card,), pytest.raises(LoadError, match=r"ISA 7\.4, newer than .* error 222"):
        card.load(SCALE)


@pytest.mark.parametrize(("target", "capability", "words"), [
    ("sm_75", "37", "ctypes:0 is sm_37, the PTX is for sm_75"),
    ("sm_90a", "100", "code for it runs on no other card"),
])  # fmt: skip
def test_ptx_for_another_card_is_refused_before_loading(
    monkeypatch: pytest.MonkeyPatch, target: str, capability: str, words: str
) -> None:
    monkeypatch.setenv("FAKE_CUDA_CAPABILITY", capability)
    with open_devices("ctypes:0") as (card,), pytest.raises(LoadError, match=words):
        card.load(SCALE.replace("sm_37", target))


def test_ptx_that_the_driver_finds_wrong_is_the_product_s_fault_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cuModuleLoadDataEx=218")
    monkeypatch.setenv("FAKE_CUDA_LOG", "ptxas application ptx input, line 9; error : Unknown modifier '.x'")
    with open_devices("ctypes:0") as (card,), pytest.raises(RefusedPtxError, match=r"Unknown modifier '\.x'") as caught:
        card.load(SCALE)
    assert caught.value.exit_code == 1
