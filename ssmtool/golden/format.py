"""Case files: `Meta` as JSON in the array `case`, beside it `before.NAME` and `after.NAME`.

Everything that a consumer relies on is checked here, once: `read_case` returns a case whose launches name buffers that
are there, whose arrays have the shapes and types that are promised, and whose limits are numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.files import read_bytes
from ssmtool.golden.case import FORMAT, CaseError, GoldenCase, Meta
from ssmtool.golden.container import MAX_FILE_BYTES, npz_bytes, read_npz
from ssmtool.golden.validate import check_case

_META = "case"
_MAX_META = 4 << 20


def read_case(path: Path | str) -> GoldenCase:
    """The case in a file. Raises CaseError, or SsmtoolError when the file cannot be read at all."""
    path = Path(path)
    try:
        if path.is_file() and (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise CaseError(f"has {size} bytes; a case has at most {MAX_FILE_BYTES}", path=path)
    except OSError as error:
        raise CaseError(f"cannot be read: {error.strerror or error}", path=path) from None
    return parse_case(read_bytes(path), path)


def parse_case(data: bytes, path: Path | None = None) -> GoldenCase:
    """The case in an .npz file's bytes; `path` is for messages. Raises CaseError."""
    arrays = read_npz(data, path)
    meta = _parse_meta(arrays.pop(_META, None), path)
    before = {name[len("before.") :]: array for name, array in arrays.items() if name.startswith("before.")}
    after = {name[len("after.") :]: array for name, array in arrays.items() if name.startswith("after.")}
    strange = [name for name in arrays if not name.startswith(("before.", "after."))]
    if strange:
        raise CaseError(
            f"holds an array {strange[0]!r}; the names are 'case', 'before.BUFFER', 'after.BUFFER'", path=path
        )
    case = GoldenCase(meta, before, after, path)
    check_case(case)
    return case


def case_bytes(case: GoldenCase) -> bytes:
    """A case's file, the same bytes on every machine. Raises CaseError for what `parse_case` would refuse."""
    check_case(case)
    text = msgspec.json.format(msgspec.json.encode(case.meta), indent=1)
    arrays: dict[str, NDArray[Any]] = {_META: np.frombuffer(text, np.uint8)}
    for name in case.meta.buffers:
        for when, held in (("before", case.before), ("after", case.after)):
            if name in held:
                arrays[f"{when}.{name}"] = held[name]
    return npz_bytes(arrays)


def _parse_meta(array: NDArray[Any] | None, path: Path | None) -> Meta:
    if array is None:
        raise CaseError("holds no array 'case', so it is not a golden case", path=path)
    if array.dtype != np.uint8 or array.ndim != 1 or array.size > _MAX_META:
        raise CaseError("array 'case' must be the bytes of a JSON text (one axis of uint8, at most 4 MB)", path=path)
    text = array.tobytes()
    try:
        form = msgspec.json.decode(text, type=_Form).format
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CaseError(f"case: {error}", path=path) from None
    if form != FORMAT:
        raise CaseError(f"is of format {form[:40]!r}; this release reads {FORMAT}", path=path)
    try:
        return msgspec.json.decode(text, type=Meta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CaseError(f"case: {error}", path=path) from None


class _Form(msgspec.Struct):
    """The one key that tells whether the others can be understood."""

    format: str
