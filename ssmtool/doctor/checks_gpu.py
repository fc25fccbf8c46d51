"""The cards as they are set up, and the Python packages that drive them."""

from __future__ import annotations

from ssmtool.device.drivers import cuda_release, dotted
from ssmtool.doctor.facts import Facts
from ssmtool.doctor.model import Result, ok, problem, warning
from ssmtool.settings_form import table

# Newest cuda-bindings that a driver of this CUDA major takes: their release notes name the driver that each needs.
_NEEDS_DRIVER = {11: (450, "11.0"), 12: (525, "12.0"), 13: (580, "13.0")}
# CUcomputemode of cuda.h
_DEFAULT, _PROHIBITED, _EXCLUSIVE = 0, 2, 3
BINDINGS_FOR_KEPLER = "pip install 'cuda-bindings==11.8.*'"
_TOOLKITS = ("/usr/local/cuda", "/usr/local/cuda-11.4", "/usr")


def target(facts: Facts) -> Result | None:
    """Whether the cards run the product's PTX, and one is the card that it is made for."""
    if not facts.gpus:
        return None
    want, needs = facts.needs.capability, facts.needs.target
    same = [gpu for gpu in facts.gpus if gpu.capability == want]
    if same:
        return ok(f"{len(same)} of {len(facts.gpus)} devices are {needs}")
    newer = [gpu for gpu in facts.gpus if gpu.capability > want]
    names = ", ".join(f"{gpu.name} ({gpu.target})" for gpu in facts.gpus)
    if newer:
        return ok(f"{names}: runs {needs} PTX", f"what it shows holds for {newer[0].target}; the {needs} card confirms")
    return warning(f"{names}: older than {needs}", f"PTX for {needs} does not load there", f"set target in {table()}")


def dies(facts: Facts) -> Result | None:
    """Whether the driver shows every device that is plugged in: a K80 is two."""
    plugged = len(facts.cards)
    if not facts.gpus or plugged <= len(facts.gpus):
        return None
    if facts.system.environ.get("CUDA_VISIBLE_DEVICES") is not None or facts.container:
        return None  # said by the checks of those
    seen = {gpu.address for gpu in facts.gpus}
    lost = [card for card in facts.cards if card.address not in seen]
    return problem(
        f"{plugged} devices are plugged in, the driver shows {len(facts.gpus)}; missing: "
        + ", ".join(f"{card.name} at {card.address}" for card in lost),
        "verify runs on what is left; a K80 that lost a die most often lacks power or fell off the bus (Xid 79)",
        "sudo dmesg | grep -i -E 'nvrm|xid'",
    )


def compute_mode(facts: Facts) -> Result | None:
    """Whether this process may use the cards."""
    if not facts.gpus:
        return None
    closed = [str(gpu.index) for gpu in facts.gpus if gpu.compute_mode == _PROHIBITED]
    if closed:
        return problem(
            f"device {', '.join(closed)}: compute mode Prohibited",
            "every context fails with error 46, CUDA_ERROR_DEVICE_UNAVAILABLE",
            f"sudo nvidia-smi -i {','.join(closed)} -c EXCLUSIVE_PROCESS",
        )
    if all(gpu.compute_mode == _EXCLUSIVE for gpu in facts.gpus):
        return ok("Exclusive_Process: one process at a time on each device")
    return ok("Default: several processes may share a device", "on a runner: sudo nvidia-smi -c EXCLUSIVE_PROCESS")


def persistence(facts: Facts) -> Result | None:
    """Whether the driver stays loaded between two runs."""
    off = [str(gpu.index) for gpu in facts.gpus if gpu.persistence is False]
    if off:
        return warning(
            f"device {', '.join(off)}: persistence mode is off",
            "the card is set up anew for every process: seconds each time, and settings such as clocks are forgotten",
            "sudo nvidia-smi -pm 1   # at every boot: sudo systemctl enable --now nvidia-persistenced",
        )
    return ok("on") if any(gpu.persistence for gpu in facts.gpus) else None


