"""`--require`: what has to be here, so that a runner which lost it fails instead of checking less."""

from __future__ import annotations

import re
from collections.abc import Callable

from ssmtool.doctor import checks_base, checks_build, checks_gpu
from ssmtool.doctor.facts import Facts, try_fact
from ssmtool.doctor.model import Result, Verdict, ok, problem
from ssmtool.errors import SsmtoolError

WORDS = "gpu, sm_37, sm_37:2 (two devices), driver-470, nvcc-11.4, nvrtc-11.4, ptxas, executor, cuda-bindings, pycuda"
_TARGET = re.compile(r"sm_(?P<target>\d{2,3})(?::(?P<count>\d{1,2}))?")
_COMPILER = re.compile(r"(?P<kind>nvcc|nvrtc)(?:-(?P<release>\d+\.\d+))?")
_DRIVER = re.compile(r"driver-(?P<branch>\d{3})")


def parse(text: str) -> tuple[str, ...]:
    """The words of `gpu,sm_37`. Raises SsmtoolError for one that means nothing."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in _PLAIN and not any(each.fullmatch(word) for each in (_TARGET, _COMPILER, _DRIVER)):
            raise SsmtoolError(f"--require {word}: not one of {WORDS}", hint="ssmtool doctor --help")
    if not words:
        raise SsmtoolError("--require names nothing", hint="ssmtool doctor --help")
    return words


def check(facts: Facts, word: str) -> Result:
    """Whether the thing that `word` names is here."""
    if match := _TARGET.fullmatch(word):
        return _devices(facts, f"sm_{match['target']}", int(match["count"] or 1))
    if match := _COMPILER.fullmatch(word):
        return _compiler(facts, match["kind"], match["release"])
    if match := _DRIVER.fullmatch(word):
        return _branch(facts, int(match["branch"]))
    return _PLAIN[word](facts)


def _gpu(facts: Facts) -> Result:
    if facts.gpus:
        return ok(", ".join(gpu.name for gpu in facts.gpus))
    return problem(
        "the CUDA driver shows no card",
        "nothing can be run on one",
        "ssmtool doctor: its checks named card/ and driver/ say why",
    )


def _devices(facts: Facts, target: str, count: int) -> Result:
    have = [gpu for gpu in facts.gpus if gpu.target == target]
    if len(have) >= count:
        return ok(f"{len(have)} devices: {', '.join(gpu.name for gpu in have)}")
    there = ", ".join(f"{gpu.name} ({gpu.target})" for gpu in facts.gpus) or "no card at all"
    return problem(
        f"{len(have)} of {count} {target} devices; there is {there}",
        None,
        "run it on the machine with that card; ssmtool doctor says what this one has",
    )


def _compiler(facts: Facts, kind: str, release: str | None) -> Result:
    found = [item for item in try_fact(lambda: facts.compilers) or [] if item.kind == kind]
    fitting = [item for item in found if item.info and release in (None, item.info.release)]
    if fitting:
        return ok("; ".join(item.title for item in fitting))
    shown = "; ".join(item.title if item.info else f"{item.path}: {item.why}" for item in found) or "none"
    mend = f"install CUDA {release or '11.4'} and set CUDA_HOME, or put its bin folder on PATH"
    if kind == "nvrtc":
        mend = (
            checks_build.INSTALL if release in (None, "11.4") else f"pip install 'nvidia-cuda-nvrtc-cu11=={release}.*'"
        )
    return problem(f"no {kind}{f' {release}' if release else ''}; found: {shown}", None, mend)


def _branch(facts: Facts, branch: int) -> Result:
    release = facts.module_release or facts.driver.release
    if release and facts.branch == branch:
        return ok(f"driver {release}")
    return problem(
        f"the driver is {f'{release}' if release else 'not there, or does not tell its release'}, not R{branch}",
        None,
        f"sudo apt-get install -y nvidia-driver-{branch}-server && sudo reboot",
    )


def _passes(check: Callable[[Facts], Result]) -> Callable[[Facts], Result]:
    """A check of the table that must come out as ok."""

    def strictly(facts: Facts) -> Result:
        result = check(facts)
        return result if result.verdict is Verdict.OK else problem(result.found, result.means, result.mend)

    return strictly


def _cuda_bindings(facts: Facts) -> Result:
    if facts.system.package("cuda-bindings") is None:
        return problem("cuda-bindings is not installed", None, checks_gpu.BINDINGS_FOR_KEPLER)
    result = checks_gpu.cuda_bindings(facts)
    return result or ok("installed")


def _pycuda(facts: Facts) -> Result:
    if facts.system.package("pycuda") is None:
        why, mend = checks_gpu.pycuda_missing(facts)
        return problem(f"no pycuda: {why}", None, mend)
    return _passes(lambda each: checks_gpu.pycuda(each) or ok("installed"))(facts)


_PLAIN: dict[str, Callable[[Facts], Result]] = {
    "gpu": _gpu,
    "ptxas": _passes(checks_build.ptxas),
    "executor": _passes(checks_base.executor),
    "cuda-bindings": _cuda_bindings,
    "pycuda": _pycuda,
}
