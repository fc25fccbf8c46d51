"""Why the driver shows no card, or not the one that is plugged in: read from the system, where Linux tells."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ssmtool.device.codes import describe
from ssmtool.device.drivers import KEPLER, KEPLER_TESLA, cuda_of_branch, cuda_release, dotted

_NVIDIA = "0x10de"
# 0x0300: VGA controller, 0x0302: 3D controller; other functions of a card are its sound and USB
_DISPLAY = "0x03"
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024
_MODULE = re.compile(r"Kernel Module\s+(?:for \S+\s+)?((\d+)\.[\d.]+)")


@dataclass(frozen=True)
class Machine:
    """What Linux says.

    `branch` (470) and `version` (`470.256.02`) of the loaded kernel module, PCI device ids of NVIDIA cards, and the
    libcuda files in use or found first.
    """

    branch: int | None = None
    version: str | None = None
    cards: tuple[int, ...] = ()
    libraries: tuple[str, ...] = field(default=())

    @property
    def kepler(self) -> str | None:
        """The name of a Kepler Tesla that is plugged in."""
        return next((KEPLER_TESLA[each] for each in self.cards if each in KEPLER_TESLA), None)

    @property
    def compat(self) -> str | None:
        """The file of a compatibility libcuda that is loaded, or that LD_LIBRARY_PATH would find."""
        return next((each for each in self.libraries if "compat" in each), None)


def machine(root: Path = Path("/"), search: str | None = None) -> Machine:
    """Look at the system below `root`; `search` stands for LD_LIBRARY_PATH."""
    branch, version, libraries = None, None, []
    if match := _MODULE.search(_read(root / "proc/driver/nvidia/version")):
        branch, version = int(match[2]), match[1]
    devices = root / "sys/bus/pci/devices"
    cards = [
        int(_read(device / "device").strip() or "0", 16)
        for device in (sorted(devices.iterdir()) if devices.is_dir() else [])
        if _read(device / "vendor").strip() == _NVIDIA and _read(device / "class").startswith(_DISPLAY)
    ]
    for line in _read(root / "proc/self/maps").splitlines():
        if "libcuda.so" in line and (path := line.split(maxsplit=5)[-1]) not in libraries:
            libraries.append(path)
    for folder in filter(None, (os.environ.get("LD_LIBRARY_PATH", "") if search is None else search).split(":")):
        found = Path(folder) / "libcuda.so.1"
        libraries += [str(found)] if found.exists() else []
    return Machine(branch, version, tuple(cards), tuple(libraries))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def why(here: Machine, *, call: str = "", code: int = 0, version: int = 0) -> tuple[str, str | None]:
    """(reason, what mends it) for a driver that failed with `code`, or that shows fewer cards than are plugged in.

    `version` is cuDriverGetVersion's, 0 when it could not be asked.
    """
    said = describe(call, code) if code else "the CUDA driver shows no card"
    without = "run it without that library: env -u LD_LIBRARY_PATH ssmtool ..."
    own = cuda_of_branch(here.branch) if here.branch else None
    if here.compat and (code in (803, 804, 100) or (own and version and cuda_release(version) > own)):
        branch = f" on a kernel module of R{here.branch}" if here.branch else ""
        kepler = f"; {here.kepler}s are not seen through it" if here.kepler else ""
        return f"{said}; {here.compat} is a compatibility library{branch}{kepler}", without
    if here.kepler and here.branch and here.branch > KEPLER.branch:
        return (
            f"{said}; a {here.kepler} is plugged in, but the driver is R{here.branch} and R{KEPLER.branch} is the last"
            f" that knows Kepler (CUDA {dotted(KEPLER.cuda)}, PTX ISA {dotted(KEPLER.ptx_isa)})",
            f"install the R{KEPLER.branch} driver (apt-get install nvidia-driver-{KEPLER.branch}-server)",
        )
    if here.cards and here.branch is None:
        name = here.kepler or f"an NVIDIA card (PCI id {here.cards[0]:04x})"
        return f"{said}; {name} is plugged in, but no NVIDIA kernel module is loaded", "modprobe nvidia"
    if os.environ.get("CUDA_VISIBLE_DEVICES") is not None and code in (0, 100):
        hidden = os.environ["CUDA_VISIBLE_DEVICES"]
        return f"{said}; CUDA_VISIBLE_DEVICES is {hidden!r}, which hides cards", "unset CUDA_VISIBLE_DEVICES"
    if not here.cards and here.branch is None and code in (0, 100):
        return f"{said}; no NVIDIA card is plugged in", None
    return said, None
