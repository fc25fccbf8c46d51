"""Which groups a benchmark has: the product's own, and vectors; from the words of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ssmtool.bench.cases import fits_any, known_names
from ssmtool.bench.vectors import vector_group
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Skip
from ssmtool.verify.sources import Vectors, fits, read_vectors
from ssmtool.wording import plural

if TYPE_CHECKING:
    from ssmtool.bench.cases import Group

# Names of kernels and vectors that an error lists.
_LISTED = 12


@dataclass
class Chosen:
    """`ours` are patterns for the product's groups, None where none of them was asked for (an empty one: all).

    `vectors` are groups of vectors; `skips` what was asked for and cannot be timed.
    """

    ours: tuple[str, ...] | None = None
    vectors: list[Group] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)


def choose(
    words: Sequence[str],
    parameters: Mapping[str, Sequence[str]],
    golden: Callable[[], Path | None],
    show: Callable[[Path], str] = str,
) -> Chosen:
    """What `words` ask for: vector files and folders, names or patterns of the product's cases, of vectors, of kernels.

    `parameters` are those of the PTX's kernels; `golden` is asked for the project's folder of vectors, where a word
    needs it. Without words: the product's groups where the PTX has their kernels, else all vectors of the project.

    Raises SsmtoolError where that is nothing at all, or a word fits nothing.
    """
    ours = known_names(list(parameters))
    chosen = Chosen()
    if not words:
        if ours:
            chosen.ours = ()
        else:
            _add(chosen, _project(golden, show), parameters)
            if not chosen.vectors and not chosen.skips:
                raise _nothing(parameters)
        return chosen
    files = [Path(word) for word in words if word not in parameters and _is_path(word)]
    patterns = [word for word in words if Path(word) not in files]
    mine = tuple(word for word in patterns if fits_any(ours, word))
    chosen.ours = mine or None
    if files:
        _add(chosen, read_vectors(files, show), parameters)
    rest = [word for word in patterns if word not in mine]
    if rest:
        vectors = _project(golden, show)
        kept = []
        for word in rest:
            found = [case for case in vectors.cases if fits([word], case.meta.name, case.kernels)]
            if not found:
                raise _unknown(word, ours, vectors, parameters)
            kept += [case for case in found if case not in kept]
        vectors.cases = kept
        _add(chosen, vectors, parameters)
    return chosen


def _is_path(word: str) -> bool:
    """Whether a word is a file or a folder rather than a name: one that is not there too, by its ending."""
    return word.endswith(".npz") or (bool(word) and "\0" not in word and Path(word).exists())


def _project(golden: Callable[[], Path | None], show: Callable[[Path], str]) -> Vectors:
    folder = golden()
    if folder is None or not folder.is_dir() or not any(folder.rglob("*.npz")):
        return Vectors()
    return read_vectors([folder], show)


def _add(chosen: Chosen, vectors: Vectors, parameters: Mapping[str, Sequence[str]]) -> None:
    chosen.skips += [Skip(each.name, each.reason or "damaged", each.fix) for each in vectors.damaged]
    known = {group.title for group in chosen.vectors}
    for case in vectors.cases:
        try:
            group = vector_group(case, parameters)
        except SsmtoolError as error:
            chosen.skips.append(Skip(f"vector {case.meta.name}", error.message, error.hint))
            continue
        if group.title in known:  # a file, and its folder too
            continue
        known.add(group.title)
        chosen.vectors.append(group)
        if left := len(case.meta.runs) - len(group.cases):
            what = f"{plural(left, 'run')} of vector {case.meta.name}"
            chosen.skips.append(Skip(what, "this PTX has not all of their kernels", "ssmtool build, or --ptx FILE"))


def _nothing(parameters: Mapping[str, Sequence[str]]) -> SsmtoolError:
    entry = next(iter(parameters), "KERNEL")
    return SsmtoolError(
        "nothing to time: a kernel of one's own is timed by the launches of a golden vector, and there is none",
        hint=f"ssmtool golden new {entry}, or ssmtool bench FILE.npz",
    )


def _unknown(word: str, ours: Sequence[str], vectors: Vectors, parameters: Mapping[str, Sequence[str]]) -> SsmtoolError:
    if word in parameters:
        return SsmtoolError(
            f'no golden vector launches "{word}", so there is nothing to time', hint=f"ssmtool golden new {word}"
        )
    names = [
        *ours,
        *(name for name in parameters if any(name in case.kernels for case in vectors.cases) and name not in ours),
    ]
    names += [case.meta.name for case in vectors.cases] if len(names) < _LISTED else []
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    there = ", ".join(names[:_LISTED]) + more if names else "nothing: no vector launches a kernel of this PTX"
    return SsmtoolError(f'"{word}" is nothing that is timed; there is: {there}')
