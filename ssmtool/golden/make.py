"""Writing the product's vectors into a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.files import write_atomic
from ssmtool.golden.cases import all_makers, matching
from ssmtool.golden.format import case_bytes

MAX_FOLDER_BYTES = 40_000_000


@dataclass(frozen=True)
class Made:
    """One vector: its file, how many bytes it has, whether the file is new or changed."""

    name: str
    path: Path
    size: int
    changed: bool


def make(folder: Path, patterns: tuple[str, ...] = ()) -> Iterator[Made]:
    """Make every case that fits a pattern (all without), and write those that changed; one result after each.

    The same bytes on every machine. Raises SsmtoolError for a pattern that fits nothing, and where nothing can be
    written.
    """
    makers = all_makers()
    for pattern in patterns:
        if not matching(list(makers), (pattern,)):
            raise SsmtoolError(f"no case is named {pattern}", hint="ssmtool golden show")
    for name in matching(list(makers), patterns):
        data = case_bytes(makers[name]())
        path = path_of(folder, name)
        yield Made(name, path, len(data), write_atomic(path, data))


def path_of(folder: Path, name: str) -> Path:
    """The file of the case of this name."""
    return folder / f"{name}.npz"


def files_in(folder: Path) -> list[Path]:
    """Every vector below the folder, in the order of their names. Raises SsmtoolError where there is none."""
    found = sorted(folder.rglob("*.npz"))
    if not found:
        raise SsmtoolError(
            "holds no golden vectors (*.npz)", path=folder,
            hint="ssmtool golden new KERNEL, or ssmtool golden make for those of the product",
        )  # fmt: skip
    return found
