"""Python, ssmtool's own packages, settings, cache and disk."""

from __future__ import annotations

import re

from ssmtool.doctor.facts import Facts, try_fact
from ssmtool.doctor.model import Result, ok, problem, unknown, warning
from ssmtool.errors import SsmtoolError

_SCARCE, _LOW = 64 << 20, 1 << 30
# numpy>=1.26; extra == 'executor'    click>=8.1    tomli>=2.0; python_version < "3.11"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*(?P<limits>[^;]*)(?:;\s*(?P<marker>.*))?$")
_LIMIT = re.compile(r"(>=|<=|==|<|>|!=|~=)\s*([\w.*+!-]+)")
EXECUTOR = ("numpy", "llvmlite")
# Without these no command starts; the whole list is in the package's metadata.
_CORE = ("click", "msgspec", "platformdirs")


def python(facts: Facts) -> Result:
    """Python itself, and whether ssmtool and its compilers run on this platform."""
    place = facts.system.place()
    found = f"Python {'.'.join(map(str, place.version))} on {place.platform} {place.machine}"
    if place.version < (3, 10):
        return problem(
            found, "ssmtool needs 3.10 or newer", "python3.10 -m venv .venv && .venv/bin/pip install ssmtool"
        )
    if (place.platform, place.machine) != ("linux", "x86_64"):
        return warning(
            found,
            "the embedded compiler and the wheel with ptxas exist for x86-64 Linux only; build --check, registry and"
            " audit-ptx work here",
        )
    return ok(found)


def packages(facts: Facts) -> Result:
    """The packages that ssmtool always needs, and whether their versions are ones that it takes."""
    try:
        wanted = facts.system.requirements()
    except LookupError:
        if missing := [name for name in _CORE if facts.system.package(name) is None]:
            shown = f"{', '.join(missing)} missing: this Python has no ssmtool installed"
            return problem(shown, "commands of ssmtool end in an import error", "pip install .")
        return unknown("ssmtool is not installed as a package, so it names no dependencies", None, "pip install .")
    wrong, count = [], 0
    for name, limits in requirements(wanted, None, facts.system.place().version):
        count += 1
        version = facts.system.package(name)
        if version is None:
            wrong.append(f"{name} is missing")
        elif not fits(version, limits):
            wrong.append(f"{name} {version} is not {limits}")
    if wrong:
        return problem("; ".join(wrong), "commands of ssmtool end in an import error", "pip install --upgrade ssmtool")
    return ok(f"all {count} that ssmtool always needs")


def executor(facts: Facts) -> Result:
    """NumPy and LLVM, which run kernels on the CPU."""
    mend = "pip install 'ssmtool[executor]'"
    versions = {name: facts.system.package(name) for name in EXECUTOR}
    missing = [name for name, version in versions.items() if version is None]
    without = "no kernel can be run on the CPU (ssmtool run, verify); build, registry and audit-ptx work"
    if missing:
        return warning(f"{' and '.join(missing)} not installed", without, mend)
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    wanted = try_fact(facts.system.requirements) or []
    for name, limits in requirements(wanted, "executor", facts.system.place().version):
        version = versions.get(name)
        if version and not fits(version, limits):
            return problem(f"{name} {version} is not {limits}", without, mend)
    ran = facts.executor_import
    if ran.failure or ran.code:
        return problem(f"{shown} do not load: {ran.failure or ran.last_words}", without, f"{mend} --force-reinstall")
    return ok(shown)


def settings(facts: Facts) -> Result:
    """The project's settings, if there are any."""
    project = facts.project
    if not isinstance(project, SsmtoolError):
        needs, count = facts.needs, len(project.settings.module)
        isa = ".".join(map(str, needs.ptx_isa))
        name = project.settings_file.name if project.settings_file else "no file"
        return ok(f"{name}: {needs.target}, CUDA {needs.release}, PTX ISA <= {isa}, modules: {count}")
    if project.path is None:
        return ok("none here: ssmtool's own defaults are taken (sm_37, CUDA 11.4)", "ssmtool init writes some")
    return problem(
        str(project), "no command runs here", project.hint or "correct the file; docs/settings.md has every key"
    )


def cache(facts: Facts) -> Result:
    """Whether compiled kernels can be kept."""
    folder = try_fact(facts.system.cache_folder)
    if folder is None:
        return unknown("the cache's place cannot be told", None, "export SSMTOOL_CACHE_DIR=/path/to/a/folder")
    nearest, access = folder, facts.system.access(folder)
    while access is None and nearest not in ("/", "."):
        nearest = nearest.rpartition("/")[0] or "/"
        access = facts.system.access(nearest)
    means = "every run compiles its kernels again, which costs seconds"
    mend = "export SSMTOOL_CACHE_DIR=/path/to/a/folder"
    if access is None:
        return unknown(f"{folder} cannot be looked at", means, mend)
    if not access.writable:
        return warning(
            f"{nearest} is {access.owner}'s, and {facts.system.place().user} may not write there", means, mend
        )
    if nearest == folder and access.mode & 0o022:
        return warning(
            f"{folder} can be written by others (mode {access.mode:04o})",
            "machine code that somebody else put there could be run as yours",
            f"chmod go-w {folder}",
        )
    names = facts.system.folder(folder) or []
    kept = sum(name.endswith(".kernel") for name in names)
    return ok(f"{folder}: {kept} compiled kernels" if nearest == folder else f"{folder}: not there yet")


def disk(facts: Facts) -> Result:
    """Room for what builds and runs write."""
    places = {"project": facts.needs.root, "cache": try_fact(facts.system.cache_folder)}
    free = {
        name: amount
        for name, path in places.items()
        if path is not None and (amount := facts.system.free_bytes(path)) is not None
    }
    if not free:
        return unknown("free space cannot be told")
    shown = ", ".join(f"{amount / (1 << 30):.1f} GiB for the {name}" for name, amount in free.items())
    least = min(free.values())
    if least < _SCARCE:
        return problem(f"{shown} free", "a report or a header cannot be written", "free some space: du -xh / | sort -h")
    if least < _LOW:
        return warning(f"{shown} free", "compiled kernels and vectors may not fit", "free some space")
    return ok(f"{shown} free")


def requirements(lines: list[str], extra: str | None, version: tuple[int, int, int]) -> list[tuple[str, str]]:
    """(name, limits) of the dependencies of an extra, None for those that always hold."""
    found = []
    for line in lines:
        match = _REQUIREMENT.match(line.strip())
        if match is None:
            continue
        marker = (match["marker"] or "").replace('"', "'")
        named = re.search(r"extra\s*==\s*'([^']*)'", marker)
        below = re.search(r"python_version\s*<\s*'(\d+)\.(\d+)'", marker)
        if (named[1] if named else None) != extra:
            continue
        if below and version[:2] >= (int(below[1]), int(below[2])):
            continue
        found.append((match["name"], match["limits"].strip()))
    return found


def fits(version: str, limits: str) -> bool:
    """Whether a version keeps to `>=0.45,<0.51`; what is not a plain number is not held against it."""
    have = _numbers(version)
    for sign, word in _LIMIT.findall(limits):
        want = _numbers(word)
        size = max(len(have), len(want))
        a, b = have + (0,) * (size - len(have)), want + (0,) * (size - len(want))
        if "*" in word:
            a, b = have[: len(want)], want
        keeps = {">=": a >= b, "<=": a <= b, "==": a == b, "<": a < b, ">": a > b, "!=": a != b}.get(sign, True)
        if not keeps:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
