"""One mutant tried: made, verified, and if that finds nothing, audited."""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from model import SOURCE, Mutant, RowError, mutate_ptx, mutate_source  # noqa: E402

from ssmtool.errors import ProductError, SsmtoolError  # noqa: E402

HEADER = ROOT / "generated" / "fc_cuda_ptx.h"
# Seconds for naming the mistake; the verdict does not wait for it.
_DIAGNOSIS = 2.0
# Thread-positions of a case that is tried on the CPU: less than a tenth of a second.
_WORK = 150_000
# The same of a case that is tried first, because it is made to expose a mistake.
_FIRST = 10_000


@dataclass
class Verdict:
    """What became of a mutant. `by` is empty where nothing caught it; `error` says that it could not be tried."""

    name: str
    by: str = ""
    says: str = ""
    error: str = ""
    not_tried: str = ""
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """Whether something caught it."""
        return bool(self.by)


def try_mutant(mutant: Mutant, device: str = "cpu") -> Verdict:
    """Make the mutant and try it; never raises for a bad mutant or a broken machine."""
    verdict = Verdict(mutant.name)
    started = time.perf_counter()
    try:
        if mutant.needs_card and device == "cpu":
            verdict.not_tried = "its case has 8.5 GiB of buffers and needs a GPU"
        else:
            _try(mutant, verdict, device)
    except (RowError, SsmtoolError) as error:
        verdict.error = str(error)
    verdict.seconds = time.perf_counter() - started
    return verdict


def _try(mutant: Mutant, verdict: Verdict, device: str) -> None:
    from ssmtool import ptx

    source, right, wrong = made(mutant)
    right_entries, wrong_entries = _entries(right), _entries(wrong)
    changed = frozenset(
        name for name, text in right_entries.items() if _placeless(wrong_entries.get(name)) != _placeless(text)
    )
    if not changed:
        raise RowError(f"{mutant.name}: the compiler makes the same PTX of it")
    try:
        module = ptx.parse(wrong)
        module.require_entries()
        for function in module.entries:
            function.check()
    except ProductError as error:
        verdict.by, verdict.says = "PTX front end", str(error)
        return
    # Relations compare kernels of both modules; the other is the right one.
    others = [ptx.parse(text) for name, text in _header().items() if name != source]
    _verify([module, *others], changed, verdict, device)
    if not verdict.by:
        _audit(module, changed, verdict)


def made(mutant: Mutant) -> tuple[str, str, str]:
    """The source that the mutant is of, the right PTX and the mutant's."""
    if mutant.in_source:
        text = (ROOT / mutant.kernel).read_text("utf-8")
        return mutant.kernel, _right_ptx(mutant.kernel), _compile(mutant.kernel, mutate_source(mutant, text))
    source = next((name for name, text in _header().items() if mutant.kernel in _entries(text)), SOURCE)
    right = _header()[source]
    body = _entries(right)[mutant.kernel] if mutant.kernel else right
    return source, right, mutate_ptx(mutant, right, body)


def _entries(text: str) -> dict[str, str]:
    from ssmtool.build.entries import split_entries

    return {entry.name: entry.text for entry in split_entries(text)}


def _placeless(text: str | None) -> str | None:
    """Without the kernel's place in the file, which labels carry: a kernel that is gone changes it for all after it."""
    return None if text is None else re.sub(r"\$L__BB\d+_", "$L__BB_", text)


@lru_cache(1)
def _header() -> dict[str, str]:
    """Source to PTX of each module in the checked-in header."""
    from ssmtool.header import read_header

    return {each.record.source: each.ptx for each in read_header(HEADER).modules}


@lru_cache
def _right_ptx(source: str) -> str:
    return _compile(source, (ROOT / source).read_text("utf-8"))


@lru_cache(1)
def _project() -> Any:
    from ssmtool.project import read_project

    return read_project(ROOT / "pyproject.toml")


@lru_cache(1)
def _compiler() -> Any:
    from ssmtool.toolchain import select_compiler

    return select_compiler(_project())


def _compile(source: str, text: str) -> str:
    from ssmtool.build.normalise import normalise
    from ssmtool.toolchain import CompileRequest

    request = CompileRequest(source=ROOT / source, text=text, root=ROOT, target=_project().settings.target)
    return normalise(_compiler().compile(request).ptx, ROOT.as_posix())


@lru_cache(1)
def _cases() -> tuple[Any, ...]:
    from ssmtool.golden import read_case

    return tuple(read_case(path) for path in sorted((ROOT / "golden").rglob("*.npz")))


def _verify(modules: list[Any], changed: frozenset[str], verdict: Verdict, device: str) -> None:
    """Cases of the changed kernels that expose mistakes, the quick ones, relations, then those that are not large."""
    from ssmtool.device import open_devices
    from ssmtool.verify import Options, Text, all_relations, run
    from ssmtool.verify.plan import CPU_BYTES, case_work
    from ssmtool.verify.quick import quick_cases

    card = device != "cpu"
    cases = [_trimmed(each, changed) for each in _cases() if changed & set(each.kernels)]
    cases = [each for each in cases if card or (case_work(each) <= _WORK and each.device_bytes <= CPU_BYTES)]
    exposing = [each for each in cases if each.meta.exposes and case_work(each) <= _FIRST]
    quick = [each for each in quick_cases(cases) if each not in exposing]
    rest = [each for each in cases if each not in exposing and each not in quick]
    names = frozenset(each.name for each in all_relations() if changed & set(each.entries))
    options = Options(check="all", rounds=2, names=names, diagnose=_DIAGNOSIS, stop_at_first=True)
    texts = [Text(each) for each in modules]
    with open_devices(device) as devices:
        for some in (exposing, quick, None, rest):
            outcome = run(texts, some or [], devices, relations=some is None, options=options)
            if _caught(outcome, verdict):
                return


def _trimmed(case: Any, changed: frozenset[str]) -> Any:
    """The case without its runs of kernels that are as they were: each mutant need not try those again."""
    import dataclasses

    import msgspec

    runs = [each for each in case.meta.runs if changed & set(each.entries)]
    return dataclasses.replace(case, meta=msgspec.structs.replace(case.meta, runs=runs))


def _caught(outcome: Any, verdict: Verdict) -> bool:
    from ssmtool.verify import Status

    for result in (*outcome.failed, *outcome.with_status(Status.UNCHECKED)):
        rule = next((each.rule for each in outcome.findings().findings if result.name in each.message), "not checked")
        verdict.by = f"{result.kind} {result.name}"
        verdict.says = next((words for run in result.runs for words in run.looks_like), "") or result.problem
        verdict.says = f"{rule.removeprefix('verify/')}: {verdict.says}"
        return True
    return False


def _audit(module: Any, changed: frozenset[str], verdict: Verdict) -> None:
    """The budgets of the project's settings, without those that need ptxas."""
    from ssmtool.audit.budgets import FROM_PTXAS, check_budgets
    from ssmtool.audit.inputs import Input
    from ssmtool.audit.kernels import audit

    found = check_budgets(_project().settings.budget, audit([Input("mutant", module)]), {}, whole=False)
    for finding in found.findings:
        limit = finding.rule.removeprefix("audit/over-budget-").replace("-", "_")
        if finding.kernel in changed and limit not in FROM_PTXAS:
            verdict.by, verdict.says = "audit-ptx", finding.message
            return


def start_worker(cache: str) -> None:
    """Once in each process: compiled kernels go to a folder of this run, not to the user's cache."""
    os.environ["SSMTOOL_CACHE_DIR"] = cache
