"""PTX text as something that can be launched: the public face of this room."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from ssmtool import ptx
from ssmtool.execute.arguments import Arguments, Shape, bind, make_buffer
from ssmtool.execute.cache import Cache, cache_dir, key_of
from ssmtool.execute.counters import Counters
from ssmtool.execute.errors import ArgumentError, KernelFaultError, LaunchError
from ssmtool.execute.geometry import block_shape, check_local, check_shared, count_of, grid_shape
from ssmtool.execute.launch import Kernel, run_kernel, watch_block
from ssmtool.execute.layout import Fault, Mode
from ssmtool.execute.memory import Memory
from ssmtool.execute.partners import Event, with_partners
from ssmtool.execute.result import LaunchResult
from ssmtool.execute.variables import Variables

if TYPE_CHECKING:
    from ssmtool.execute.faults import Triple
    from ssmtool.execute.layout import KernelFacts

Check = Literal["bounds", "all", "none"]
Extent = int | Sequence[int]

_LISTED = 16
MOST_COPIED = 32 << 20
"""Bytes of buffers up to which checked mode keeps a copy, so that it can name both accesses of a race."""


class Module:
    """A PTX module whose kernels run on this machine's CPU.

    `ptx_text` is PTX, as text, bytes, or parsed; `path` is only for messages. `parameters` gives kernels' parameter
    names in C, since compilers leave only `ENTRY_param_N` in the PTX. Variables of the module are placed here, once,
    and keep what kernels store in them. Compiled kernels are kept, here and on the disk.

    Raises PtxSyntaxError for text that is not PTX. A module may be used by several threads.
    """

    def __init__(
        self,
        ptx_text: str | bytes | ptx.Module,
        path: str | None = None,
        *,
        parameters: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if not isinstance(ptx_text, (str, bytes, ptx.Module)):
            raise LaunchError(f"PTX is text, bytes or a parsed module, not a {type(ptx_text).__name__}")
        self.ptx = ptx_text if isinstance(ptx_text, ptx.Module) else ptx.parse(ptx_text, path)
        self.entries = tuple(function.name for function in self.ptx.entries)
        self.cache_problem: str | None = None
        self._parameters = dict(parameters or {})
        self._variables = Variables(self.ptx)
        self._kernels: dict[tuple[str, Triple, Mode], Kernel] = {}
        self._lock = threading.Lock()

    def launch(
        self,
        entry: str,
        grid: Extent,
        block: Extent,
        args: Arguments,
        shared_bytes: int = 0,
        *,
        check: Check = "bounds",
        counters: bool = False,
        uninitialised: Collection[str | int] = (),
        threads: int | None = None,
        budget: int | None = None,
        on_fault: Literal["raise", "collect"] = "raise",
        shapes: Mapping[str, Shape] | None = None,
        reachable: Sequence[NDArray[Any]] = (),
    ) -> LaunchResult:
        """Run a kernel to its end. Arrays among `args` are its buffers and are changed in place.

        `grid` and `block` are one to three extents. `args` is a list in the parameters' order, or a dict by name.
        None is a null pointer; scalars follow the parameters' types. Buffers may overlap; a kernel may then change
        each through the other, as on a GPU. `shared_bytes` is dynamic shared memory.

        `check`: "bounds" suppresses and reports every access outside the buffers, "all" looks for races, unwritten
        memory and the rest as well, "none" checks nothing: a bad kernel may then overwrite this process.
        `uninitialised` names buffers that count as never written. `budget` is how often a warp may go round loops.
        `shapes` gives arrays axes for messages: {"y": ("h", "j")}, or {"y": {"h": 32, "j": 128}} for a flat one.
        `reachable` are buffers whose addresses the kernel finds in its data.

        Raises LaunchError or ArgumentError for a launch that a GPU would refuse, UnsupportedError for an instruction
        that is not executed; nothing has run then. Raises KernelFaultError for faults, unless `on_fault` is "collect".
        """
        function = self._function(entry)
        extents, threads_of = grid_shape(grid), block_shape(function, block)
        threads = None if threads is None else count_of("threads", threads)
        budget = None if budget is None else count_of("budget", budget)
        if on_fault not in ("raise", "collect"):
            raise LaunchError(f'on_fault is {on_fault!r}; it is "raise" or "collect"')
        kernel = self._kernel(entry, threads_of, _mode(check, counters))
        facts = kernel.facts
        check_local(facts)
        shared = check_shared(facts, shared_bytes)
        bound = bind(
            entry,
            facts.params,
            args,
            source_names=self._parameters.get(entry, ()),
            uninitialised=uninitialised,
            shapes=shapes,
        )
        symbols = [self._variables.address(name) for name in facts.symbols]
        if not isinstance(reachable, (list, tuple)):
            raise ArgumentError("reachable is a list of arrays", hint="reachable=[array]")
        others = [make_buffer(f"reachable[{k}]", f"reachable[{k}]", array) for k, array in enumerate(reachable)]
        memory = Memory([*bound.buffers, *others, *self._variables.buffers.values()])
        # To find the other side of a race the block is run again, from what the buffers held before.
        whole = sum(buffer.array.nbytes for buffer in memory.buffers)
        before = [buffer.array.copy() for buffer in memory.buffers] if check == "all" and whole <= MOST_COPIED else None
        tracked = False
        try:
            ran = run_kernel(
                kernel, extents, bound.data, memory, symbols, shared_bytes=shared, threads=threads, budget=budget
            )
            tracked = facts.mode.checks
        finally:
            memory.keep_written(tracked=tracked)
        faults = ran.faults
        if before is not None and any(fault.kind is Fault.RACE for fault in faults):
            watched = self._kernel(entry, threads_of, Mode(watch=True))

            def watch(block: int, offset: int) -> tuple[KernelFacts, list[Event]]:
                after = [buffer.array.copy() for buffer in memory.buffers]
                _put(memory, before)
                try:
                    events = watch_block(
                        watched, extents, bound.data, memory, symbols,
                        shared_bytes=shared, budget=budget, block=block, offset=offset,
                    )  # fmt: skip
                finally:
                    _put(memory, after)
                return watched.facts, events

            faults = with_partners(faults, facts, watch)
        result = LaunchResult(
            facts,
            bound.names,
            bound.buffers,
            memory,
            faults=faults,
            notes=ran.notes,
            stopped=ran.stopped,
            touched=ran.touched,
            counters=Counters(facts, ran.counters) if counters else None,
            seconds=ran.seconds,
            threads=ran.threads,
            cached=kernel.cached,
        )
        if result.faults and on_fault == "raise":
            raise KernelFaultError(result)
        return result

    def compile(self, entry: str, block: Extent, *, check: Check = "bounds", counters: bool = False) -> KernelFacts:
        """Compile a kernel ahead of its first launch. Raises as `launch` does."""
        function = self._function(entry)
        return self._kernel(entry, block_shape(function, block), _mode(check, counters)).facts

    def variable(self, name: str) -> NDArray[Any]:
        """A `.global` or `.const` variable, to be read or set, in its own type and shape. Raises ArgumentError."""
        view = self._variables.view(name)
        if view is None:
            known = ", ".join(list(self._variables.buffers)[:_LISTED]) or "none"
            raise ArgumentError(f"no .global or .const variable is named {name}; there are: {known}")
        return view

    def _function(self, entry: str) -> ptx.Function:
        if not isinstance(entry, str):
            raise LaunchError(f"an entry's name is a str, not {entry!r}", path=self.ptx.path)
        function = self.ptx.function(entry)
        if function is not None and function.kind == "entry":
            return function
        close = difflib.get_close_matches(entry, self.entries, 1)
        more = f" and {len(self.entries) - _LISTED} more" if len(self.entries) > _LISTED else ""
        listed = f"; entries: {', '.join(self.entries[:_LISTED]) or 'none'}{more}"
        meant = f"; did you mean {close[0]}?" if close else listed
        raise LaunchError(f"no entry is named {entry}{meant}", path=self.ptx.path)

    def _kernel(self, entry: str, block: Triple, mode: Mode) -> Kernel:
        key = (entry, block, mode)
        with self._lock:
            kernel = self._kernels.get(key)
            if kernel is None:
                kernel = self._kernels[key] = self._load(entry, block, mode)
            return kernel

    def _load(self, entry: str, block: Triple, mode: Mode) -> Kernel:
        """A kernel from the disk, or compiled and kept there. Without a usable disk it is only compiled."""
        from ssmtool.execute.compiler import MachineCode, compile_ir, identity
        from ssmtool.execute.lower import lower

        cache, key = Cache(cache_dir()), None
        try:
            key = key_of([identity(), self.ptx.text, entry, str(block), str(mode)])
        except OSError as error:
            self.cache_problem = f"compiled kernels are not kept: {error}"
        if key is not None and (found := cache.load(key)) is not None:
            return Kernel(found[0], MachineCode(found[1]), cached=True)
        lowered = lower(self.ptx, entry, block, mode)
        code = compile_ir(lowered.ir)
        if key is not None:
            cache.store(key, lowered.facts, code)
            self.cache_problem = cache.problem
        return Kernel(lowered.facts, MachineCode(code), cached=False)


def _put(memory: Memory, contents: Sequence[NDArray[Any]]) -> None:
    """Give the launch's buffers these contents; those that may not be written have not changed."""
    for buffer, content in zip(memory.buffers, contents, strict=True):
        if buffer.array.flags.writeable:
            buffer.array[...] = content


def _mode(check: Check, counters: bool) -> Mode:
    if check not in ("bounds", "all", "none"):
        raise LaunchError(f'check is {check!r}; it is "bounds", "all" or "none"')
    return Mode(bounds=check != "none", checks=check == "all", counters=bool(counters))
