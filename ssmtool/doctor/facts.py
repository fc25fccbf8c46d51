"""What the checks reason about, read once from a `System`.

A fact that cannot be read is None or empty, never an error.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ssmtool.device.drivers import KEPLER_TESLA
from ssmtool.doctor.hostcompiler import VERSIONED, HostCompiler, chosen_word, parse_version
from ssmtool.doctor.system import Ran, System
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.project import Project
    from ssmtool.toolchain.model import Found
    from ssmtool.toolchain.ptxas import PtxasInfo

T = TypeVar("T")

CHILD = Path(__file__).with_name("driver_child.py")
LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
HIDING = "CUDA_VISIBLE_DEVICES"
PCI = "/sys/bus/pci/devices"
# No compute_cap among them: nvidia-smi of R470 does not know that field, and refuses the whole question.
SMI_FIELDS = "index,name,memory.total,compute_mode,persistence_mode,ecc.mode.current,driver_version,pci.bus_id"
SMI = ("nvidia-smi", f"--query-gpu={SMI_FIELDS}", "--format=csv,noheader")

# NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@host)
_MODULE = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
# /usr/lib/x86_64-linux-gnu/libcuda.so.470.256.02
_LIBRARY = re.compile(r"libcuda\.so\.(\d+(?:\.\d+)+)$")
# .version 7.4, as a header's string or as text
_PTX_VERSION = re.compile(r"\.version[ \t]+(\d+)\.(\d+)")


@dataclass(frozen=True)
class Needs:
    """What the project is made for; without a project, what ssmtool's own kernels are."""

    target: str = "sm_37"
    release: str = "11.4"
    ptx_isa: tuple[int, int] = (7, 4)
    header: str | None = None
    root: str = "."

    @property
    def capability(self) -> tuple[int, int]:
        """(3, 7) of sm_37."""
        match = re.match(r"sm_(\d+)(\d)", self.target)
        return (int(match[1]), int(match[2])) if match else (0, 0)


@dataclass(frozen=True)
class Card:
    """An NVIDIA display device on the PCI bus; `driver` is the kernel module that holds it."""

    address: str
    device: int
    driver: str | None

    @property
    def name(self) -> str:
        """Its name where it is a Kepler Tesla, else its id."""
        return KEPLER_TESLA.get(self.device, f"NVIDIA card 10de:{self.device:04x}")


@dataclass(frozen=True)
class Gpu:
    """A device that the driver shows. `persistence` is nvidia-smi's to tell, None when it did not."""

    index: int
    name: str
    capability: tuple[int, int]
    memory: int
    compute_mode: int
    ecc: bool | None
    address: str
    persistence: bool | None = None

    @property
    def target(self) -> str:
        """`sm_37`."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


@dataclass(frozen=True)
class Driver:
    """What the driver library said. `failure` says why it could not even be asked."""

    opened: str | None = None
    errors: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    version: int = 0
    call: str = ""
    code: int = 0
    gpus: tuple[Gpu, ...] = ()
    failure: str | None = None

    @property
    def file(self) -> str | None:
        """The libcuda that was opened."""
        return self.files[0] if self.files else self.opened

    @property
    def release(self) -> str | None:
        """`470.256.02`, from the file's name."""
        match = _LIBRARY.search(self.file or "")
        return match[1] if match else None

    @property
    def starts(self) -> bool:
        """Whether it shows at least one device."""
        return self.failure is None and self.code == 0 and bool(self.gpus)


