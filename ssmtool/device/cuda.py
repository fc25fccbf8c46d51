"""A CUDA card as a device, through any binding of the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ssmtool import ptx
from ssmtool.device import binding as calls
from ssmtool.device import preflight
from ssmtool.device.binding import Binding, Triple
from ssmtool.device.codes import CODES, LOST, describe
from ssmtool.device.drivers import cuda_release, ptx_isa_of_cuda
from ssmtool.device.errors import BindingError, CrashedError, DeviceError
from ssmtool.device.interface import Device, DeviceModule, Extent, Launched, Properties
from ssmtool.device.worker import Worker

if TYPE_CHECKING:
    from ssmtool.execute.arguments import Arguments, Bound

T = TypeVar("T")

TIMEOUT_S = 120.0
"""A launch that takes longer has hung. Loading has as long."""


class CudaDevice(Device):
    """Device `index` of the driver. All its driver calls are made by one thread, so the caller's may be any."""

    def __init__(self, name: str, index: int, binding: Binding, *, timeout_s: float = TIMEOUT_S) -> None:
        self.name = name
        self.index = index
        self.timeout_s = timeout_s
        self._binding = binding
        self._context: Any = None
        self._events: tuple[Any, Any] | None = None
        self._closed = False
        # Unloaded at the end if the caller did not: a primary context that others hold keeps them otherwise.
        self._modules: set[CudaModule] = set()
        self._worker = Worker(name)
        self.properties = self.run(lambda: properties_of(binding, index), f"{name} cannot be asked what it is")

    def load(
        self,
        text: str | bytes | ptx.Module,
        path: str | None = None,
        *,
        parameters: Mapping[str, Sequence[str]] | None = None,
    ) -> CudaModule:
        """Load PTX, after the checks that spare the user a bare error number."""
        module = text if isinstance(text, ptx.Module) else ptx.parse(text, path)
        preflight.check(module, self.name, self.properties)

        def load() -> Any:
            try:
                return self._binding.load(module.text.encode())
            except BindingError as error:
                if _fatal(error.code):
                    raise
                raise preflight.refusal(error, module, self.name, self.properties) from None

        handle = self.run(self.in_context(load), f"{self.name} cannot load the PTX")
        loaded = CudaModule(self, module, handle, dict(parameters or {}))
        self._modules.add(loaded)
        return loaded

    def run(self, task: Callable[[], T], what: str, timeout_s: float | None = None, *, launch: bool = False) -> T:
        """A task on the device's own thread; the driver's errors become a DeviceError that begins with `what`.

        With `launch`, one that a kernel's instructions bring about is a CrashedError.
        """
        if self.problem is not None:
            raise DeviceError(f"{self.name} is out of use: {self.problem}", fatal=True)
        if self._closed:
            raise DeviceError(f"{self.name} is closed")
        limit = self.timeout_s if timeout_s is None else timeout_s
        try:
            return self._worker.call(task, limit)
        except TimeoutError:
            problem = DeviceError(f"{what}: no answer within {limit:g} s; {LOST}", fatal=True)
        except BindingError as error:
            known = CODES.get(error.code)
            text = f"{what}: {describe(error.call, error.code, error.log)}"
            problem = DeviceError(text, code=error.code, hint=known.mend if known else None)
            if _fatal(error.code):
                kind = CrashedError if launch and known and known.by_kernel else DeviceError
                problem = kind(f"{text}; {LOST}", code=error.code, fatal=True, hint=problem.hint)
        if problem.fatal:
            self.problem = problem
        raise problem

    def in_context(self, task: Callable[[], T]) -> Callable[[], T]:
        """The task, with the card's context made first."""

        def run() -> T:
            if self._context is None:
                context = self._binding.retain(self.index)
                self._binding.make_current(context)
                self._context = context
            return task()

        return run

    def events(self) -> tuple[Any, Any]:
        """Two events of this card, for the start and the end of a kernel; on this device's thread only."""
        if self._events is None:
            self._events = (self._binding.event(), self._binding.event())
        return self._events

    def forget(self, module: CudaModule) -> None:
        """The module is unloaded, or about to be."""
        self._modules.discard(module)

    @property
    def binding(self) -> Binding:
        """The driver; to be called on this device's thread only (`run`)."""
        return self._binding

    def close(self) -> None:
        """Give the context back. After a fatal error there is nothing that could be."""
        if self._closed:
            return
        for module in list(self._modules):
            module.close()
        if self._context is not None and self.problem is None:
            with contextlib.suppress(DeviceError):
                self.run(lambda: self._binding.release(self.index, self._context), f"{self.name} cannot be closed")
        self._closed = True
        self._worker.end(1.0 if self.problem is None else 0.0)


