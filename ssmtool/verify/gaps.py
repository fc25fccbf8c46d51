"""What a verification did not look at, in few words: kernels that nothing launches, vectors of kernels not there."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from ssmtool.audit.names import listed
from ssmtool.findings import Skip
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.verify.result import Result

_GENERATOR = "ssmtool.golden"
# Kernels that a summary names; `--format json` has every case with its own.
_NAMED = 4


def product_kernels(kernels: Iterable[str]) -> bool:
    """Whether any of these is one of the product's, which the relations and the checked-in vectors speak of."""
    from ssmtool.verify.contract import ENTRIES

    return not set(kernels).isdisjoint(ENTRIES)


def unlaunched(kernels: Sequence[str], results: Iterable[Result], ptx: str) -> list[Skip]:
    """Kernels of the PTX that nothing launches: a verification that is silent about them is no pass of theirs."""
    launched = {name for result in results for name in result.kernels}
    names = [name for name in dict.fromkeys(kernels) if name not in launched]
    if not names:
        return []
    return [
        Skip(
            f"numbers of {listed(names)}",
            "no vector and no relation launches it" if len(names) == 1 else "no vector and no relation launches them",
            f"ssmtool golden new {names[0]} --from {ptx}",
        )
    ]


def vectors_for(kernels: Sequence[str], header: str) -> str:
    """The command that makes vectors: of the product's kernels all of them, of others a script for the first."""
    if not kernels or product_kernels(kernels):
        return "ssmtool golden make"
    return f"ssmtool golden new {kernels[0]} --from {header}"


def missing_kernels(results: Sequence[Result], kernels: Collection[str]) -> list[Skip]:
    """One skip for all the cases on a device whose kernels are among none of `kernels`, those of the PTX."""
    found = []
    by_device: dict[str, list[Result]] = {}
    for each in results:
        if each.missing:
            by_device.setdefault(each.device, []).append(each)
    for device, cases in by_device.items():
        names = list(dict.fromkeys(each.missing for each in cases))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        found.append(
            Skip(
                f"{plural(len(cases), 'case')} on {device}",
                f"the PTX has no kernel {', '.join(names[:_NAMED])}{more}{_meant(names, kernels)}",
                _mend(cases, results, kernels),
            )
        )
    return found


def _meant(names: Sequence[str], kernels: Collection[str]) -> str:
    close = difflib.get_close_matches(names[0], sorted(kernels), 1) if len(names) == 1 else []
    return f"; did you mean {close[0]}?" if close else ""


def _mend(cases: Sequence[Result], results: Sequence[Result], kernels: Collection[str]) -> str:
    """The product's vectors in a project without its kernels are to go; any other is of a kernel that is to come."""
    paths = [each.path for each in cases if each.path]
    made = [each.case is not None and each.case.meta.provenance.generator == _GENERATOR for each in cases]
    if len(paths) == len(cases) and all(made) and kernels and not product_kernels(kernels):
        folders = {PurePath(path).parent for path in paths}
        others = {PurePath(each.path) for each in results if each.path and not each.missing}
        whole = not any(folder in other.parents for folder in folders for other in others)
        return " ".join(["rm -r", *sorted(str(each) for each in folders)] if whole else ["rm", *sorted(set(paths))])
    few = ", ".join(sorted(set(paths))[:_NAMED])
    return f"build the PTX with it, or delete what launches it{f': {few}' if few else ''}"
