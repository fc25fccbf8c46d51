"""What the driver's error codes mean for somebody who runs kernels, and what to do.

Numbers and names are those of CUresult in cuda.h, which never renumbers them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """`text` is the driver's own (cuGetErrorString); `meaning` and `mend` are for people.

    `fatal`: the context is lost. `by_kernel`: if a launch ends with it, the kernel's own instructions are why.
    """

    name: str
    text: str
    meaning: str = ""
    mend: str | None = None
    fatal: bool = False
    by_kernel: bool = False


_SANITIZER = "run it with `ssmtool run ... --check all`, which names the access"
_COMPAT = "a CUDA compatibility library (cuda-compat) is found before the driver's own: take it out of LD_LIBRARY_PATH"

CODES: dict[int, Code] = {
    1: Code("CUDA_ERROR_INVALID_VALUE", "invalid argument", "grid, block or shared memory is beyond the card"),
    2: Code("CUDA_ERROR_OUT_OF_MEMORY", "out of memory", "the buffers do not fit into the card's free memory"),
    3: Code("CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    4: Code("CUDA_ERROR_DEINITIALIZED", "driver shutting down", fatal=True),
    34: Code("CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library", "the toolkit's link-time stub was opened",
             "take .../stubs out of LD_LIBRARY_PATH"),
    46: Code("CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable",
             "another process has the card for itself, or its compute mode forbids use",
             "nvidia-smi -q -d COMPUTE", fatal=True),
    100: Code("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    101: Code("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    200: Code("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid", "the text is not PTX to the driver"),
    201: Code("CUDA_ERROR_INVALID_CONTEXT", "invalid device context", fatal=True),
    209: Code("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device",
              "the PTX is for a newer GPU than this one"),
    214: Code("CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered", "the card's memory is failing",
              "nvidia-smi -q -d ECC, then reset the card or replace it", fatal=True),
    218: Code("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    220: Code("CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution",
              fatal=True),
    222: Code("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain.",
              "its .version is newer than this driver's compiler knows"),
    301: Code("CUDA_ERROR_FILE_NOT_FOUND", "file not found"),
    500: Code("CUDA_ERROR_NOT_FOUND", "named symbol not found", "the module has no kernel of that name"),
    700: Code("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered",
              "the kernel read or wrote outside all memory", _SANITIZER, fatal=True, by_kernel=True),
    701: Code("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch",
              "registers or shared memory of one block exceed the card"),
    702: Code("CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated",
              "the card also drives a display, and the kernel ran longer than that allows", fatal=True),
    710: Code("CUDA_ERROR_ASSERT", "device-side assert triggered", "an assert of the kernel failed",
              fatal=True, by_kernel=True),
    714: Code("CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error", fatal=True, by_kernel=True),
    715: Code("CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered", fatal=True, by_kernel=True),
    716: Code("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address", "an access is no multiple of its own size",
              _SANITIZER, fatal=True, by_kernel=True),
    717: Code("CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space",
              "an address of one memory was used as one of another", _SANITIZER, fatal=True, by_kernel=True),
    718: Code("CUDA_ERROR_INVALID_PC", "invalid program counter", fatal=True, by_kernel=True),
    719: Code("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure", "most often an access outside shared memory",
              _SANITIZER, fatal=True, by_kernel=True),
    720: Code("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"),
    802: Code("CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized", "the host's fabric manager is not running",
              "systemctl start nvidia-fabricmanager"),
    803: Code("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
              "system has unsupported display driver / cuda driver combination",
              "libcuda and the loaded kernel module are of different releases", _COMPAT),
    804: Code("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW",
              "compatibility libraries work on data-centre cards of newer families only", _COMPAT),
    999: Code("CUDA_ERROR_UNKNOWN", "unknown error", "most often a driver that lost its card", "dmesg | grep -i xid",
              fatal=True),
}  # fmt: skip

LOST = "the card is out of use for the rest of this run; other devices go on"


def describe(call: str, code: int, log: str = "") -> str:
    """`cuCtxSynchronize failed: an illegal memory access was encountered (700 CUDA_ERROR_ILLEGAL_ADDRESS): ...`."""
    known = CODES.get(code)
    if known is None:
        text = f"{call} failed with error {code}"
    else:
        meaning = f": {known.meaning}" if known.meaning else ""
        text = f"{call} failed: {known.text.rstrip('.')} ({code}, {known.name}){meaning}"
    said = " ".join(log.split())
    return f"{text}; the driver says: {said}" if said else text


def code_of(text: str) -> int:
    """The code whose text stands in a message (pycuda keeps only that); 999 when none does."""
    known = (code for code, each in CODES.items() if each.text.rstrip(".") in text)
    return next(known, 999)