def ecc(facts: Facts) -> Result | None:
    """Whether a flipped bit in the card's memory would be noticed."""
    off = [str(gpu.index) for gpu in facts.gpus if gpu.ecc is False]
    if off:
        return warning(
            f"device {', '.join(off)}: ECC is off",
            "a flipped bit in memory looks like a kernel's error",
            "sudo nvidia-smi -e 1 && sudo reboot",
        )
    return ok("on") if any(gpu.ecc for gpu in facts.gpus) else None


def smi(facts: Facts) -> Result | None:
    """Whether nvidia-smi works where the driver does."""
    ran = facts.smi
    if ran is None:
        return warning("nvidia-smi is not here", "persistence mode cannot be told") if facts.gpus else None
    if ran.code == 0 and ran.failure is None:
        return None
    said = ran.failure or ran.last_words
    if facts.gpus:
        return warning(f"nvidia-smi fails: {said}", "modes and ECC cannot be told", "nvidia-smi")
    return None  # the driver's own checks say why


def cuda_bindings(facts: Facts) -> Result | None:
    """Whether this driver is new enough for cuda-bindings, which imports all the same and fails at a call."""
    version = facts.system.package("cuda-bindings") or facts.system.package("cuda-python")
    if version is None:
        return ok("not installed", "cards are driven through ctypes, which needs no package") if facts.gpus else None
    major = int(version.split(".")[0]) if version.split(".")[0].isdecimal() else 0
    needs = _NEEDS_DRIVER.get(major)
    branch = facts.branch if facts.module_release else None
    if needs is None or branch is None:
        return ok(f"cuda-bindings {version}; there is no driver to hold it against") if branch is None else ok(version)
    if branch < needs[0]:
        cuda = dotted(cuda_release(facts.driver.version)) if facts.driver.version else "older"
        return problem(
            f"cuda-bindings {version} needs R{needs[0]} (CUDA {needs[1]}); the driver is R{branch} (CUDA {cuda})",
            "it imports, and calls that this driver lacks fail; --device cuda takes it before ctypes",
            BINDINGS_FOR_KEPLER if branch < 525 else f"pip install 'cuda-bindings<{major}'",
        )
    return ok(f"cuda-bindings {version}, on driver R{branch}")


def pycuda(facts: Facts) -> Result | None:
    """Whether pycuda loads; it is built from source, which needs a toolkit's cuda.h."""
    version = facts.system.package("pycuda")
    header = _cuda_h(facts)
    if version is None:
        if not facts.gpus:
            return None
        have = f"could be built ({header})" if header else "could not be built: no cuda.h of a toolkit"
        return ok(f"not installed; {have}", "not needed: cuda-bindings or ctypes drive the card")
    ran = facts.system.run([facts.system.place().executable, "-I", "-c", "import pycuda.driver"], timeout_s=30.0)
    if ran.code == 0 and ran.failure is None:
        return ok(f"pycuda {version}")
    said = ran.failure or ran.last_words
    mend = "CUDA_ROOT=/usr/local/cuda-11.4 pip install --force-reinstall --no-cache-dir --no-binary pycuda pycuda"
    if not header:
        mend = f"sudo apt-get install -y cuda-toolkit-11-4 && {mend}   # it needs cuda.h, which is not here"
    return warning(f"pycuda {version} does not load: {said}", "--device pycuda cannot be used; --device cuda can", mend)


def pycuda_missing(facts: Facts) -> tuple[str, str]:
    """(why, what mends it) where pycuda was asked for and is not here."""
    build = "CUDA_ROOT=/usr/local/cuda-11.4 PATH=/usr/local/cuda-11.4/bin:$PATH pip install pycuda"
    if _cuda_h(facts):
        return "it is not installed; it builds from source, with the toolkit that is here", "pip install pycuda"
    why = "it is not installed, and its build would stop at `fatal error: cuda.h: No such file or directory`"
    return why, f"install the CUDA 11.4 toolkit, then: {build}"


def _cuda_h(facts: Facts) -> str | None:
    folders = [facts.system.environ.get(name) for name in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")]
    places = [f"{folder}/include/cuda.h" for folder in (*folders, *_TOOLKITS) if folder]
    return next((path for path in places if facts.system.access(path) is not None), None)
