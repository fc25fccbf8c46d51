"""Times on a card, by events. Launches wait in the queue behind a long copy: the host's own time is not in them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssmtool.bench.beside.timing import LONGEST_S, Conditions, time_beside
from ssmtool.bench.cases import Part
from ssmtool.bench.result import Beside, Timing
from ssmtool.bench.vectors import judged, right
from ssmtool.device.errors import DeviceError
from ssmtool.device.memory import GUARD
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.bench.beside.load import Adapter
    from ssmtool.bench.cases import Call, Case, Group
    from ssmtool.device.cuda import CudaDevice
    from ssmtool.ptx import Module

# Two copies of this many bytes keep a card busy for 0.2 ms or more, while the host puts the launches into the queue.
_FILLER = 256 << 20
# The copy whose bandwidth is measured: several times the L2 of any card.
_COPY = 512 << 20

T = TypeVar("T")
Holder = dict[str, int]
Function = tuple[Any, tuple[str, ...], tuple[int, ...], tuple[int, ...]]


class CardBench:
    """Cases on one card. `modules` are PTX with the names of the kernels' parameters."""

    def __init__(self, device: CudaDevice, modules: list[tuple[Module, dict[str, tuple[str, ...]]]]) -> None:
        self._device = device
        self._modules = modules
        self._handles: list[Any] = []
        self._functions: dict[str, Function] = {}
        self.copy_bytes_per_second = 0.0

    def prepare(self) -> None:
        """Load the PTX and measure the copy bandwidth. Raises DeviceError, LoadError."""
        from ssmtool.device import preflight

        for module, _ in self._modules:
            preflight.check(module, self._device.name, self._device.properties)
        self._run(self._load, "loading")
        self.copy_bytes_per_second = self._run(self._copy, "copying")

    def time(
        self, group: Group, repeat: int, warmup: int, adapters: Sequence[Adapter] = ()
    ) -> tuple[list[Timing], list[Beside]]:
        """The cases of a group over the same buffers, then what `adapters` have for it. Raises DeviceError.

        All is started by the device's own thread, in the card's primary context and its default stream. That is where
        CUDA's runtime, and so torch, works too: there is one queue, and one kind of event, for both.
        """
        longest = LONGEST_S if adapters else None
        return self._run(lambda: self._time(group, repeat, warmup, adapters), group.title, longest)

    def close(self) -> None:
        """Unload. After a fatal error there is nothing that could be."""

        def unload() -> None:
            self._functions.clear()
            while self._handles:
                self._device.binding.unload(self._handles.pop())

        with contextlib.suppress(DeviceError):
            self._run(unload, "unloading")

    def _run(self, task: Callable[[], T], what: str, timeout_s: float | None = None) -> T:
        return self._device.run(self._device.in_context(task), f"{what} on {self._device.name}", timeout_s)

    def _load(self) -> None:
        binding = self._device.binding
        for module, names in self._modules:
            handle = binding.load(module.text.encode())
            self._handles.append(handle)
            for function in module.entries:
                offsets, at = [], 0
                for param in function.params:
                    at = -(-at // param.alignment) * param.alignment
                    offsets.append(at)
                    at += param.size
                found = binding.function(handle, function.name)
                sizes = tuple(param.size for param in function.params)
                self._functions[function.name] = (found, names[function.name], (*offsets, at), sizes)

    def _copy(self) -> float:
        binding = self._device.binding
        with _memory(self._device, {"from": _COPY, "to": _COPY}) as at:
            first, last = self._device.events()
            seconds = []
            for _ in range(12):
                binding.copy_within(at["to"], at["from"], _COPY)
                binding.record(first)
                binding.copy_within(at["to"], at["from"], _COPY)
                binding.record(last)
                binding.synchronize()
                seconds.append(binding.elapsed(first, last) / 1e3)
        return 2 * _COPY / float(np.median(seconds[2:]))

    def _time(
        self, group: Group, repeat: int, warmup: int, adapters: Sequence[Adapter]
    ) -> tuple[list[Timing], list[Beside]]:
        binding = self._device.binding
        buffers = group.make()
        sizes = {name: array.nbytes for name, array in buffers.items()}
        spare = {f"{name} as given": sizes[name] for name in group.kept}
        timings: list[Timing] = []
        with _memory(self._device, {**sizes, **spare, "filler from": _FILLER, "filler": _FILLER}) as at:
            for name, array in buffers.items():
                binding.copy_in(at[name], array)
            for name in group.kept:
                binding.copy_in(at[f"{name} as given"], buffers[name])

            def begin(copies: int = 2) -> None:
                for _ in range(copies):
                    binding.copy_within(at["filler"], at["filler from"], _FILLER)
                for name in group.kept:
                    binding.copy_within(at[name], at[f"{name} as given"], sizes[name])

            beside: list[Beside] = []
            reference: list[NDArray[Any]] | None = None
            for case in group.cases:
                seconds = self._case(case, at, begin, repeat, warmup)
                bits = [self._fetch(buffers[name], at[name]) for name in case.outputs]
                equal = None
                if reference is None:
                    reference = bits
                else:
                    equal = all(one.tobytes() == other.tobytes() for one, other in zip(bits, reference, strict=False))
                left = dict(zip(case.outputs, bits, strict=True))
                left |= {name: self._fetch(buffers[name], at[name]) for name in judged(group) if name not in left}
                timings.append(
                    Timing(
                        case.name,
                        group.title,
                        len(case.calls),
                        seconds,
                        case.bytes,
                        group.operations,
                        self.copy_bytes_per_second,
                        equal,
                        right(group, left),
                    )
                )
            if adapters:
                assert reference is not None
                ours = dict(zip(group.cases[0].outputs, reference, strict=True))
                long_copy = 2 * _FILLER / self.copy_bytes_per_second
                conditions = Conditions(self._device, begin, long_copy)
                beside = time_beside(
                    adapters, group, buffers, ours, conditions, repeat, warmup, self.copy_bytes_per_second
                )
        return timings, beside

    def _case(self, case: Case, at: Holder, begin: Callable[[], None], repeat: int, warmup: int) -> tuple[float, ...]:
        """Seconds of each run."""
        binding = self._device.binding
        launches = [self._launch(call, at) for call in case.calls]
        first, last = self._device.events()
        seconds = []
        for _ in range(warmup + repeat):
            begin()
            binding.record(first)
            for launch in launches:
                launch()
            binding.record(last)
            binding.synchronize()
            seconds.append(binding.elapsed(first, last) / 1e3)
        return tuple(seconds[warmup:])

    def _fetch(self, like: NDArray[Any], address: int) -> NDArray[Any]:
        found = np.empty(like.shape, like.dtype)
        self._device.binding.copy_out(found, address)
        return found

    def _launch(self, call: Call, at: Holder) -> Callable[[], None]:
        """A launch whose arguments are laid out once."""
        function, names, offsets, sizes = self._functions[call.entry]
        data = np.zeros(max(offsets[-1], 1), np.uint8)
        for name, offset, size in zip(names, offsets[:-1], sizes, strict=True):
            value = call.args[name]
            if isinstance(value, Part):
                raw = (at[value.buffer] + value.element * value.itemsize).to_bytes(8, "little")
            elif isinstance(value, str):
                raw = at[value].to_bytes(8, "little")
            elif value is None:
                raw = bytes(8)
            else:
                raw = (value if isinstance(value, np.generic) else np.int32(value)).tobytes()
            if len(raw) != size:
                raise SsmtoolError(f"{call.entry}: parameter {name} has {size} bytes, {len(raw)} are given")
            data[offset : offset + size] = list(raw)
        x, y, z = (*call.grid, 1, 1)[:3]
        threads = (call.block,) if isinstance(call.block, int) else call.block
        block_x, block_y, block_z = (*threads, 1, 1)[:3]
        grid, block = (x, y, z), (block_x, block_y, block_z)
        starts = list(offsets[:-1])
        return lambda: self._device.binding.launch(function, grid, block, call.shared_bytes, data, starts)


@contextlib.contextmanager
def _memory(device: CudaDevice, sizes: dict[str, int]) -> Iterator[Holder]:
    """Name -> address of that many bytes, with room behind them; given back at the end."""
    at: Holder = {}
    try:
        for name, size in sizes.items():
            at[name] = device.binding.alloc(size + GUARD)
        yield at
    finally:
        with contextlib.suppress(
            Exception
        ):  # after a fatal error nothing can be given back, and that error is the news
            for address in at.values():
                device.binding.free(address)


def clocks(index: int) -> str | None:
    """What nvidia-smi says of a card's clocks just now; None without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, f"--id={index}", "--query-gpu=driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    parts = [part.strip() for part in done.stdout.strip().split(",")]
    return f"driver {parts[0]}, SM {parts[1]}, memory {parts[2]}" if done.returncode == 0 and len(parts) == 3 else None