class CudaModule(DeviceModule):
    """PTX loaded on a card."""

    def __init__(
        self, device: CudaDevice, module: ptx.Module, handle: Any, parameters: dict[str, Sequence[str]]
    ) -> None:
        self.entries = tuple(function.name for function in module.entries)
        self._device = device
        self._module = module
        self._handle = handle
        self._parameters = parameters
        self._functions: dict[str, tuple[Any, int]] = {}

    def launch(
        self,
        entry: str,
        grid: Extent,
        block: Extent,
        args: Arguments,
        shared_bytes: int = 0,
        *,
        timeout_s: float | None = None,
    ) -> Launched:
        """As the interface says."""
        plan = _Plan(self._module, entry, grid, block, args, shared_bytes, self._parameters.get(entry, ()))

        def run(memory: Any, go: Callable[[], None]) -> float:
            binding = self._device.binding
            first, last = self._device.events()
            binding.record(first)
            go()
            binding.record(last)
            binding.synchronize()
            memory.fetch(entry)
            return binding.elapsed(first, last) / 1e3

        seconds = self._on_card(plan, run, timeout_s)
        return Launched({each.name: each.array for each in plan.bound.buffers}, seconds)

    def time(
        self,
        entry: str,
        grid: Extent,
        block: Extent,
        args: Arguments,
        shared_bytes: int = 0,
        *,
        repeat: int = 20,
        warmup: int = 3,
        timeout_s: float | None = None,
    ) -> tuple[float, ...]:
        """As the interface says; by CUDA events, so the host's own time is not in it."""
        plan = _Plan(self._module, entry, grid, block, args, shared_bytes, self._parameters.get(entry, ()))

        def run(memory: Any, go: Callable[[], None]) -> tuple[float, ...]:
            binding = self._device.binding
            first, last = self._device.events()
            seconds = []
            for _ in range(warmup + repeat):
                memory.put_back()
                binding.record(first)
                go()
                binding.record(last)
                binding.synchronize()
                seconds.append(binding.elapsed(first, last) / 1e3)
            return tuple(seconds[warmup:])

        return self._on_card(plan, run, timeout_s)

    def _on_card(self, plan: _Plan, run: Callable[[Any, Callable[[], None]], T], timeout_s: float | None) -> T:
        """`run(memory, go)` on the device's thread: the buffers are there, `go` starts the kernel."""
        from ssmtool.device.memory import CardMemory

        device, binding = self._device, self._device.binding

        def task() -> T:
            function, static = self._function(plan.entry)
            shared = plan.dynamic_shared(static)
            memory = CardMemory(binding, plan.bound.buffers)
            try:
                data = plan.data(memory.address)
                return run(memory, lambda: binding.launch(function, plan.grid, plan.block, shared, data, plan.offsets))
            finally:
                # After a sticky error every call fails with that same code, which is the one to tell.
                with contextlib.suppress(BindingError):
                    memory.free()

        return device.run(device.in_context(task), f"{plan.entry} on {device.name}", timeout_s, launch=True)

    def _function(self, entry: str) -> tuple[Any, int]:
        """The kernel and its static shared bytes."""
        if entry not in self._functions:
            binding = self._device.binding
            function = binding.function(self._handle, entry)
            self._functions[entry] = (function, binding.static_shared(function))
        return self._functions[entry]

    def close(self) -> None:
        """Unload."""
        self._device.forget(self)
        if self._handle is None or self._device.problem is not None:
            return

        def unload() -> None:
            # PyCUDA unloads where the last reference goes away, and that has to be this thread.
            self._functions.clear()
            handle, self._handle = self._handle, None
            self._device.binding.unload(handle)

        with contextlib.suppress(DeviceError):
            self._device.run(unload, "unloading")


