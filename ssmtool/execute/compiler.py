"""LLVM text to machine code of this CPU, and machine code to a callable function."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from llvmlite import binding

from ssmtool.execute.errors import CompileError

ENTRY = "run"

# LLVM's state is one for the process, and llvmlite guards only single calls.
_lock = threading.RLock()


@functools.cache
def _initialise() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@functools.cache
def target() -> tuple[str, str]:
    """(CPU name, features) that code is made for: this machine's, with vectors as wide as it has.

    LLVM prefers 256-bit vectors on several CPUs that have 512-bit ones, for code in which few of them are used; here
    nearly all is vectors. The CPU's name is in neither: what code may use is told by the features, some of which a
    virtual machine may lack.
    """
    with _lock:
        _initialise()
        return binding.get_host_cpu_name(), f"{binding.get_host_cpu_features().flatten()},-prefer-256-bit"


def identity() -> str:
    """Everything of the compiler that the machine code depends on."""
    import llvmlite

    return " ".join((llvmlite.__version__, *map(str, binding.llvm_version_info), *target()))


def _machine() -> Any:
    cpu, features = target()
    return binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2)


def compile_ir(text: str) -> bytes:
    """The object code of an LLVM module. Raises CompileError when LLVM does not take it."""
    with _lock:
        machine = _machine()
        try:
            module = binding.parse_assembly(text)
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM does not take the code made for this kernel: {error}") from None
        tuning = binding.create_pipeline_tuning_options(speed_level=2)
        # What is worth a vector is one already: these two only cost time.
        tuning.loop_vectorization = False
        tuning.slp_vectorization = False
        passes = binding.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(module, passes)
        code: bytes = machine.emit_object(module)
        return code


class MachineCode:
    """Object code in memory, ready to run.

    The engine owns the memory and needs its target machine: whoever calls the function must hold this object until
    the call has returned. `code` is what `compile_ir` gave, whole: over damaged object code LLVM ends the process.
    Raises CompileError when it lacks the function.
    """

    def __init__(self, code: bytes) -> None:
        with _lock:
            self._machine = _machine()
            self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), self._machine)
            try:
                self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
                self._engine.finalize_object()
                address = self._engine.get_function_address(ENTRY)
            except RuntimeError as error:
                raise CompileError(f"object code cannot be loaded: {error}") from None
        if not address:
            raise CompileError(f"object code without a function {ENTRY!r}")
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)

    def __call__(self, launch: int, worker: int) -> None:
        """Run on the two tables at these addresses. Other Python threads go on meanwhile."""
        self._function(launch, worker)
