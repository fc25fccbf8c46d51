"""The driver's library: which one is found, whether it starts, and what it takes."""

from __future__ import annotations

from collections.abc import Callable

from ssmtool.device.codes import describe
from ssmtool.device.drivers import (
    KEPLER,
    cuda_of_branch,
    cuda_release,
    dotted,
    last_branch,
    ptx_isa_of_cuda,
)
from ssmtool.doctor import checks_card
from ssmtool.doctor.facts import Driver, Facts
from ssmtool.doctor.model import Result, Verdict, ok, problem, unknown, warning
from ssmtool.settings_form import table

_NO_DEVICE = 100


def library(facts: Facts) -> Result | None:
    """Whether the libcuda that is found is the driver's own, and of the kernel module's release."""
    driver = facts.driver
    if driver.failure:
        return unknown(driver.failure, None, "dmesg | grep -i -E 'nvrm|xid'")
    if driver.opened is None:
        if not facts.module_release:
            return None
        if facts.container:
            return unknown("no libcuda.so.1: see card/container")
        said = driver.errors[0] if driver.errors else "no reason given"
        if any("cannot open" not in each for each in driver.errors):
            return problem(
                f"libcuda.so.1 is here and does not load: {said}", "no kernel can be run on the card", "ldconfig -p"
            )
        return problem(
            f"the kernel module is {facts.module_release}, and there is no libcuda.so.1 ({said})",
            "no kernel can be run on the card",
            f"sudo apt-get install -y libnvidia-compute-{facts.branch}-server && sudo ldconfig",
        )
    return _stub(facts, driver) or _compat(facts, driver) or _release(facts, driver) or ok(_place(driver))


def _place(driver: Driver) -> str:
    return driver.file or "libcuda"


def _stub(facts: Facts, driver: Driver) -> Result | None:
    if driver.code != 34 and "/stubs/" not in (driver.file or ""):
        return None
    return problem(
        f"{driver.file} is the toolkit's stub, made for linking alone",
        "every call to the driver fails with error 34, CUDA_ERROR_STUB_LIBRARY",
        _out_of_path(facts, "stubs"),
    )


def _compat(facts: Facts, driver: Driver) -> Result | None:
    """A forward-compatibility library: of a newer CUDA than the kernel module, for some families of cards only."""
    own = cuda_of_branch(facts.branch) if facts.module_release and facts.branch else None
    newer = own is not None and driver.version and cuda_release(driver.version) > own
    if "compat" not in (driver.file or "") and not newer:
        return None
    module = f"a kernel module of {facts.module_release}" if facts.module_release else "no kernel module that is known"
    found = f"{driver.file} is a compatibility library (cuda-compat) on {module}"
    mend = _out_of_path(facts, "compat")
    if facts.kepler or not driver.starts:
        card = facts.kepler.name if facts.kepler else "card"
        return problem(
            found, f"it hides the {card}: such libraries know newer data-centre cards alone (error 803, 804)", mend
        )
    return warning(found, "the driver's own library is the one that a K80 would use", mend)


def _release(facts: Facts, driver: Driver) -> Result | None:
    if not (facts.module_release and driver.release) or facts.module_release == driver.release:
        return None
    return problem(
        f"{driver.file} is of {driver.release}, the loaded kernel module of {facts.module_release}",
        'the driver was updated under a running system: "Driver/library version mismatch", error 803',
        "sudo reboot",
    )


def _out_of_path(facts: Facts, word: str) -> str:
    """The command that takes folders with `word` out of where the library was found."""
    folders = [each for each in facts.system.environ.get("LD_LIBRARY_PATH", "").split(":") if each]
    if any(word in each for each in folders):
        kept = ":".join(each for each in folders if word not in each)
        return f"export LD_LIBRARY_PATH={kept}" if kept else "unset LD_LIBRARY_PATH"
    return f"grep -rl {word} /etc/ld.so.conf.d   # take that line out, then: sudo ldconfig"


