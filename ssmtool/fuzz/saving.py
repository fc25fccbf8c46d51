"""Failures as files and findings: the vector, both sides of a relation, the PTX, the command that repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from ssmtool import ptx
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Finding, Severity
from ssmtool.fuzz.batch import Subject
from ssmtool.fuzz.run import Found
from ssmtool.fuzz.vector import vector_of
from ssmtool.golden import GoldenCase
from ssmtool.verify import Result, Status, Text
from ssmtool.verify.diagnosis import Purse, explain
from ssmtool.verify.result import EFFECT, RunResult
from ssmtool.verify.saving import save_failures


@dataclass
class Saved:
    """What became of a failure: its files, the vector among them, and what verify will say of it.

    `shown` is false where only the fuzzer sees it: the bits are wrong, and within every tolerance that fits.
    """

    found: Found
    paths: list[Path] = field(default_factory=list)
    vector: Path | None = None
    module: Path | None = None
    shown: bool = False
    looks_like: list[str] = field(default_factory=list)
    problem: str | None = None

    @property
    def command(self) -> str | None:
        """What repeats it, where a vector does."""
        if self.vector is None or self.module is None or not self.shown:
            return None
        device = quote(self.found.device)
        return f"ssmtool verify {quote(str(self.vector))} --ptx {quote(str(self.module))} --device {device}"


def save(found: Found, subject: Subject, seed: int, folder: Path | None, purse: Purse) -> Saved:
    """Write the failure; explain it. A folder that cannot be written is told in `problem`, and nothing is lost."""
    saved = Saved(found)
    failure = found.failure
    case, saved.shown = vector_of(failure, seed, found.round)
    saved.looks_like = list(failure.looks_like)
    # Known mistakes and patterns are about values; last bits fit many of them by chance.
    if case is not None and failure.after and case.after and failure.kind.what != "bits":
        saved.looks_like += explain(case, case.meta.runs[0], failure.after, failure.results, purse)
    if folder is None:
        return saved
    modules = [Text(ptx.parse(text), dict(names)) for text, names in subject.texts]
    try:
        saved.paths = save_failures(folder, [_result(found, case)], modules, beside=True)
    except SsmtoolError as error:
        saved.problem = str(error)
        return saved
    saved.vector = next((path for path in saved.paths if path.suffix == ".npz" and ".got." not in path.name), None)
    saved.module = _module(modules, saved.paths, failure.kernels)
    return saved


def _result(found: Found, case: GoldenCase | None) -> Result:
    """The failure in the shape that `verify` saves."""
    failure = found.failure
    name = case.meta.name if case is not None else f"{failure.target}-{failure.kind.what}-{failure.kind.where}"
    run = failure.run.name if failure.run is not None else ""
    result = Result("fuzz", name, failure.shape, failure.kernels, found.device, Status.WRONG, case=case)
    result.runs = [RunResult(run, failure.kernels, faults=[failure.message])]
    result.arrays = dict(failure.arrays)
    result.arrays |= {f"{run}.{each.name}": failure.after[each.name] for each in failure.results}
    return result


def _module(modules: Sequence[Text], paths: Sequence[Path], kernels: Sequence[str]) -> Path | None:
    """The PTX file that has all of the kernels."""
    files = [path for path in paths if path.suffix == ".ptx"]
    for text, path in zip(modules, files, strict=False):
        if set(kernels) <= {entry.name for entry in text.module.entries}:
            return path
    return None


def finding(saved: Saved, seed: int, again: str) -> Finding:
    """The failure as reports have it. `again` is the command that fuzzes the same rounds once more."""
    found, failure = saved.found, saved.found.failure
    words = [f"{failure.target} ({failure.shape}): {failure.message}", *saved.looks_like]
    words.append(f"Found in round {found.round} of seed {seed} on {found.device}")
    if found.also:
        words.append(f"It shows in {', '.join(found.also)} as well")
    if failure.case is not None and not saved.shown:
        words.append("It is within the tolerances of verify: only the contract's order of operations shows it")
    if saved.problem:
        words.append(f"Not saved: {saved.problem}")
    what = failure.kind.what
    rule = what if what in ("value", "bits", "nonfinite", "unwritten", "overwritten", "relation") else "fault"
    return Finding(
        rule=f"fuzz/{rule}",
        severity=Severity.ERROR,
        message=". ".join(words),
        kernel=", ".join(failure.kernels),
        path=str(saved.vector) if saved.vector else None,
        effect=EFFECT,
        fix=saved.command or again,
    )
