"""Each known trap: which check finds it, whether it is a problem, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from doctor.recorded import NVIDIA_SMI, Recorded, load

from ssmtool.doctor.model import Report, Verdict
from ssmtool.doctor.run import examine

Data = dict[str, Any]
NO_DEVICE = {"call": "cuInit", "code": 100, "devices": []}
NO_LIBRARY = {
    "opened": None,
    "errors": ["libcuda.so.1: cannot open shared object file: No such file or directory"],
    "files": [],
    "version": 0,
    "call": "",
    "code": 0,
    "devices": [],
}
# nvidia-smi's own words and exit code, seen on an H200 host without a device of that number
NO_DEVICES_WERE_FOUND = [6, "No devices were found\n", ""]
UEVENTS = [f"/sys/bus/pci/devices/0000:0{bus}:00.0/uevent" for bus in (5, 6)]


@dataclass(frozen=True)
class Trap:
    name: str
    base: str
    change: Callable[[Data], object]
    id: str
    verdict: Verdict
    found: str
    mend: str


def _driver_580(data: Data) -> None:
    version = data["files"]["/proc/driver/nvidia/version"].replace("470.256.02", "580.95.05")
    data["files"]["/proc/driver/nvidia/version"] = version
    data["driver"] |= {**NO_DEVICE, "version": 13000, "files": ["/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"]}
    data["folders"]["/dev"] = ["null"]
    data["commands"][NVIDIA_SMI] = NO_DEVICES_WERE_FOUND


def _compat(data: Data) -> None:
    data["environ"]["LD_LIBRARY_PATH"] = "/usr/local/cuda-12.8/compat:/opt/lib"
    file = "/usr/local/cuda-12.8/compat/libcuda.so.570.86.10"
    data["driver"] |= {"call": "cuInit", "code": 804, "devices": [], "version": 12080, "files": [file]}


def _compat_elsewhere(data: Data) -> None:
    """The library's folder does not say what it is; its CUDA is newer than its kernel module's."""
    file = "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.10"
    data["driver"] |= {"call": "cuInit", "code": 803, "devices": [], "version": 12080, "files": [file]}


def _stub(data: Data) -> None:
    data["environ"]["LD_LIBRARY_PATH"] = "/usr/local/cuda-11.4/lib64/stubs"
    file = "/usr/local/cuda-11.4/lib64/stubs/libcuda.so"
    data["driver"] |= {"call": "cuInit", "code": 34, "devices": [], "version": 0, "files": [file]}


def _nouveau(data: Data) -> None:
    for path in UEVENTS:
        data["files"][path] = data["files"][path].replace("DRIVER=nvidia", "DRIVER=nouveau")
    del data["files"]["/proc/driver/nvidia/version"]
    data["files"]["/proc/modules"] = "nouveau 2306048 0 - Live 0x0000000000000000\n"
    data["folders"]["/dev"] = ["null"]
    data["driver"] |= NO_DEVICE


def _no_module(data: Data) -> None:
    for path in UEVENTS:
        data["files"][path] = data["files"][path].replace("DRIVER=nvidia\n", "")
    del data["files"]["/proc/driver/nvidia/version"]
    data["files"]["/proc/modules"] = ""
    data["folders"]["/dev"] = ["null"]
    data["driver"] |= NO_DEVICE


def _secure_boot(data: Data) -> None:
    _no_module(data)
    name = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    data["files"][f"/sys/firmware/efi/efivars/{name}"] = "\x06\x00\x00\x00\x01"


def _no_driver_at_all(data: Data) -> None:
    _no_module(data)
    data["programs"].remove("nvidia-smi")
    data["driver"] = NO_LIBRARY


def _without_gpus(data: Data) -> None:
    data["access"]["/.dockerenv"] = ["0755", "root", "root", True, False]
    data["folders"]["/dev"] = ["null"]
    data["driver"] = NO_LIBRARY
    data["programs"].remove("nvidia-smi")


def _void(data: Data) -> None:
    _without_gpus(data)
    data["environ"]["NVIDIA_VISIBLE_DEVICES"] = "void"


def _permissions(data: Data) -> None:
    data["access"]["/dev/nvidia0"] = ["0660", "root", "video", False, False]
    data["driver"] |= NO_DEVICE


def _permissions_of_root(data: Data) -> None:
    data["access"]["/dev/nvidia0"] = ["0600", "root", "root", False, False]
    data["driver"] |= NO_DEVICE


def _hidden(value: str, devices: int) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data["environ"]["CUDA_VISIBLE_DEVICES"] = value
        data["driver_unhidden"] = dict(data["driver"])
        if devices:
            data["driver"] = {**data["driver"], "devices": data["driver"]["devices"][:devices]}
        else:
            data["driver"] = {**data["driver"], **NO_DEVICE}

    return change


def _updated_under_foot(data: Data) -> None:
    data["driver"] |= {"call": "cuInit", "code": 803, "devices": []}
    data["driver"]["files"] = ["/usr/lib/x86_64-linux-gnu/libcuda.so.470.239.06"]
    data["commands"][NVIDIA_SMI] = [18, "Failed to initialize NVML: Driver/library version mismatch\n", ""]


def _newer_ptx(data: Data) -> None:
    data["files"]["/project/generated/fc_cuda_ptx.h"] = '".version 7.8\\n.target sm_37\\n"'


def _gcc_too_new(data: Data) -> None:
    del data["environ"]["NVCC_PREPEND_FLAGS"]
    data["programs"].remove("gcc-10")
    data["commands"]["gcc --version"] = [0, "gcc (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0\n", ""]


def _gcc_too_new_with_another(data: Data) -> None:
    del data["environ"]["NVCC_PREPEND_FLAGS"]


def _no_gcc(data: Data) -> None:
    del data["environ"]["NVCC_PREPEND_FLAGS"]
    data["programs"] = ["nvidia-smi"]


def _lost_die(data: Data) -> None:
    data["driver"]["devices"] = data["driver"]["devices"][:1]


def _prohibited(data: Data) -> None:
    data["driver"]["devices"][1]["compute_mode"] = 2


def _smi_says(old: str, new: str) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data["commands"][NVIDIA_SMI][1] = data["commands"][NVIDIA_SMI][1].replace(old, new)

    return change


def _set(key: str, value: object) -> Callable[[Data], None]:
    return lambda data: data.update({key: value})


def _package(name: str, version: str | None) -> Callable[[Data], None]:
    return lambda data: data["packages"].update({name: version})


def _pycuda_without_toolkit(data: Data) -> None:
    data["packages"]["pycuda"] = "2026.1"
    data["imports"]["pycuda"] = [1, "", "ImportError: libcurand.so.10: cannot open shared object file"]
    del data["access"]["/usr/local/cuda-11.4/include/cuda.h"]


def _damaged_compiler(data: Data) -> None:
    why = "libnvrtc.so.11.2 is damaged: 5 bytes, not 44705377"
    data["compilers"] = [["nvrtc", None, "/store/libnvrtc.so.11.2", "installed by ssmtool", why]]


def _laptops_own_card(data: Data) -> None:
    """A gaming card that nobody means to compute on."""
    data["files"]["/sys/bus/pci/devices/0000:01:00.0/uevent"] = "DRIVER=nouveau\nPCI_CLASS=30000\nPCI_ID=10DE:25A2\n"
    data["folders"]["/sys/bus/pci/devices"].append("0000:01:00.0")


OK, WARNING, PROBLEM, UNKNOWN = Verdict.OK, Verdict.WARNING, Verdict.PROBLEM, Verdict.UNKNOWN
TRAPS = [
    Trap("driver too new for Kepler", "k80", _driver_580, "card/driver-branch", PROBLEM, "R470 is the last",
         "nvidia-driver-470-server"),
    Trap("compat library by its folder", "k80", _compat, "driver/library", PROBLEM, "hides|compatibility library",
         "export LD_LIBRARY_PATH=/opt/lib"),
    Trap("compat library by its CUDA", "k80", _compat_elsewhere, "driver/library", PROBLEM, "compatibility library",
         "ldconfig"),
    Trap("stub library", "k80", _stub, "driver/library", PROBLEM, "stub", "unset LD_LIBRARY_PATH"),
    Trap("nouveau", "k80", _nouveau, "card/nouveau", PROBLEM, "nouveau holds the Tesla K80", "blacklist nouveau"),
    Trap("module not built", "k80", _no_module, "card/kernel-module", PROBLEM, "not loaded", "dkms autoinstall"),
    Trap("Secure Boot", "k80", _secure_boot, "card/kernel-module", PROBLEM, "Secure Boot", "mokutil"),
    Trap("no driver", "k80", _no_driver_at_all, "card/kernel-module", PROBLEM, "no NVIDIA driver is installed",
         "nvidia-driver-470-server"),
    Trap("container without --gpus", "k80", _without_gpus, "card/container", PROBLEM, "container without cards",
         "--gpus all"),
    Trap("container with void", "k80", _void, "card/container", PROBLEM, "NVIDIA_VISIBLE_DEVICES=void",
         "NVIDIA_VISIBLE_DEVICES=all"),
    Trap("not in the group", "k80", _permissions, "card/device-files", PROBLEM, "root:video 0660", "usermod -aG video"),
    Trap("files of root", "k80", _permissions_of_root, "card/device-files", PROBLEM, "root:root 0600", "chmod 0666"),
    Trap("no nvidia-uvm", "k80", lambda data: data["access"].pop("/dev/nvidia-uvm"), "card/device-files", PROBLEM,
         "/dev/nvidia-uvm is missing", "modprobe nvidia-uvm"),
    Trap("all devices hidden", "k80", _hidden("", 0), "driver/visible-devices", PROBLEM, "hides 2 of 2", "unset"),
    Trap("-1 hides all", "k80", _hidden("-1", 0), "driver/visible-devices", PROBLEM, "'-1' hides 2 of 2", "unset"),
    Trap("one device hidden", "k80", _hidden("0", 1), "driver/visible-devices", WARNING, "hides 1 of 2", "unset"),
    Trap("updated and not rebooted", "k80", _updated_under_foot, "driver/library", PROBLEM, "470.239.06", "reboot"),
    Trap("PTX newer than the driver", "k80", _newer_ptx, "driver/ptx-isa", PROBLEM, "7.8", 'max_ptx_isa = "7.4"'),
    Trap("gcc too new", "k80", _gcc_too_new, "build/host-compiler", PROBLEM, "gcc 13 (gcc) is too new",
         "apt-get install -y gcc-10 g++-10"),
    Trap("gcc too new, another at hand", "k80", _gcc_too_new_with_another, "build/host-compiler", PROBLEM,
         "gcc 11 (gcc) is too new", "export NVCC_PREPEND_FLAGS='-ccbin gcc-10'"),
    Trap("no gcc", "k80", _no_gcc, "build/host-compiler", PROBLEM, "no gcc on PATH", "gcc-10"),
    Trap("a die fell off", "k80", _lost_die, "gpu/all-there", PROBLEM, "Tesla K80 at 0000:06:00.0", "xid"),
    Trap("compute mode Prohibited", "k80", _prohibited, "gpu/compute-mode", PROBLEM, "device 1", "-i 1 -c EXCLUSIVE"),
    Trap("persistence off", "k80", _smi_says("Exclusive_Process, Enabled", "Exclusive_Process, Disabled"),
         "gpu/persistence", WARNING, "device 0, 1", "nvidia-smi -pm 1"),
    Trap("ECC off", "k80", _smi_says("Enabled, 470", "Disabled, 470"), "gpu/ecc", WARNING, "off", "nvidia-smi -e 1"),
    Trap("cuda-bindings 12 on R470", "k80", _package("cuda-bindings", "12.9.1"), "python/cuda-bindings", PROBLEM,
         "needs R525", "cuda-bindings==11.8.*"),
    Trap("cuda-bindings 13 on R470", "k80", _package("cuda-bindings", "13.0.3"), "python/cuda-bindings", PROBLEM,
         "needs R580", "cuda-bindings==11.8.*"),
    Trap("pycuda without cuda.h", "k80", _pycuda_without_toolkit, "python/pycuda", WARNING, "libcurand", "cuda.h"),
    Trap("driver hangs", "k80", _set("driver", "did not end within 15 s"), "driver/library", UNKNOWN, "15 s", "dmesg"),
    Trap("driver crashes", "k80", _set("driver", "was killed by signal 11"), "driver/library", UNKNOWN, "signal 11",
         "dmesg"),
    Trap("a laptop's own card", "laptop", _laptops_own_card, "card/nouveau", WARNING, "nouveau", "blacklist"),
    Trap("no compiler", "laptop", _set("compilers", []), "build/compiler", WARNING, "no compiler of CUDA 11.4",
         "ssmtool toolchain install"),
    Trap("damaged compiler", "laptop", _damaged_compiler, "build/compiler", PROBLEM, "is damaged",
         "ssmtool toolchain install"),
    Trap("release that cannot make the target", "h200", _set("settings", {"cuda_release": "13.0"}), "build/compiler",
         PROBLEM, "CUDA 13.0 cannot target sm_37", "cuda_release"),
    Trap("no ptxas", "laptop", _set("ptxas", []), "build/ptxas", WARNING, "no ptxas", "ssmtool[compiler]"),
    Trap("ptxas of CUDA 13", "laptop", _set("ptxas", [["13.0.88", "/x/ptxas", "PATH"]]), "build/ptxas", WARNING,
         "ptxas 13.0.88", "ssmtool[compiler]"),
    Trap("no NumPy", "laptop", _package("numpy", None), "base/executor", WARNING, "numpy not installed", "executor"),
    Trap("LLVM does not load", "laptop", _set("imports", {"llvmlite": [1, "", "OSError: GLIBCXX_3.4.30 not found"]}),
         "base/executor", PROBLEM, "GLIBCXX", "--force-reinstall"),
    Trap("llvmlite too new", "laptop",
         lambda data: (data["packages"].update(llvmlite="0.52.0"),
                       data.update(requirements=["llvmlite<0.51,>=0.45; extra == 'executor'"])),
         "base/executor", PROBLEM, "llvmlite 0.52.0", "ssmtool[executor]"),
    Trap("a package of its own missing", "laptop", _package("msgspec", None), "base/packages", PROBLEM,
         "msgspec is missing", "pip install"),
    Trap("settings wrong", "laptop", _set("settings", "unknown key `targt`"), "base/settings", PROBLEM,
         "pyproject.toml:3", "docs/settings.md"),
    Trap("cache of another user", "laptop",
         lambda data: data["access"].update({data.get("cache", "/home/runner/.cache/ssmtool/execute"):
                                             ["0700", "root", "root", False, False]}),
         "base/cache", WARNING, "root's", "SSMTOOL_CACHE_DIR"),
    Trap("cache that others can write", "laptop",
         lambda data: data["access"].update({"/home/runner/.cache/ssmtool/execute":
                                             ["0777", "runner", "runner", True, True]}),
         "base/cache", WARNING, "0777", "chmod go-w"),
    Trap("disk full", "laptop", _set("free", 5 << 20), "base/disk", PROBLEM, "0.0 GiB", "du "),
    Trap("Python too old", "laptop", _set("place", {"version": [3, 8, 10]}), "base/python", PROBLEM, "3.8.10", "3.10"),
    Trap("another platform", "laptop", _set("place", {"platform": "darwin", "machine": "arm64"}), "base/python",
         WARNING, "darwin arm64", ""),
]  # fmt: skip


def _changed(trap: Trap) -> Report:
    data = load(trap.base)
    trap.change(data)
    return examine(Path("/project"), (), Recorded(data))


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_is_found_and_mended(trap: Trap) -> None:
    report = _changed(trap)
    check = next(each for each in report.checks if each.id == trap.id)
    assert check.verdict is trap.verdict
    text = f"{check.result.found} {check.result.means}"
    assert all(word in text for word in trap.found.split("|"))
    assert trap.mend in (check.result.mend or "")
    assert report.exit_code == (1 if trap.verdict is PROBLEM else 0)


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if trap.verdict is PROBLEM], ids=lambda trap: trap.name)
def test_the_cause_is_the_only_problem_and_the_headline(trap: Trap) -> None:
    report = _changed(trap)
    assert [check.id for check in report.problems] == [trap.id]
    assert report.summary.startswith(f"{trap.id}: ")


def test_a_requirement_makes_a_warning_a_problem() -> None:
    data = load("laptop")
    data["packages"]["numpy"] = None
    report = examine(Path("/project"), ("executor", "pycuda"), Recorded(data))
    assert [check.id for check in report.problems] == ["require/executor", "require/pycuda"]
    assert "cuda.h" in report.problems[1].result.found
    assert "toolkit" in str(report.problems[1].result.mend)


def test_an_nvcc_that_no_build_takes_is_only_a_warning() -> None:
    data = load("laptop")
    data["compilers"].append(["nvcc", "11.8.89", "/usr/local/cuda-11.8/bin/nvcc", "PATH", None])
    report = examine(Path("/project"), (), Recorded(data))
    check = next(check for check in report.checks if check.id == "build/host-compiler")
    assert (check.verdict, report.exit_code) == (WARNING, 0)
    assert "gcc 13 (gcc) is too new for nvcc 11.8.89, which takes gcc up to 11" in check.result.found


def test_settings_that_ask_for_nvrtc_do_not_need_the_host_compiler() -> None:
    data = load("k80")
    _gcc_too_new(data)
    data["settings"] = {"compiler": "nvrtc"}
    assert examine(Path("/project"), (), Recorded(data)).exit_code == 0


def test_a_card_that_nobody_uses_stays_a_warning_whatever_else_is_required() -> None:
    data = load("laptop")
    _laptops_own_card(data)
    assert examine(Path("/project"), ("ptxas",), Recorded(data)).exit_code == 0
    assert "card/nouveau" in {check.id for check in examine(Path("/project"), ("gpu",), Recorded(data)).problems}


def test_both_variables_set_and_the_library_is_the_cause() -> None:
    data = load("k80")
    _compat(data)
    data["environ"]["CUDA_VISIBLE_DEVICES"] = "0,1"
    data["driver_unhidden"] = dict(data["driver"])
    assert [check.id for check in examine(Path("/project"), (), Recorded(data)).problems] == ["driver/library"]
