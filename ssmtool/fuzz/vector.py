"""A failing round as a golden vector that `ssmtool verify` fails, and that `ssmtool golden check` accepts.

Its expectation and tolerance take in everything that is right, with the reference in float64 among it, and leave out
what the kernel left. The plainest that does is taken: the tolerance of the kernel's own vectors, equal bits, one in
units in the last place, and last one whose middle is moved, so that what is wrong lies just outside of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.failure import Failure
from ssmtool.golden import Buffer, GoldenCase, Policy, case_bytes, compare_array
from ssmtool.golden.case import Provenance, is_poison
from ssmtool.golden.reference import knows, reference_hash, run

Array = NDArray[Any]
Arrays = dict[str, Array]
_NAME = "fuzz"


def vector_of(failure: Failure, seed: int, number: int) -> tuple[GoldenCase | None, bool]:
    """The vector, None where the failure has no case; and whether verify fails it by its numbers.

    A fault is a vector that verify fails by the same fault, whatever it expects.
    """
    if failure.case is None or failure.run is None:
        return None, False
    case = replace(failure.case, meta=msgspec.structs.replace(failure.case.meta, runs=(failure.run,)))
    known = knows(case)
    exact = run(case, failure.run) if known else failure.want
    if not failure.after:
        return _named(_fill(case, exact, {}), failure, seed, number, known=known), True
    wrong = [result.name for result in failure.results]
    first = wrong[0] if wrong else ""
    for expected, policy in _candidates(failure, case, exact, first):
        made = _fill(case, {**exact, first: expected}, {first: policy})
        if _separates(made, failure, exact, first):
            return _named(made, failure, seed, number, known=known), True
    return _named(_fill(case, exact, {}), failure, seed, number, known=known), False


def smaller(failure: Failure | None, than: Failure) -> bool:
    """Whether a failure may stand for one that it was shrunk from: of its kind, and seen by verify if that one was."""
    return failure is not None and failure.kind == than.kind and (_shown(failure) or not _shown(than))


def _shown(failure: Failure) -> bool:
    """Whether a vector can show it to verify. It always can, but for last bits that are within what fits."""
    if failure.shown is None:
        failure.shown = failure.kind.what != "bits" or vector_of(failure, 0, 0)[1]
    return failure.shown


def _candidates(failure: Failure, case: GoldenCase, exact: Arrays, name: str) -> Iterator[tuple[Array, Policy | None]]:
    """What to expect of the wrong buffer, and by which tolerance (None: that of the case), the plainest first."""
    got, low, high = failure.after[name], failure.low[name], failure.high[name]
    yield exact[name], None
    if case.meta.buffers[name].after != "expected" or got.dtype != np.float32:
        return
    yield exact[name], Policy(exact=True)
    top, bottom = _line(np.fmax(high, exact[name])), _line(np.fmin(low, exact[name]))
    usable = np.isfinite(got) & np.isfinite(exact[name]) & ~is_poison(exact[name])
    if not usable.any():
        return
    width = int(((top - bottom)[usable]).max())
    yield (
        exact[name],
        Policy(max_ulp=int(np.maximum(top - _line(exact[name]), _line(exact[name]) - bottom)[usable].max())),
    )
    reach = -(-width // 2)
    middle = np.where(_line(got) > top, top - reach, np.where(_line(got) < bottom, bottom + reach, (top + bottom) // 2))
    yield np.where(usable, _number(middle), exact[name]).astype(np.float32), Policy(max_ulp=reach)


def _line(array: Array) -> Array:
    """Each number's place among all of fp32, -0 and 0 next to each other."""
    bits = np.ascontiguousarray(array, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(2**31) - 1 - bits, bits)


def _number(line: Array) -> Array:
    return np.where(line < 0, -(2**31) - 1 - line, line).astype(np.int32).view(np.float32)


def _separates(made: GoldenCase, failure: Failure, exact: Arrays, name: str) -> bool:
    """Whether what is right passes, and what the kernel left does not."""
    try:
        rights = [failure.want, failure.low, failure.high, exact]
        return not compare_array(made, name, failure.after[name]).ok and all(
            compare_array(made, name, each[name]).ok for each in rights
        )
    except ValueError:
        return False


def _fill(case: GoldenCase, expected: Arrays, policies: dict[str, Policy | None]) -> GoldenCase:
    """The case with expectations, their NaN and infinities counted."""
    buffers: dict[str, Buffer] = {}
    after: Arrays = {}
    own: dict[str, Policy] = {}
    for name, buffer in case.meta.buffers.items():
        if buffer.after != "expected":
            buffers[name] = buffer
            continue
        array = np.ascontiguousarray(expected.get(name, case.stored_image(name)))
        policy = buffer.policy
        if (given := policies.get(name)) is not None:
            policy = "exact" if given.exact else _NAME
            if not given.exact:
                own[_NAME] = given
        nan = int((np.isnan(array) & ~is_poison(array)).sum()) if array.dtype.kind == "f" else 0
        inf = int(np.isinf(array).sum()) if array.dtype.kind == "f" else 0
        buffers[name] = msgspec.structs.replace(buffer, policy=policy, nan=nan, inf=inf)
        after[name] = array
    return GoldenCase(
        msgspec.structs.replace(case.meta, buffers=buffers, policies={**case.meta.policies, **own}), case.before, after
    )


def _named(case: GoldenCase, failure: Failure, seed: int, number: int, *, known: bool) -> GoldenCase:
    """The case with a name of its own, and where it comes from."""
    word = f"{failure.target.replace('/', '-')}-{failure.kind.what}-{failure.kind.where}".replace(" ", "-")
    provenance = Provenance(
        generator="ssmtool fuzz",
        seed=f"{seed}/{failure.target}/{number}",
        reference=f"sha256:{reference_hash(case.kernels)}" if known else "",
        note=f"shrunk; {failure.shape}",
    )
    named = replace(case, meta=msgspec.structs.replace(case.meta, name=word, provenance=provenance))
    try:
        digest = hashlib.sha256(case_bytes(named)).hexdigest()[:8]
    except SsmtoolError:
        digest = "0"
    return replace(named, meta=msgspec.structs.replace(named.meta, name=f"{word}-{digest}"))