class Facts:
    """Everything known of one machine, for one project folder. `required` are the words of `--require`."""

    def __init__(self, system: System, folder: Path, required: Sequence[str] = ()) -> None:
        self.system = system
        self._folder = folder
        self.required = tuple(required)

    def prefetch(self) -> None:
        """Ask what takes long at the same time: programs and libraries answer while others start."""
        from concurrent.futures import ThreadPoolExecutor

        slow: tuple[Callable[[], Any], ...] = (
            lambda: self._asked,
            lambda: self.smi,
            lambda: self.executor_import,
            lambda: self.host_compilers,
            lambda: self.compilers,
            lambda: self.assemblers,
        )
        self.project  # noqa: B018 - read before the threads, which ask for it too
        with ThreadPoolExecutor(len(slow)) as pool:
            for future in [pool.submit(each) for each in slow]:
                future.exception()  # whoever needs the fact meets it again

    @functools.cached_property
    def project(self) -> Project | SsmtoolError:
        """The project, or why there is none."""
        try:
            return self.system.project(self._folder)
        except SsmtoolError as error:
            return error
        except (ImportError, OSError) as error:
            return SsmtoolError(f"cannot be read here: {error}", path="settings", hint="pip install --upgrade ssmtool")

    @functools.cached_property
    def needs(self) -> Needs:
        """What has to be met."""
        if isinstance(self.project, SsmtoolError):
            return Needs(root=str(self._folder))
        settings = self.project.settings
        major, _, minor = settings.max_ptx_isa.partition(".")
        root = self.project.root
        return Needs(
            settings.target, settings.cuda_release, (int(major), int(minor)), str(root / settings.header), str(root)
        )

    @functools.cached_property
    def ptx_version(self) -> tuple[int, int] | None:
        """The newest `.version` in the generated header."""
        text = self.system.read(self.needs.header) if self.needs.header else None
        return max(((int(a), int(b)) for a, b in _PTX_VERSION.findall(text or "")), default=None)

    @functools.cached_property
    def compilers(self) -> list[Found]:
        """Every nvcc and NVRTC."""
        return self.system.compilers(None if isinstance(self.project, SsmtoolError) else self.project)

    @functools.cached_property
    def assemblers(self) -> list[PtxasInfo]:
        """Every ptxas."""
        return self.system.assemblers()

    @functools.cached_property
    def host_compilers(self) -> list[HostCompiler]:
        """The host compiler that nvcc would start, first, and others that it could be told to."""
        words = dict.fromkeys((chosen_word(self.system.environ), *VERSIONED))
        found = []
        for word in words:
            if self.system.which(word):
                ran = self.system.run([word, "--version"])
                compiler = parse_version(word, ran.out) if ran.code == 0 else None
                found += [compiler] if compiler else []
        return found

    @functools.cached_property
    def cards(self) -> list[Card]:
        """NVIDIA display devices on the PCI bus, whatever any driver sees."""
        cards = []
        for address in self.system.folder(PCI) or ():
            lines = (self.system.read(f"{PCI}/{address}/uevent") or "").splitlines()
            told = dict(line.split("=", 1) for line in lines if "=" in line)
            vendor, _, device = told.get("PCI_ID", "").partition(":")
            # 0x030000 is a VGA controller, 0x030200 a 3D controller; a card's sound and USB are other classes.
            if vendor.upper() == "10DE" and told.get("PCI_CLASS", "").zfill(6).startswith("03"):
                cards.append(Card(address, int(device or "0", 16), told.get("DRIVER")))
        return cards

    @property
    def kepler(self) -> Card | None:
        """A Kepler Tesla that is plugged in."""
        return next((card for card in self.cards if card.device in KEPLER_TESLA), None)

    @functools.cached_property
    def modules(self) -> set[str] | None:
        """Names of loaded kernel modules."""
        text = self.system.read("/proc/modules")
        return None if text is None else {line.split()[0] for line in text.splitlines() if line.strip()}

    @functools.cached_property
    def module_release(self) -> str | None:
        """The release of the loaded NVIDIA kernel module."""
        match = _MODULE.search(self.system.read("/proc/driver/nvidia/version") or "")
        return match[1] if match else None

    @property
    def branch(self) -> int | None:
        """The driver's branch, 470."""
        release = self.module_release or self.driver.release
        return int(release.split(".")[0]) if release else None

    @functools.cached_property
    def container(self) -> str | None:
        """How it is known that this is a container, or None."""
        for path in ("/.dockerenv", "/run/.containerenv"):
            if self.system.access(path) is not None:
                return path
        groups = self.system.read("/proc/1/cgroup") or ""
        word = next((word for word in ("docker", "kubepods", "containerd", "libpod", "lxc") if word in groups), None)
        return f"/proc/1/cgroup names {word}" if word else None

    @functools.cached_property
    def driver(self) -> Driver:
        """The driver as this environment finds it."""
        return self._merged(self._asked)

    @functools.cached_property
    def _asked(self) -> Driver:
        return self._ask_driver(())

    @functools.cached_property
    def driver_unhidden(self) -> Driver | None:
        """The driver without CUDA_VISIBLE_DEVICES; None when that is not set."""
        return None if self.system.environ.get(HIDING) is None else self._merged(self._ask_driver([HIDING]))

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The devices that the driver shows."""
        return self.driver.gpus

    @property
    def wants_card(self) -> bool:
        """Whether somebody means to compute on a card here: a Kepler Tesla, a driver, or `--require` says so."""
        asked = any(word.startswith(("gpu", "sm_", "driver-")) for word in self.required)
        return bool(self.kepler or self.module_release or self.driver.opened or asked)

    def _ask_driver(self, without: Sequence[str]) -> Driver:
        """Start the driver in a child process, without some variables of the environment."""
        executable = self.system.place().executable
        if not executable:
            return Driver(failure="Python does not know its own program, so no child process can be started")
        question = json.dumps({"libraries": LIBRARIES})
        ran = self.system.run([executable, "-I", str(CHILD)], timeout_s=15.0, stdin=question, without=without)
        if ran.failure or ran.code:
            return Driver(
                failure=f"the child process that starts the driver {ran.failure or 'failed'}: {ran.last_words}"
            )
        try:
            answer = json.loads(ran.out)
            return Driver(
                answer["opened"],
                tuple(answer["errors"]),
                tuple(answer["files"]),
                int(answer["version"]),
                answer["call"],
                int(answer["code"]),
                tuple(_gpu(index, row) for index, row in enumerate(answer["devices"])),
            )
        except (ValueError, KeyError, TypeError):
            return Driver(failure="the child process that starts the driver gave no answer that can be read")

    def _merged(self, driver: Driver) -> Driver:
        """With nvidia-smi's persistence mode, matched by PCI address."""
        rows = {_short(row[7]): row for row in self._smi if len(row) == 8}
        return replace(driver, gpus=tuple(_with_row(gpu, rows.get(gpu.address)) for gpu in driver.gpus))

    @functools.cached_property
    def smi(self) -> Ran | None:
        """What nvidia-smi says; None when there is none."""
        return self.system.run(SMI, timeout_s=20.0) if self.system.which("nvidia-smi") else None

    @functools.cached_property
    def _smi(self) -> list[list[str]]:
        if self.smi is None or self.smi.code or self.smi.failure:
            return []
        return [[cell.strip() for cell in line.split(",")] for line in self.smi.out.splitlines() if line.strip()]

    @functools.cached_property
    def executor_import(self) -> Ran:
        """Does the CPU executor's LLVM load? In a child: a wheel for another processor kills its process."""
        code = "import numpy, llvmlite.binding as llvm; llvm.initialize_native_target(); print(numpy.__version__)"
        return self.system.run([self.system.place().executable, "-I", "-c", code], timeout_s=30.0)


