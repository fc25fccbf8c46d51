"""Compilers, the host compiler that nvcc needs, and ptxas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssmtool.doctor.facts import Facts, try_fact
from ssmtool.doctor.hostcompiler import allows_any, chosen_word, headers_of, limits_of
from ssmtool.doctor.model import Result, ok, problem, unknown, warning
from ssmtool.errors import SsmtoolError
from ssmtool.settings_form import table

if TYPE_CHECKING:
    from ssmtool.toolchain.model import Found

INSTALL = "ssmtool toolchain install"


def compiler(facts: Facts) -> Result:
    """A compiler of the pinned release that makes the target."""
    found = try_fact(lambda: facts.compilers)
    release, target = facts.needs.release, facts.needs.target
    if found is None:
        return unknown("the compilers cannot be looked for: ssmtool's own packages are not all here")
    fitting = [item for item in found if item.info and item.info.release == release]
    broken = [item for item in found if item.info is None]
    mend = INSTALL if release == "11.4" else f"install CUDA {release}"
    means = "the source cannot be compiled here; build --check (by hashes), registry and audit-ptx work"
    if not fitting and broken:
        shown = "; ".join(f"{item.path}: {item.why}" for item in broken)
        return problem(f"no compiler of CUDA {release} works: {shown}", means, mend)
    if not fitting:
        others = ", ".join(item.title for item in found if item.info) or "nothing"
        return warning(f"no compiler of CUDA {release}; found: {others}", means, mend)
    from ssmtool.toolchain.model import cannot_target

    reason = cannot_target(release, target)
    if reason:
        return problem(reason, "no build can succeed", f"set cuda_release in {table()} to one that can, such as 11.4")
    setting = None if isinstance(facts.project, SsmtoolError) else facts.project.settings.nvcc
    named = [item for item in broken if item.origin == "setting nvcc"]
    if setting and named:
        return problem(f"the setting nvcc names {named[0].path}: {named[0].why}", "build stops there", "correct `nvcc`")
    kinds = (
        "both kinds: each has a text of its own for one source" if len({item.kind for item in fitting}) > 1 else None
    )
    return ok("; ".join(item.title for item in fitting), kinds)


def others(facts: Facts) -> Result | None:
    """Compilers that a build here would not take, and why; nothing to say without any."""
    found = try_fact(lambda: facts.compilers) or []
    told = [f"{item.title}: {item.why}" for item in found if item.info and item.why]
    broken = [f"{item.path} ({item.origin}): {item.why}" for item in found if item.info is None]
    if broken:
        return warning("; ".join([*broken, *told]), "it is never taken", "repair or remove it")
    return ok(f"not taken: {'; '.join(told)}") if told else None


def host_compiler(facts: Facts) -> Result | None:
    """Whether nvcc takes the gcc or clang that it would start; asked only of an nvcc that can make the target."""
    found = try_fact(lambda: facts.compilers)
    if not found:
        return None
    from ssmtool.toolchain.model import cannot_target

    able = [
        item
        for item in found
        if item.kind == "nvcc" and item.info and not cannot_target(item.info.release, facts.needs.target)
    ]
    if not able:
        return None
    item = next((each for each in able if each.info and each.info.release == facts.needs.release), able[0])
    return _fit(facts, item)


def _fit(facts: Facts, item: Found) -> Result:
    assert item.info is not None
    word = chosen_word(facts.system.environ)
    have = [each for each in facts.host_compilers if each.word == word]
    header = next((text for path in headers_of(str(item.path)) if (text := facts.system.read(path))), None)
    limits = limits_of(header, item.info.release)
    newest = limits[0] if limits else 10
    install = f"sudo apt-get install -y gcc-{newest} g++-{newest}"
    use = f"export NVCC_PREPEND_FLAGS='-ccbin gcc-{newest}'"
    if not have:
        means = f"{item.info.title} cannot compile: it starts {word} for the host's part"
        fails = problem if _taken(facts, item) else warning
        return fails(f"no {word} on PATH", means, f"{install} && {use}")
    chosen = have[0]
    if limits is None:
        return unknown(f"{chosen}; which ones {item.info.title} takes is not known here")
    most = limits[0] if chosen.kind == "gcc" else limits[1]
    source = "its own crt/host_config.h" if header else "NVIDIA's installation guide"
    if chosen.major <= most:
        return ok(f"{chosen}; {item.info.title} takes {chosen.kind} up to {most}")
    if allows_any(facts.system.environ):
        return warning(
            f"{chosen} is beyond {chosen.kind} {most}, and -allow-unsupported-compiler is set", "on your risk"
        )
    # An nvcc that no build here would take is no reason to call the machine broken.
    fails = problem if _taken(facts, item) else warning
    spare = next((each for each in facts.host_compilers if each.kind == "gcc" and each.major <= limits[0]), None)
    return fails(
        f"{chosen} is too new for {item.info.title}, which takes {chosen.kind} up to {most} (by {source})",
        f'nvcc stops with "unsupported GNU version! gcc versions later than {limits[0]} are not supported!"',
        f"export NVCC_PREPEND_FLAGS='-ccbin {spare.word}'" if spare else f"{install} && {use}",
    )


def _taken(facts: Facts, item: Found) -> bool:
    """Whether a build takes this nvcc: it is of the pinned release, and the settings do not ask for NVRTC."""
    kind = "auto" if isinstance(facts.project, SsmtoolError) else facts.project.settings.compiler
    return item.info is not None and item.info.release == facts.needs.release and kind != "nvrtc"


def ptxas(facts: Facts) -> Result:
    """A ptxas that assembles the product's PTX for the target."""
    found = try_fact(lambda: facts.assemblers)
    if found is None:
        return unknown("ptxas cannot be looked for: ssmtool's own packages are not all here")
    from ssmtool.toolchain.model import cannot_target, ptx_isa_of

    isa = facts.ptx_version or facts.needs.ptx_isa
    fitting = [
        item
        for item in found
        if not cannot_target(item.release, facts.needs.target) and ptx_isa_of(item.release) >= isa
    ]
    if fitting:
        return ok("; ".join(item.title for item in fitting))
    shown = ", ".join(item.title for item in found) or "none"
    return warning(
        f"no ptxas for {facts.needs.target}; found: {shown}",
        "stack frames, spills and registers are not estimated; only the PTX's text is audited",
        "pip install 'ssmtool[compiler]'",
    )
