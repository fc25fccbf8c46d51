"""Whether a vector is whole, is what the generator makes today, and expects what the reference computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.files import read_bytes
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.golden.build import CONTRACT
from ssmtool.golden.case import CaseError, GoldenCase
from ssmtool.golden.cases import all_makers
from ssmtool.golden.compare import compare
from ssmtool.golden.format import case_bytes, read_case
from ssmtool.golden.mistakes import BY_NAME, rejected
from ssmtool.golden.reference import KERNELS, run
from ssmtool.golden.validate import unedited

GENERATOR = "ssmtool.golden"
# (rule, message, fix, effect)
Wrong = Callable[..., None]
_EFFECT = "a kernel would be measured against the wrong numbers"


def check_files(
    paths: Iterable[Path], folder: Path | None = None, *, mistakes: bool = False
) -> tuple[Outcome, list[GoldenCase]]:
    """What is wrong with the files, and the cases of those that could be read.

    `folder` is where the names of its files count from. `mistakes` also sees that each case fails what it exposes.
    """
    outcome, cases = Outcome(findings=[], skips=[], required_skips=[]), []
    for path in paths:
        try:
            case = read_case(path)
        except SsmtoolError as error:
            outcome.findings.append(
                Finding(
                    "golden/damaged",
                    Severity.ERROR,
                    error.message,
                    path=str(path),
                    effect="nothing is verified by it",
                    fix=error.hint,
                )
            )
            continue
        cases.append(case)
        check_one(case, outcome, folder, mistakes=mistakes)
    return outcome, cases


def check_one(case: GoldenCase, outcome: Outcome, folder: Path | None = None, *, mistakes: bool = False) -> None:
    """Add what is wrong with a case to `outcome`."""
    meta, path = case.meta, str(case.path) if case.path else None

    def wrong(rule: str, message: str, fix: str | None = None, effect: str | None = _EFFECT) -> None:
        outcome.findings.append(
            Finding(f"golden/{rule}", Severity.ERROR, f"{meta.name}: {message}", kernel=case.kernels[0], path=path,
                    effect=effect, fix=fix)
        )  # fmt: skip

    if folder is not None and case.path is not None and case.path.is_relative_to(folder):
        named = case.path.relative_to(folder).with_suffix("").as_posix()
        if named != meta.name:
            wrong("misnamed", f"the file is named {named}", effect="reports name a file that is not there")
    if unedited(meta):
        wrong(
            "unedited",
            f"its title is still {meta.title!r}: nobody has edited the script that wrote it",
            "write the formula and the title in the script, and run it again",
            "zeros would be taken for what the kernel must compute",
        )
        return
    for name in meta.exposes:
        if name not in BY_NAME:
            wrong(
                "unknown-mistake",
                f"exposes {name!r}, which is no mistake that is known",
                "ssmtool golden show --mistakes",
            )
    unknown = [entry for entry in case.kernels if entry not in KERNELS]
    if unknown:
        outcome.skips.append(
            Skip(meta.name, f"no reference is known for {', '.join(unknown)}: only its form was checked")
        )
        return
    if meta.contract != CONTRACT:
        wrong("contract", f"is of the kernels' contract {meta.contract!r}, this release knows {CONTRACT!r}")
        return
    if meta.provenance.generator == GENERATOR:
        _check_made(case, wrong)
    else:
        _check_reference(case, wrong)
    if mistakes:
        for name in meta.exposes:
            if name in BY_NAME and not rejected(case, BY_NAME[name]):
                wrong("not-exposed", f"passes with {BY_NAME[name].says}", effect="that mistake would not be found")


def _check_made(case: GoldenCase, wrong: Wrong) -> None:

    maker = all_makers().get(case.meta.name)
    if maker is None:
        wrong("no-such-case", "the generator no longer makes it", f"rm {case.path}" if case.path else None)
        return
    made = case_bytes(maker())
    held = read_bytes(case.path) if case.path else case_bytes(case)
    if made != held:
        wrong("stale", "is not what the generator makes", f"ssmtool golden make --only {case.meta.name}")


def _check_reference(case: GoldenCase, wrong: Wrong) -> None:
    """Another's vector for one of the product's kernels: what it expects, by its own tolerances."""
    for each in case.meta.runs:
        try:
            results = compare(case, run(case, each))
        except CaseError as error:
            wrong("launch", f"run {each.name!r}: {error.message}")
            return
        for result in results:
            if not result.ok:
                at = f"; {result.worst}" if result.worst else ""
                wrong("reference", f"run {each.name!r}: the reference ends with another {result.name}: "
                      f"{', '.join(result.reasons)}{at}")  # fmt: skip
