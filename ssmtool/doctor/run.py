"""Every check in its order, and the report that they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ssmtool.device.drivers import cuda_release, dotted
from ssmtool.doctor import checks_base, checks_build, checks_card, checks_driver, checks_gpu, require
from ssmtool.doctor.facts import Facts, try_fact
from ssmtool.doctor.model import CARD, Checked, Report, Result, Verdict, unknown
from ssmtool.doctor.system import System, ThisMachine

# Causes stand before what follows from them: the first problem is the one to mend first. A check that has nothing to
# say about a machine returns None.
CHECKS: tuple[tuple[str, str, Callable[[Facts], Result | None]], ...] = (
    ("base/python", "Python", checks_base.python),
    ("base/packages", "ssmtool's own packages", checks_base.packages),
    ("base/settings", "settings", checks_base.settings),
    ("base/disk", "disk space", checks_base.disk),
    ("base/cache", "cache of compiled kernels", checks_base.cache),
    ("base/executor", "CPU executor", checks_base.executor),
    ("build/compiler", "compiler", checks_build.compiler),
    ("build/other-compilers", "other compilers", checks_build.others),
    ("build/host-compiler", "host compiler of nvcc", checks_build.host_compiler),
    ("build/ptxas", "ptxas", checks_build.ptxas),
    ("card/present", "cards", checks_card.present),
    ("card/nouveau", "nouveau", checks_card.nouveau),
    ("card/passed-through", "virtual machine", checks_card.passed_through),
    ("card/container", "container", checks_card.container),
    ("card/driver-branch", "driver for Kepler", checks_card.kepler_driver),
    ("card/kernel-module", "kernel module", checks_card.kernel_module),
    ("card/device-files", "device files", checks_card.device_files),
    ("driver/library", "driver library", checks_driver.library),
    ("driver/visible-devices", "CUDA_VISIBLE_DEVICES", checks_driver.visible),
    ("driver/starts", "driver", checks_driver.starts),
    ("driver/ptx-isa", "PTX ISA", checks_driver.ptx_isa),
    ("driver/ageing", "age of the card", checks_driver.ageing),
    ("gpu/target", "target", checks_gpu.target),
    ("gpu/all-there", "all devices", checks_gpu.dies),
    ("gpu/compute-mode", "compute mode", checks_gpu.compute_mode),
    ("gpu/persistence", "persistence mode", checks_gpu.persistence),
    ("gpu/ecc", "ECC", checks_gpu.ecc),
    ("gpu/nvidia-smi", "nvidia-smi", checks_gpu.smi),
    ("python/cuda-bindings", "cuda-bindings", checks_gpu.cuda_bindings),
    ("python/pycuda", "pycuda", checks_gpu.pycuda),
)


def examine(folder: Path, required: tuple[str, ...] = (), system: System | None = None) -> Report:
    """Examine this machine, or a recorded one, for the project of `folder`. Raises nothing."""
    facts = Facts(system or ThisMachine(), folder, required)
    facts.prefetch()
    checks = []
    for name, title, check in CHECKS:
        result = _guarded(check, facts)
        if result is not None:
            checks.append(Checked(name, title, result))
    for word in required:
        result = _guarded(lambda each, word=word: require.check(each, word), facts)  # type: ignore[misc]
        if result is not None:
            checks.append(Checked(f"require/{word}", f"--require {word}", result))
    by_id = {each.id: each for each in checks}
    return Report(tuple(checks), _links(facts, by_id), _machine(facts))


def _guarded(check: Callable[[Facts], Result | None], facts: Facts) -> Result | None:
    """The check's result. What it did not foresee is an answer too: a doctor that falls over helps nobody."""
    try:
        return check(facts)
    except Exception as error:
        return unknown(f"the check itself failed: {type(error).__name__}: {error}", "this is a fault of ssmtool")


def _links(facts: Facts, checks: dict[str, Checked]) -> dict[str, str | None]:
    """Each link of the chain, with the reason for which it cannot be checked here."""

    def unless(*names: str) -> str | None:
        for name in names:
            check = checks.get(name)
            if check is not None and check.verdict is not Verdict.OK:
                return check.result.found
        return None

    host = checks.get("build/host-compiler")
    nvcc_only = [item for item in try_fact(lambda: facts.compilers) or [] if item.kind == "nvrtc" and item.info] == []
    built = unless("build/compiler") or (
        host.result.found if host and host.verdict is Verdict.PROBLEM and nvcc_only else None
    )
    settings = unless("base/packages", "base/settings")
    target = [gpu for gpu in facts.gpus if gpu.capability == facts.needs.capability]
    card = None if target else f"no {facts.needs.target} device here"
    return {
        "source -> PTX": settings or built,
        "PTX -> header -> loader": settings,
        "PTX -> resources": settings or unless("build/ptxas"),
        "launch -> numbers": settings or unless("base/executor"),
        CARD: settings or card,
    }


def _machine(facts: Facts) -> dict[str, Any]:
    """The facts themselves, for machines."""
    place, driver = facts.system.place(), facts.driver
    compilers = try_fact(lambda: facts.compilers) or []
    assemblers = try_fact(lambda: facts.assemblers) or []
    return {
        "python": ".".join(map(str, place.version)),
        "platform": f"{place.platform} {place.machine}",
        "target": facts.needs.target,
        "target_cards": sum(gpu.capability == facts.needs.capability for gpu in facts.gpus),
        "compilers": [
            {
                "kind": item.kind,
                "version": item.info.version if item.info else None,
                "path": str(item.path),
                "origin": item.origin,
                "why_not": item.why,
            }
            for item in compilers
        ],
        "ptxas": [{"version": item.version, "path": str(item.path), "origin": item.origin} for item in assemblers],
        "host_compilers": [str(each) for each in facts.host_compilers],
        "cards": [{"address": card.address, "name": card.name, "driver": card.driver} for card in facts.cards],
        "kernel_module": facts.module_release,
        "driver": {
            "library": driver.file,
            "release": driver.release,
            "cuda": dotted(cuda_release(driver.version)) if driver.version else None,
            "error": driver.code or None,
        },
        "gpus": [
            {
                "index": gpu.index,
                "name": gpu.name,
                "target": gpu.target,
                "memory_bytes": gpu.memory,
                "compute_mode": gpu.compute_mode,
                "ecc": gpu.ecc,
                "persistence": gpu.persistence,
                "address": gpu.address,
            }
            for gpu in facts.gpus
        ],
        "packages": {name: facts.system.package(name) for name in ("numpy", "llvmlite", "cuda-bindings", "pycuda")},
        "container": facts.container,
    }
