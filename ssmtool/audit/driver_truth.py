"""What the CUDA driver of this machine says each kernel uses: the only truth, for this machine's GPU."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ssmtool.errors import ProductError
from ssmtool.findings import Skip
from ssmtool.toolchain.model import ToolchainError
from ssmtool.toolchain.process import run_tool

CHECK = "driver's own count of local memory and registers"
_CHILD = Path(__file__).with_name("driver_child.py")
_LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
# ptxas application ptx input, line 14; error   : Unknown modifier '.globl'
_LINE = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


class DriverResources(msgspec.Struct, frozen=True):
    """One kernel, as cuFuncGetAttribute tells it.

    `local_bytes` (LOCAL_SIZE_BYTES) are per thread; `shared_bytes` are the static ones of a block. `binary_version` is
    the architecture of the machine code, 90 for sm_90; `ptx_version` that of the PTX's `.target`, 37, and not its
    `.version`: an H200 says 37 and 90 for our header.
    """

    local_bytes: int
    registers: int
    shared_bytes: int
    constant_bytes: int
    max_threads_per_block: int
    ptx_version: int
    binary_version: int


class DriverReport(msgspec.Struct, frozen=True):
    """All kernels of a module, on `device` (`Tesla K80`) of compute capability `capability`; `driver` is `11.4`."""

    device: str
    capability: tuple[int, int]
    driver: str
    entries: dict[str, DriverResources]

    @property
    def target(self) -> str:
        """`sm_37`: what the numbers hold for. Those of another GPU say nothing certain of the K80."""
        major, minor = self.capability
        return f"sm_{major}{minor}"


class _Answer(msgspec.Struct, frozen=True):
    """What the child writes when it has no report."""

    skip: str | None = None
    refused: str | None = None


def ask_driver(
    ptx: str, entries: Sequence[str], target: str, *, libraries: Sequence[str] = _LIBRARIES, timeout_s: float = 120.0
) -> DriverReport | Skip:
    """Load `ptx` on this machine's GPU and read each entry's attributes; a Skip that says why when that cannot be.

    With several GPUs the one of `target` is asked. Nothing is launched. Raises ProductError, with the driver's own
    words, when the driver finds the PTX itself wrong.
    """
    match = re.fullmatch(r"sm_(\d+)(\d)[af]?", target)
    question = {
        "ptx": ptx,
        "entries": list(entries),
        "capability": [int(match[1]), int(match[2])] if match else [0, 0],
        "library": list(libraries),
    }
    try:
        finished = run_tool(
            [sys.executable, "-I", _CHILD],
            name="the CUDA driver",
            timeout_s=timeout_s,
            stdin=msgspec.json.encode(question).decode(),
        )
    except ToolchainError as error:
        return Skip(CHECK, error.message)
    if finished.code != 0:
        words = finished.stderr.strip().splitlines() or ["no reason given"]
        return Skip(CHECK, f"the question could not be asked: {words[-1]}")
    try:
        answer = msgspec.json.decode(finished.stdout, type=_Answer)
        if answer.refused is not None:
            raise _refusal(answer.refused)
        if answer.skip is not None:
            fix = None if "no CUDA driver" not in answer.skip else "run it on a machine with a GPU"
            return Skip(CHECK, answer.skip, fix)
        return msgspec.json.decode(finished.stdout, type=DriverReport)
    except msgspec.MsgspecError as error:
        return Skip(CHECK, f"the driver's answer is not understood ({error})")


def _refusal(said: str) -> ProductError:
    match = _LINE.search(said)
    if match:
        return ProductError(f"the CUDA driver refuses the PTX: {match[2].strip()}", path="PTX", line=int(match[1]))
    return ProductError(f"the CUDA driver refuses the PTX: {said}", path="PTX")