def try_fact(read: Callable[[], T]) -> T | None:
    """A fact, or None when something that it needs (a package of ssmtool's own) is missing."""
    try:
        return read()
    except (SsmtoolError, ImportError, OSError, LookupError, ValueError, AttributeError):
        return None


def _gpu(index: int, row: dict[str, Any]) -> Gpu:
    return Gpu(
        index=index,
        name=str(row["name"]),
        capability=(int(row["major"]), int(row["minor"])),
        memory=int(row["memory"]),
        compute_mode=int(row["compute_mode"]),
        # 0 is said of a card without ECC too; nvidia-smi tells the two apart.
        ecc=True if row["ecc"] == 1 else None,
        address=f"{row['domain']:04x}:{row['bus']:02x}:{row['slot']:02x}.0" if row["bus"] >= 0 else "",
    )


def _with_row(gpu: Gpu, row: list[str] | None) -> Gpu:
    """The device with what only nvidia-smi tells: persistence, and an ECC mode that the card may not have."""
    if row is None:
        return gpu
    ecc = {"Enabled": True, "Disabled": False}.get(row[5])
    persistence = {"Enabled": True, "Disabled": False}.get(row[4])
    return replace(gpu, ecc=ecc, persistence=persistence)


def _short(address: str) -> str:
    """`0000:05:00.0` of nvidia-smi's `00000000:05:00.0`."""
    return address[-12:].lower()
