"""What is verified against what: vectors from files and folders, PTX from a file or the project's checked-in header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.findings import Finding, Severity
from ssmtool.golden import GoldenCase, read_case
from ssmtool.golden.validate import unedited
from ssmtool.project import Project
from ssmtool.verify.loaded import Text
from ssmtool.verify.result import Result, Status

_VERIFIED = "verified is the PTX in the header, which the source does not make"


@dataclass
class Vectors:
    """Cases, and the files that are none: a result each, so that the others still run."""

    cases: list[GoldenCase] = field(default_factory=list)
    damaged: list[Result] = field(default_factory=list)


def read_vectors(
    paths: Sequence[Path], show: Callable[[Path], str] = str, hint: str = "ssmtool golden make"
) -> Vectors:
    """The cases of files and, for folders, of every `.npz` below.

    Raises SsmtoolError for a folder that holds none; `hint` is the command that makes some.
    """
    found = Vectors()
    names: dict[str, Path] = {}
    for path in paths:
        files = sorted(path.rglob("*.npz")) if path.is_dir() else [path]
        # What --save-failure keeps beside a vector is none.
        files = [each for each in files if not each.name.endswith(".got.npz") or each == path]
        if not files:
            raise SsmtoolError(
                "this folder holds no golden vector (.npz)", path=show(path), hint=hint
            )  # fmt: skip
        for file in files:
            _read(file, show, names, found)
    return found


def _read(file: Path, show: Callable[[Path], str], names: dict[str, Path], found: Vectors) -> None:
    try:
        case = read_case(file)
        if unedited(case.meta):
            raise SsmtoolError(
                f"its title is still {case.meta.title!r}: nobody has edited the script that wrote it", path=file
            )
        if (other := names.setdefault(case.meta.name, file)) != file:
            raise SsmtoolError(f"has the name of another vector, {case.meta.name} ({show(other)})", path=file)
    except SsmtoolError as error:
        error.path = None
        found.damaged.append(
            Result("file", show(file), "a golden vector", (), "any device", Status.UNCHECKED, reason=str(error),
                   fix=error.hint or f"ssmtool golden check {show(file)}", path=show(file))
        )  # fmt: skip
        return
    found.cases.append(case)


def read_ptx(path: str, show: Callable[[Path], str] = str) -> list[Text]:
    """The PTX modules of a `.ptx`, or of a C file with PTX in its strings. Raises as `read_input`."""
    from ssmtool.audit.inputs import read_input

    return [Text(each.module, each.parameters) for each in read_input(path, show)]


def header_findings(project: Project) -> list[Finding]:
    """Warnings, where the header that is verified is not what the source makes: said, never silently used."""
    from ssmtool.build.freshness import check_freshness

    outcome = check_freshness(project).outcome
    found = [
        Finding("verify/stale-header", Severity.WARNING, f"{_VERIFIED}: {each.message}", path=each.path,
                line=each.line, effect="what the next build makes is not verified", fix="ssmtool build")
        for each in outcome.findings
    ]  # fmt: skip
    found += [
        Finding("verify/stale-header", Severity.WARNING, f"does the source make this PTX? Not known: {each.reason}",
                path=project.settings.header, fix=each.fix)
        for each in outcome.required_skips
    ]  # fmt: skip
    return found


def fits(patterns: Sequence[str], name: str, kernels: Iterable[str] = ()) -> bool:
    """Whether a case or relation is asked for: by name or its beginning up to a `/`, by kernel, by shell pattern."""
    words = (name, *kernels)
    return not patterns or any(
        fnmatchcase(each, pattern) or each.startswith(f"{pattern}/") for pattern in patterns for each in words
    )
