"""Read what `ptxas -v` prints. Every expression stands under a line that a real ptxas printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

# ptxas info    : Compiling entry function 'spill' for 'sm_37'
_COMPILING = re.compile(r"ptxas info\s*: Compiling entry function '(?P<name>[^']+)' for '(?P<target>\w+)'")
# ptxas info    : Function properties for spill
_PROPERTIES = re.compile(r"ptxas info\s*: Function properties for '?(?P<name>[^\s']+)'?")
#     136 bytes stack frame, 324 bytes spill stores, 356 bytes spill loads
_FRAME = re.compile(
    r"^\s+(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
# ptxas info    : Used 32 registers, 332 bytes cmem[0], 12 bytes cmem[2]
# ptxas info    : Used 64 registers, used 1 barriers, 56 bytes cumulative stack size, 360 bytes cmem[0]
# ptxas info    : Used 7 registers, 128 bytes smem, 328 bytes cmem[0]
_USED = re.compile(r"ptxas info\s*: Used (?P<registers>\d+) registers(?P<rest>.*)$")
# ptxas info    : 0 bytes gmem, 64 bytes cmem[3]
_MODULE = re.compile(r"ptxas info\s*: (?P<rest>\d+ bytes gmem.*)$")
# 332 bytes cmem[0]
_CONSTANT = re.compile(r"(\d+)(?:\+\d+)? bytes cmem\[(\d+)\]")
# 128 bytes smem. Older releases write `128+16 bytes smem`, user and system parts; the system part is not the kernel's.
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
# 0 bytes gmem
_GLOBAL = re.compile(r"(\d+) bytes gmem")
# used 1 barriers
_BARRIERS = re.compile(r"(\d+) barriers")
# 56 bytes cumulative stack size
_CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")


@dataclass(frozen=True, slots=True)
class FunctionFrame:
    """The local memory of one device function that was not inlined. Bytes a thread."""

    name: str
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel uses. Bytes are per thread for stack and spills, per block for shared memory.

    `barriers` and `cumulative_stack_bytes` are None where ptxas does not print them (release 11.8 does not for sm_37).
    `functions` are the device functions that ptxas compiled along with the kernel.
    """

    name: str
    target: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int = 0
    constant_banks: dict[int, int] = field(default_factory=dict)
    barriers: int | None = None
    cumulative_stack_bytes: int | None = None
    functions: tuple[FunctionFrame, ...] = ()

    @property
    def has_local_memory(self) -> bool:
        """A stack frame of its own or of a function it calls. Spills live in the frame: 0 spills with a frame count."""
        return self.stack_bytes > 0 or any(item.stack_bytes for item in self.functions)


@dataclass(slots=True)
class ParsedReport:
    """The report of one module; `unread` are the lines that no expression knows."""

    entries: list[Resources] = field(default_factory=list)
    global_bytes: int = 0
    constant_banks: dict[int, int] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def parse_report(text: str) -> ParsedReport:
    """Read the output of `ptxas -v`.

    A kernel is reported only when its frame and its registers were both read, so that a format this does not know
    gives a kernel less, never a kernel with zeros.
    """
    report = ParsedReport()
    entry: tuple[str, str] | None = None
    properties_of: str | None = None
    frames: dict[str, FunctionFrame] = {}
    for line in text.splitlines():
        if match := _COMPILING.search(line):
            entry, frames = (match["name"], match["target"]), {}
        elif match := _PROPERTIES.search(line):
            properties_of = match["name"]
        elif (match := _FRAME.match(line)) and properties_of:
            frame = FunctionFrame(properties_of, int(match["stack"]), int(match["stores"]), int(match["loads"]))
            _take_frame(report, entry, frames, frame)
            properties_of = None
        elif (match := _USED.search(line)) and entry and entry[0] in frames:
            report.entries.append(_resources(entry, int(match["registers"]), match["rest"], frames))
        elif match := _MODULE.search(line):
            report.global_bytes = _first(_GLOBAL, match["rest"]) or 0
            report.constant_banks = _banks(match["rest"])
        elif line.strip() and "Compile time" not in line:
            report.unread.append(line)
    return report


def _take_frame(
    report: ParsedReport, entry: tuple[str, str] | None, frames: dict[str, FunctionFrame], frame: FunctionFrame
) -> None:
    """Keep a frame for the kernel being read; one that comes after its `Used` line is of a function of that kernel."""
    frames[frame.name] = frame
    last = report.entries[-1] if report.entries else None
    if last and entry and last.name == entry[0] and frame.name != last.name:
        report.entries[-1] = replace(last, functions=(*last.functions, frame))


def _resources(entry: tuple[str, str], registers: int, rest: str, frames: dict[str, FunctionFrame]) -> Resources:
    """One kernel from its `Used` line and the frames read so far."""
    own = frames[entry[0]]
    return Resources(
        name=entry[0],
        target=entry[1],
        registers=registers,
        stack_bytes=own.stack_bytes,
        spill_store_bytes=own.spill_store_bytes,
        spill_load_bytes=own.spill_load_bytes,
        shared_bytes=_first(_SHARED, rest) or 0,
        constant_banks=_banks(rest),
        barriers=_first(_BARRIERS, rest),
        cumulative_stack_bytes=_first(_CUMULATIVE, rest),
        functions=tuple(frame for name, frame in frames.items() if name != entry[0]),
    )


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    """The first number of a pattern, or None."""
    match = pattern.search(text)
    return int(match[1]) if match else None


def _banks(text: str) -> dict[int, int]:
    """Constant banks by number, in bytes."""
    return {int(bank): int(size) for size, bank in _CONSTANT.findall(text)}