class _Plan:
    """A launch, checked against the same rules as the executor's, before the card hears of it."""

    def __init__(
        self,
        module: ptx.Module,
        entry: str,
        grid: Extent,
        block: Extent,
        args: Arguments,
        shared_bytes: int,
        names: Sequence[str],
    ) -> None:
        from ssmtool.execute.arguments import bind
        from ssmtool.execute.errors import LaunchError
        from ssmtool.execute.geometry import block_shape, grid_shape
        from ssmtool.execute.layout import Param

        function = module.function(entry)
        if function is None or function.kind != "entry":
            known = ", ".join(each.name for each in module.entries[:16])
            raise LaunchError(f"no entry is named {entry}; entries: {known}", path=module.path)
        self.entry = entry
        self.grid: Triple = grid_shape(grid)
        self.block: Triple = block_shape(function, block)
        self._shared = shared_bytes
        params, at = [], 0
        for param in function.params:
            at = -(-at // param.alignment) * param.alignment
            params.append(Param(param.name, param.type, at, param.size))
            at += param.size
        self.offsets = [param.offset for param in params]
        self.bound: Bound = bind(entry, params, args, source_names=names)

    def dynamic_shared(self, static: int) -> int:
        """Dynamic shared bytes. Raises LaunchError for more than sm_37 has, on whatever card."""
        from ssmtool.execute.errors import LaunchError
        from ssmtool.execute.geometry import MOST_SHARED

        if isinstance(self._shared, bool) or not isinstance(self._shared, int) or self._shared < 0:
            raise LaunchError(f"shared_bytes is {self._shared!r}; it is a number of bytes, at least 0")
        if static + self._shared > MOST_SHARED:
            raise LaunchError(
                f"{self.entry} would use {static + self._shared} bytes of shared memory a block, {static} static and"
                f" {self._shared} dynamic; sm_37 allows {MOST_SHARED}"
            )
        return self._shared

    def data(self, address: Callable[[Any], int]) -> Any:
        """The parameter bytes, with the buffers' addresses on the card in place of the host's."""
        data = self.bound.data.copy()
        for buffer in self.bound.buffers:
            offset = self.offsets[self.bound.names.index(buffer.name)]
            data[offset : offset + 8] = list(address(buffer).to_bytes(8, "little"))
        return data


def properties_of(binding: Binding, index: int) -> Properties:
    """What the driver says a device is. Raises BindingError."""
    version = binding.version()
    capability = (binding.attribute(index, calls.CAPABILITY_MAJOR), binding.attribute(index, calls.CAPABILITY_MINOR))
    dies = 1
    with contextlib.suppress(BindingError):  # drivers older than CUDA 6.5 do not know the attributes
        if binding.attribute(index, calls.MULTI_GPU_BOARD):
            group = binding.attribute(index, calls.MULTI_GPU_BOARD_GROUP)
            boards = [binding.attribute(each, calls.MULTI_GPU_BOARD_GROUP) for each in range(binding.count())]
            dies = boards.count(group)
    return Properties(
        model=binding.model(index),
        capability=capability,
        binding=binding.name,
        driver=cuda_release(version),
        ptx_isa=ptx_isa_of_cuda(version),
        memory=binding.total_memory(index),
        multiprocessors=binding.attribute(index, calls.MULTIPROCESSORS),
        dies=dies,
    )


def _fatal(code: int) -> bool:
    known = CODES.get(code)
    return known.fatal if known else code >= 700