def starts(facts: Facts) -> Result | None:
    """Whether the driver starts and shows a card."""
    driver = facts.driver
    if driver.failure or driver.opened is None:
        return None
    cuda = f", CUDA {dotted(cuda_release(driver.version))}" if driver.version else ""
    if driver.starts:
        return ok(
            "; ".join(f"{gpu.name} ({gpu.target}, {gpu.memory / (1 << 30):.1f} GiB)" for gpu in driver.gpus) + cuda
        )
    said = describe(driver.call, driver.code) if driver.code > 0 else (driver.call or "the driver shows no card")
    causes: tuple[tuple[str, Callable[[Facts], Result | None]], ...] = (
        ("driver/visible-devices", visible),
        ("card/driver-branch", checks_card.kepler_driver),
        ("card/nouveau", checks_card.nouveau),
        ("card/passed-through", checks_card.passed_through),
        ("card/container", checks_card.container),
        ("card/kernel-module", checks_card.kernel_module),
        ("card/device-files", checks_card.device_files),
        ("driver/library", library),
    )
    for name, check in causes:
        result = check(facts)
        if result is not None and result.verdict in (Verdict.PROBLEM, Verdict.WARNING):
            return unknown(f"{said}: see {name}")
    if not facts.cards and not facts.module_release and driver.code in (0, _NO_DEVICE):
        return ok(f"a driver library is installed{cuda}, and there is no card", "the CPU executor runs the kernels")
    return problem(said, "no kernel can be run on the card", "sudo dmesg | grep -i -E 'nvrm|xid'")


def visible(facts: Facts) -> Result | None:
    """Whether CUDA_VISIBLE_DEVICES hides cards."""
    value = facts.system.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None or facts.driver.failure:
        return None
    all_of_them = facts.driver_unhidden
    shown, real = len(facts.gpus), len(all_of_them.gpus) if all_of_them else 0
    if real > shown:
        text = f"CUDA_VISIBLE_DEVICES={value!r} hides {real - shown} of {real} devices"
        return (warning if shown else problem)(
            text, "verify runs on what is left" if shown else "the driver shows no card", "unset CUDA_VISIBLE_DEVICES"
        )
    return ok(f"CUDA_VISIBLE_DEVICES={value!r} hides nothing that is here")


def ptx_isa(facts: Facts) -> Result | None:
    """Whether the driver takes PTX as new as the product's."""
    takes = ptx_isa_of_cuda(facts.driver.version) if facts.driver.version and facts.gpus else None
    if takes is None:
        return None
    header, wanted = facts.ptx_version, facts.needs.ptx_isa
    worst = max(wanted, header or wanted)
    cuda = dotted(cuda_release(facts.driver.version))
    if worst <= takes:
        what = f"the header's PTX is {dotted(header)}" if header else f"max_ptx_isa is {dotted(wanted)}"
        return ok(f"{what}; this driver (CUDA {cuda}) takes {dotted(takes)} and older")
    what = f"the header's PTX is of ISA {dotted(worst)}" if header == worst else f"max_ptx_isa is {dotted(worst)}"
    kepler = f"; R{KEPLER.branch} is the last driver for this card" if facts.kepler else ""
    return problem(
        f"{what}, and this driver (CUDA {cuda}) takes {dotted(takes)} and older{kepler}",
        "loading fails with error 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        f'set max_ptx_isa = "{dotted(takes)}" in {table()}, then: ssmtool build',
    )


def ageing(facts: Facts) -> Result | None:
    """Cards that newer drivers have dropped; Kepler has a check of its own."""
    old = [(gpu, last) for gpu in facts.gpus if (last := last_branch(gpu.capability)) and gpu.capability >= (5, 0)]
    if not old:
        return None
    gpu, (family, branch) = old[0]
    return ok(f"{gpu.name}: R{branch} is the last driver branch for {family}", "keep the driver from being replaced")
