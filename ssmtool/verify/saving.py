"""A failure as files that stand by themselves: the vector with the failing run only, what was got, and the PTX."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.files import write_atomic
from ssmtool.golden import GoldenCase, case_bytes
from ssmtool.golden.container import npz_bytes
from ssmtool.verify.loaded import Text
from ssmtool.verify.result import Result, Status


def save_failures(
    folder: Path, results: Sequence[Result], texts: Sequence[Text], *, beside: bool = False
) -> list[Path]:  # fmt: skip
    """Write every wrong result; the paths. Raises SsmtoolError where the folder refuses.

    `NAME.npz` is a vector like any other (`ssmtool verify NAME.npz --ptx module.ptx`); `NAME.got.npz` has the arrays
    that its runs left, `RUN.BUFFER` each, or both sides of a relation. PTX files are `module.ptx`, `module-2.ptx`, ...;
    with `beside` they are named by their text, so that they stay beside what other runs have saved.
    """
    wrong = [each for each in results if each.status is Status.WRONG]
    if not wrong:
        return []
    written = []
    for number, text in enumerate(texts):
        data = text.module.text.encode()
        path = folder / ("module.ptx" if number == 0 else f"module-{number + 1}.ptx")
        if beside:
            path = folder / f"module-{hashlib.sha256(data).hexdigest()[:8]}.ptx"
        write_atomic(path, data)
        written.append(path)
    for result in wrong:
        stem = re.sub(r"[^A-Za-z0-9_.+-]+", "-", f"{result.name}-{result.device}")
        if result.case is not None:
            path = folder / f"{stem}.npz"
            write_atomic(path, case_bytes(_failing(result.case, result)))
            written.append(path)
        if result.arrays:
            path = folder / f"{stem}.got.npz"
            write_atomic(path, npz_bytes({_word(name): _plain(array) for name, array in result.arrays.items()}))
            written.append(path)
    return written


def _failing(case: GoldenCase, result: Result) -> GoldenCase:
    """The case with its wrong runs only."""
    wrong = {run.name for run in result.runs if not run.ok}
    runs = tuple(run for run in case.meta.runs if run.name in wrong) or case.meta.runs
    return GoldenCase(msgspec.structs.replace(case.meta, runs=runs), case.before, case.after)


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", name)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array)
