"""The other two bindings. cuda-bindings is the real package over the fake driver, in a process that finds no other.

PyCUDA cannot be built without a CUDA toolkit, so here a stand-in with its names takes its place: what is checked is
which of them are called, in which thread, and how its errors are read; docs/results has the real one on a card.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device.fake import SCALE

from ssmtool.device import DeviceError, open_devices

TESTS = Path(__file__).parents[1]
CHILD = """
import sys
from pathlib import Path
import numpy as np
from device.fake import SCALE, FakeDriver
from ssmtool.device import DeviceError, Launch, compare_devices, open_devices
fake = FakeDriver(Path(sys.argv[1]))
with open_devices("cpu,cuda-bindings") as devices:
    print(devices[1], devices[2], sep="\\n")
    y, x = np.zeros(64, np.float32), np.arange(64, dtype=np.float32)
    (found,) = compare_devices(SCALE, [Launch("scale", 2, 32, [y, x, 3.0, 64])], devices)
    print(found.equal, sorted(found.outputs), found.failures)
    print(devices[1].load(SCALE).time("scale", 2, 32, [y, x, 3.0, 64], repeat=2))
    import os
    os.environ["FAKE_CUDA_FAIL"] = "cuCtxSynchronize=700@0"
    try:
        devices[1].load(SCALE).launch("scale", 2, 32, [y, x, 3.0, 64])
    except DeviceError as error:
        print(error.code, error.fatal)
    os.environ["FAKE_CUDA_FAIL"] = "cuModuleLoadDataEx=218"
    os.environ["FAKE_CUDA_LOG"] = "line 3; error : nonsense"
    try:
        devices[2].load(SCALE)
    except DeviceError as error:
        print(error.exit_code, "nonsense" in str(error))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="cuda-bindings is not installed: its calls were not checked, those by ctypes were",
)
def test_cuda_bindings_makes_the_same_calls(fake_library: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(fake_library.parent),
        "FAKE_CUDA_SELF": str(fake_library),
        "PYTHONPATH": str(TESTS),
        "SSMTOOL_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", CHILD, str(fake_library)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == [
        "cuda-bindings:0 (Fake K80, sm_37, driver of CUDA 11.4, by cuda-bindings)",
        "cuda-bindings:1 (Fake K80, sm_37, driver of CUDA 11.4, by cuda-bindings)",
        "True ['cuda-bindings:0', 'cuda-bindings:1'] {}",
        "(0.0005, 0.0005)",
        "700 True",
        "1 True",
    ], done.stderr


class _PyCudaError(Exception):
    pass


class StandIn:
    """`pycuda.driver` as far as it is used; memory is host memory, and a launch doubles the first buffer."""

    Error = _PyCudaError
    MemoryError = _PyCudaError
    device_attribute = SimpleNamespace(
        MULTIPROCESSOR_COUNT=16, COMPUTE_CAPABILITY_MAJOR=75, COMPUTE_CAPABILITY_MINOR=76, MULTI_GPU_BOARD=84,
        MULTI_GPU_BOARD_GROUP_ID=85,
    )  # fmt: skip
    jit_option = SimpleNamespace(ERROR_LOG_BUFFER_SIZE_BYTES=6)
    function_attribute = SimpleNamespace(SHARED_SIZE_BYTES=1)

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.fail = ""
        self.memory: dict[int, np.ndarray[Any, Any]] = {}
        self.left: list[str] = []
        self.Device = type("Device", (), {"count": staticmethod(lambda: 1), "__new__": lambda _cls, _n: self.device})
        values = {16: 13, 75: 3, 76: 7, 84: 0}
        self.device = SimpleNamespace(
            name=lambda: "Stand-in", get_attribute=values.__getitem__, total_memory=lambda: 1 << 30,
            retain_primary_context=lambda: SimpleNamespace(push=self.enter, detach=lambda: self.left.append("detach")),
        )  # fmt: skip
        self.Context = SimpleNamespace(synchronize=self.synchronize, pop=lambda: self.left.append("pop"))

    def init(self) -> None:
        pass

    def get_driver_version(self) -> int:
        return 11040

    def enter(self) -> None:
        self.threads.add(threading.get_ident())

    def synchronize(self) -> None:
        if self.fail:
            raise _PyCudaError(self.fail)

    def module_from_buffer(self, text: bytes, options: object) -> Any:
        assert text.endswith(b"\0") and options
        if b"nonsense" in text:
            raise _PyCudaError("cuModuleLoadDataEx failed: a PTX JIT compilation failed - line 3: nonsense")
        function = SimpleNamespace(get_attribute=lambda _kind: 0, _launch_kernel=self.launch)
        return SimpleNamespace(get_function=lambda _name: function)

    def launch(self, grid: object, block: object, data: bytes, shared: int, stream: object) -> None:
        assert (grid, block, shared, stream) == ((1, 1, 1), (32, 1, 1), 0, None)
        address = int(np.frombuffer(data, np.uint64, 1)[0])
        base = max(each for each in self.memory if each <= address)
        self.memory[base][address - base :][:128].view(np.float32)[:] *= 2

    def mem_alloc(self, size: int) -> Any:
        address = (1 << 20) * (len(self.memory) + 1)
        self.memory[address] = np.zeros(size, np.uint8)

        class Allocation:
            def __int__(self) -> int:
                return address

            def free(self) -> None:
                pass

        return Allocation()

    def _at(self, address: int) -> np.ndarray[Any, Any]:
        base = max(each for each in self.memory if each <= address)
        return self.memory[base][address - base :]

    def memcpy_htod(self, address: int, array: np.ndarray[Any, Any]) -> None:
        self._at(address)[: array.nbytes] = array.reshape(-1).view(np.uint8)

    def memcpy_dtoh(self, array: np.ndarray[Any, Any], address: int) -> None:
        array.reshape(-1).view(np.uint8)[:] = self._at(address)[: array.nbytes]

    def Event(self) -> Any:  # noqa: N802 - PyCUDA's name
        return SimpleNamespace(record=lambda: None, synchronize=lambda: None, time_till=lambda _other: 0.5)


@pytest.fixture
def pycuda(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    driver = StandIn()
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    return driver


def test_pycuda_is_called_from_one_thread_that_is_not_the_caller_s(pycuda: StandIn) -> None:
    y, x = np.ones(32, np.float32), np.ones(32, np.float32)
    with open_devices("pycuda:0") as (card,):
        assert str(card) == "pycuda:0 (Stand-in, sm_37, driver of CUDA 11.4, by pycuda)"
        module = card.load(SCALE)
        assert module.launch("scale", 1, 32, [y, x, 2.0, 32]).seconds == 0.0005
        assert (y == 2).all()
    assert len(pycuda.threads) == 1 and threading.get_ident() not in pycuda.threads
    assert pycuda.left == ["pop", "detach"]


def test_the_numbers_that_pycuda_s_errors_leave_out_are_found_again(pycuda: StandIn) -> None:
    y = np.ones(32, np.float32)
    with open_devices("pycuda:0") as (card,):
        with pytest.raises(DeviceError, match="line 3: nonsense") as refused:
            card.load(SCALE + "// nonsense")
        assert (refused.value.code, refused.value.exit_code) == (218, 1)
        module = card.load(SCALE)
        pycuda.fail = "cuCtxSynchronize failed: an illegal memory access was encountered"
        with pytest.raises(DeviceError) as caught:
            module.launch("scale", 1, 32, [y, y.copy(), 2.0, 32])
    assert (caught.value.code, caught.value.fatal) == (700, True)
