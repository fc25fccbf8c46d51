"""Which devices there are, and which ones a word such as `cuda:0` means."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from ssmtool.device.binding import Binding
from ssmtool.device.cpu import CpuDevice
from ssmtool.device.cuda import TIMEOUT_S, CudaDevice
from ssmtool.device.diagnose import machine, why
from ssmtool.device.errors import BindingError, DeviceError, NoDeviceError
from ssmtool.device.interface import Device

WORDS = "cpu, cuda[:N], cuda-bindings[:N], ctypes[:N], pycuda[:N], all, or several with commas"
_SPEC = re.compile(r"(cpu|all|cuda|cuda-bindings|ctypes|pycuda)(?::(\d{1,3}))?")
_REQUIRE = re.compile(r"sm_\d{2,3}")


class Devices(Sequence[Device]):
    """Open devices; all of them are closed at the end of a `with`."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = tuple(devices)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # Sequence wants an overload for slices
        return self._devices[index]

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    def __enter__(self) -> Devices:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every device."""
        for device in self._devices:
            device.close()


def open_devices(spec: str, *, require: str | None = None, timeout_s: float = TIMEOUT_S) -> Devices:
    """The devices that `spec` means, open.

    `cpu` is the executor; `cuda` every card, through cuda-bindings where that is installed, else through ctypes;
    `cuda-bindings`, `ctypes` and `pycuda` name the library; `:N` picks one device (a K80 is two); `all` is the
    executor and every card. `require` (`sm_37`) leaves out cards of another compute capability.

    Raises NoDeviceError when a word of `spec` finds nothing, naming what there is: nothing falls back to the CPU.
    """
    if require is not None and not _REQUIRE.fullmatch(require):
        raise DeviceError(f"--require {require}: expected a compute capability such as sm_37")
    found: list[Device] = []
    try:
        for word in spec.split(","):
            found += _open(word.strip(), require, timeout_s)
        if require is not None and not any(device.real for device in found):
            raise NoDeviceError(f"--require {require} needs a card, and --device {spec} names the executor alone")
        names = [device.name for device in found]
        if len(set(names)) != len(names):
            raise DeviceError(f"--device {spec}: a device is named twice")
    except BaseException:
        Devices(found).close()
        raise
    return Devices(found)


def open_preferred(spec: str | None, *, require: str | None = None) -> tuple[Devices, list[str]]:
    """What was asked for; where nobody asked, the cards, or else the CPU, and why it is not the cards.

    Raises as `open_devices`.
    """
    if spec is not None or require is not None:
        return open_devices(spec or "cuda", require=require), []
    try:
        return open_devices("cuda"), []
    except DeviceError as error:
        return open_devices("cpu"), [f"on the CPU, since there is no GPU: {error.message}"]


def shares(spec: str | None) -> bool:
    """Whether several devices share the work; those named one by one, and `all`, do it all and are compared."""
    return spec is None or ("," not in spec and spec != "all")


def list_devices() -> list[str]:
    """What is here, one line each: for messages, never an error."""
    lines = ["cpu (the executor)"]
    try:
        with Devices(_cards("cuda", None, TIMEOUT_S)) as cards:
            lines += [str(card) for card in cards]
    except DeviceError as error:
        lines.append(f"no card: {error.message}")
    return lines


def _open(word: str, require: str | None, timeout_s: float) -> list[Device]:
    match = _SPEC.fullmatch(word)
    if match is None or (match[2] is not None and match[1] in ("cpu", "all")):
        raise DeviceError(f"--device {word or 'of nothing'}: expected {WORDS}")
    kind, number = match[1], match[2]
    devices: list[Device] = [CpuDevice()] if kind in ("cpu", "all") else []
    if kind != "cpu":
        cards = _cards("cuda" if kind == "all" else kind, None if number is None else int(number), timeout_s)
        wanted = [card for card in cards if require in (None, card.properties.target)]
        for card in cards:
            if card not in wanted:
                card.close()
        if not wanted:
            there = "; ".join(str(card) for card in cards)
            raise NoDeviceError(f"no card is {require}; there is: {there}", hint="run it on the machine with that card")
        devices += wanted
    return devices


def _cards(kind: str, number: int | None, timeout_s: float) -> list[CudaDevice]:
    """The cards that a binding shows, or the one of a number."""
    version = 0
    try:
        binding = open_binding(kind)
        version = binding.version()
        count = binding.count()
    except BindingError as error:
        reason, mend = why(machine(), call=error.call, code=error.code, version=version)
        raise NoDeviceError(reason, code=error.code, hint=mend) from None
    if not count:
        reason, mend = why(machine(), version=version)
        raise NoDeviceError(reason, hint=mend)
    if number is not None and number >= count:
        models = "; ".join(f"{kind}:{index} {binding.model(index)}" for index in range(count))
        raise NoDeviceError(f"there is no device {number}; there is: {models}")
    wanted = range(count) if number is None else [number]
    opened: list[CudaDevice] = []
    try:
        # One by one, so that those already open are closed when one cannot be.
        for index in wanted:
            opened += [CudaDevice(f"{kind}:{index}", index, binding, timeout_s=timeout_s)]
    except BaseException:
        Devices(opened).close()
        raise
    return opened


def open_binding(kind: str) -> Binding:
    """The driver through the library of that name; `cuda` takes the best there is.

    Raises NoDeviceError without the library or a driver, BindingError when the driver does not start.
    """
    from ssmtool.device.cuda_python import CudaPython
    from ssmtool.device.libcuda import Libcuda
    from ssmtool.device.pycuda_binding import PyCuda

    bindings: dict[str, Callable[[], Binding]] = {"cuda-bindings": CudaPython, "ctypes": Libcuda, "pycuda": PyCuda}
    if kind != "cuda":
        return bindings[kind]()
    return CudaPython() if _has_cuda_python() else Libcuda()


def _has_cuda_python() -> bool:
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ImportError:
        return False
