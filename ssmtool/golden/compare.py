"""What a run left against what is expected: per buffer and per group (head), by the case's policy.

Nothing here is averaged away: a group fails by itself, an element that was not written fails whatever its value, and
every number in a message has the index's meaning (`s[h=3, j=17, i=64]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import Buffer, GoldenCase, Policy, is_poison
from ssmtool.golden.policies import POLICIES

Array = NDArray[Any]
Flags = NDArray[np.bool_]

_TINY = 1e-300


@dataclass(frozen=True)
class GroupResult:
    """One group of a buffer, such as one head: how far off it is. NaN and infinities as expected do not count."""

    label: str
    ok: bool
    nmse: float
    max_rms: float
    max_ulp: int
    wrong: int


@dataclass(frozen=True)
class ArrayResult:
    """One buffer after a run.

    `reasons` say in words why it fails. `first` and `worst` are elements by their meaning: the first that is wrong, and
    the one that is most wrong (the furthest off, where none is wrong). `unwritten` elements still hold the poison,
    `overwritten` ones should. `nonfinite` are NaN or infinities that are missing, or should not be there.
    """

    name: str
    ok: bool
    policy: Policy
    nmse: float
    max_rms: float
    max_ulp: int
    wrong: int
    unwritten: int
    overwritten: int
    nonfinite: int
    first: str | None
    worst: str | None
    groups: tuple[GroupResult, ...]
    reasons: tuple[str, ...]

    @property
    def bad_groups(self) -> tuple[GroupResult, ...]:
        """The groups that fail."""
        return tuple(group for group in self.groups if not group.ok)


def compare(case: GoldenCase, after: Mapping[str, Array]) -> list[ArrayResult]:
    """One result for each buffer that is not "any". Arrays may be flat, and of the buffer's full shape or the file's.

    A buffer that `after` lacks counts as one that was not looked at: KeyError.
    """
    return [
        compare_array(case, name, after[name]) for name, buffer in case.meta.buffers.items() if buffer.after != "any"
    ]


def compare_array(case: GoldenCase, name: str, got: Array, *, against: Array | None = None) -> ArrayResult:
    """One buffer against what the case expects, or `against` another array under the same policy.

    Raises ValueError for an array of another size or type.
    """
    buffer = case.meta.buffers[name]
    expected = case.expected(name) if against is None else against
    if expected is None:
        raise ValueError(f"{name} may hold anything")
    got = _stored(got, buffer)
    if got.dtype != expected.dtype:
        raise ValueError(f"{name} is {got.dtype}, {expected.dtype} is expected")
    policy = case.policy(name) if buffer.after == "expected" else Policy(exact=True)
    if policy.exact and got.tobytes() == expected.tobytes():
        return _equal(name, policy)
    was_poison = buffer.before == "poison"
    with np.errstate(over="ignore"):  # huge errors over nearly nothing: infinite, and so above every limit
        return _compare(name, buffer, got, expected.reshape(got.shape), policy, was_poison=was_poison)


def _stored(got: Array, buffer: Buffer) -> Array:
    """The rows that the file speaks of, in their shape."""
    if got.size == np.prod(buffer.stored_shape, dtype=np.int64):
        return np.ascontiguousarray(got).reshape(buffer.stored_shape)
    return np.ascontiguousarray(got.reshape(buffer.shape)[list(buffer.rows or ())])


def _equal(name: str, policy: Policy) -> ArrayResult:
    """The result for equal bits, which most buffers have that must not change."""
    group = GroupResult("", ok=True, nmse=0.0, max_rms=0.0, max_ulp=0, wrong=0)
    return ArrayResult(
        name=name,
        ok=True,
        policy=policy,
        nmse=0.0,
        max_rms=0.0,
        max_ulp=0,
        wrong=0,
        unwritten=0,
        overwritten=0,
        nonfinite=0,
        first=None,
        worst=None,
        groups=(group,),
        reasons=(),
    )


def _compare(
    name: str, buffer: Buffer, got: Array, want: Array, policy: Policy, *, was_poison: bool
) -> ArrayResult:  # fmt: skip
    kept = is_poison(want) if was_poison else np.zeros(want.shape, np.bool_)
    untouched = is_poison(got) if was_poison else np.zeros(want.shape, np.bool_)
    unwritten, overwritten = untouched & ~kept, kept & ~untouched
    odd = _odd(got, want) & ~kept
    ulp = _ulp(got, want)
    error, scale = _errors(got, want, kept | odd, policy)
    ulp = np.where((error == 0) & (policy.atol > 0) | kept | odd, 0, ulp)
    wrong = unwritten | overwritten | odd
    if policy.exact:
        wrong = wrong | ((ulp != 0) & ~(_isnan(got) & _isnan(want)))
    elif policy.max_ulp is not None:
        wrong = wrong | (ulp > policy.max_ulp)
    order = [buffer.axes.index(axis) for axis in buffer.group]
    rest = [axis for axis in range(want.ndim) if axis not in order]
    sizes = [want.shape[axis] for axis in order]

    def split(array: Array) -> Array:
        """One row for each group."""
        return array.transpose(*order, *rest).reshape(int(np.prod(sizes, dtype=int)), -1)

    squares, wanted = split(error) ** 2, split(scale) ** 2
    energy = wanted.sum(axis=1)
    nmse = np.where(squares.sum(axis=1) > 0, squares.sum(axis=1) / np.maximum(energy, _TINY), 0.0)
    rms = np.sqrt(energy / wanted.shape[1])
    largest = split(error).max(axis=1)
    relative = np.where(largest > 0, largest / np.maximum(rms, _TINY), 0.0)
    groups_ok = np.logical_not(split(wrong).any(axis=1))
    if policy.nmse is not None:
        groups_ok &= nmse <= policy.nmse
    if policy.max_rms is not None:
        groups_ok &= relative <= policy.max_rms
        # The elements to point at: those that are over the limit by themselves.
        limit = np.repeat((policy.max_rms * rms)[:, None], wanted.shape[1], axis=1)
        over = (split(error) > limit).reshape(*sizes, *(want.shape[axis] for axis in rest))
        wrong = wrong | over.transpose(np.argsort([*order, *rest]))
    groups = tuple(
        GroupResult(
            label=_group_label(buffer, order, sizes, number),
            ok=bool(groups_ok[number]),
            nmse=float(nmse[number]),
            max_rms=float(relative[number]),
            max_ulp=int(ulps),
            wrong=int(count),
        )
        for number, (ulps, count) in enumerate(
            zip(split(ulp).max(axis=1), split(wrong).sum(axis=1), strict=True)
        )
    )  # fmt: skip
    ok = bool(groups_ok.all())
    return ArrayResult(
        name=name,
        ok=ok,
        policy=policy,
        nmse=float(nmse.max()),
        max_rms=float(relative.max()),
        max_ulp=int(ulp.max()),
        wrong=int(wrong.sum()),
        unwritten=int(unwritten.sum()),
        overwritten=int(overwritten.sum()),
        nonfinite=int((odd & ~untouched).sum()),
        first=None if ok or not wrong.any() else _at(name, buffer, int(np.argmax(wrong.reshape(-1))), got, want),
        worst=_worst(name, buffer, error, wrong, got, want),
        groups=groups,
        reasons=_reasons(buffer, policy, groups, unwritten, overwritten, odd & ~untouched, wrong, got, want),
    )


def _isnan(array: Array) -> Flags:
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)


def _odd(got: Array, want: Array) -> Flags:
    """NaN where none is expected or the other way round, and infinities that are not the expected one."""
    if want.dtype.kind != "f":
        return np.zeros(want.shape, np.bool_)
    infinite = np.isinf(got) | np.isinf(want)
    found: Flags = (np.isnan(got) != np.isnan(want)) | (infinite & (got != want) & ~(np.isnan(got) & np.isnan(want)))
    return found


def _errors(got: Array, want: Array, left_out: Flags, policy: Policy) -> tuple[Array, Array]:
    """Absolute errors above the policy's `atol`, and the expectation, where both are finite; else 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        g, w = got.astype(np.float64), want.astype(np.float64)
        usable = np.isfinite(g) & np.isfinite(w) & ~left_out
        error = np.where(usable, np.abs(g - w), 0.0)
    return np.where(error <= policy.atol, 0.0, error), np.where(usable, w, 0.0)


def _ulp(got: Array, want: Array) -> Array:
    """Distance in representable numbers; for integers the difference; -0 and 0 are 1 apart in the bits."""
    signed = f"<i{want.dtype.itemsize}"
    a, b = got.view(signed).astype(np.int64), want.view(signed).astype(np.int64)
    if want.dtype.kind == "f":
        # Negative numbers count downwards from -0, which is one below 0.
        low = -(1 << (8 * want.dtype.itemsize - 1))
        a, b = np.where(a < 0, low - 1 - a, a), np.where(b < 0, low - 1 - b, b)
    apart = a.astype(object) - b.astype(object) if want.dtype.itemsize == 8 else a - b
    distance: Array = np.minimum(np.abs(apart), np.iinfo(np.int64).max).astype(np.int64)
    return distance


def _at(name: str, buffer: Buffer, flat: int, got: Array, want: Array) -> str:
    index = np.unravel_index(flat, want.shape)
    return f"{element(name, buffer, flat)} is {_number(got[index])}, expected {_number(want[index])}"


def element(name: str, buffer: Buffer, flat: int) -> str:
    """The element by its meaning, as in `s[h=3, j=17, i=64]`; `flat` counts in the file's rows."""
    index = [int(each) for each in np.unravel_index(flat, buffer.stored_shape)]
    if buffer.rows is not None:
        index[0] = buffer.rows[index[0]]
    return f"{name}[{', '.join(f'{axis}={at}' for axis, at in zip(buffer.axes, index, strict=True))}]"


def _number(value: Any) -> str:
    if value.dtype.kind == "f" and bool(is_poison(np.array([value])).any()):
        return "poison (never written)"
    return f"{value:.9g}" if value.dtype.kind == "f" else str(value)


def _worst(name: str, buffer: Buffer, error: Array, wrong: Flags, got: Array, want: Array) -> str | None:
    if error.max() > 0:
        return _at(name, buffer, int(np.argmax(error.reshape(-1))), got, want)
    return _at(name, buffer, int(np.argmax(wrong.reshape(-1))), got, want) if wrong.any() else None


def _group_label(buffer: Buffer, order: list[int], sizes: list[int], number: int) -> str:
    index = [int(each) for each in np.unravel_index(number, sizes)] if sizes else []
    named = []
    for axis, at in zip(order, index, strict=True):
        at = buffer.rows[at] if axis == 0 and buffer.rows is not None else at
        named.append(f"{buffer.axes[axis]}={at}")
    return ", ".join(named)


def _rounding(bad: list[GroupResult], *, hidden: bool) -> str:
    """What to add where every group fails by ulp alone and is as near as another order of summation comes.

    A sum whose terms cancel is many ulp off and right; the number of ulp alone sends its author after a mistake.
    """
    sums = POLICIES["recurrence"]
    nmse, most = max(group.nmse for group in bad), max(group.max_rms for group in bad)
    if hidden or sums.nmse is None or sums.max_rms is None or nmse > sums.nmse or most > sums.max_rms:
        return ""
    return (
        f", but NMSE {nmse:.1e} and at most {most:.1e} of the RMS, as rounding leaves it: a kernel that sums wants a "
        "policy of sums (docs/vectors.md, Policies)"
    )


def _reasons(
    buffer: Buffer, policy: Policy, groups: tuple[GroupResult, ...], unwritten: Flags, overwritten: Flags,
    odd: Flags, wrong: Flags, got: Array, want: Array,
) -> tuple[str, ...]:  # fmt: skip
    words = []
    if unwritten.any():
        words.append(f"{int(unwritten.sum())} of {unwritten.size} elements were never written")
    if overwritten.any():
        words.append(f"{int(overwritten.sum())} elements were written that must not be")
    if odd.any():
        missing = int((odd & _isnan(want) & ~_isnan(got)).sum())
        extra = int((odd & _isnan(got) & ~_isnan(want)).sum())
        infinite = int(odd.sum()) - missing - extra
        counts = {"NaN that should not be": extra, "NaN missing": missing, "infinities differ": infinite}
        words.append(", ".join(f"{count} {what}" for what, count in counts.items() if count))
    bad = [group for group in groups if not group.ok]
    if policy.nmse is not None and (worst := max((group.nmse for group in bad), default=0.0)) > policy.nmse:
        words.append(f"NMSE {worst:.2e}, allowed {policy.nmse:g}")
    if policy.max_rms is not None and (worst := max((group.max_rms for group in bad), default=0.0)) > policy.max_rms:
        words.append(f"largest error {worst:.2e} of the RMS, allowed {policy.max_rms:g}")
    if policy.max_ulp is not None and (most := max((group.max_ulp for group in bad), default=0)) > policy.max_ulp:
        words.append(f"{most} ulp off, allowed {policy.max_ulp}{_rounding(bad, hidden=bool(words))}")
    if policy.exact and (different := int((wrong & ~unwritten & ~overwritten & ~odd).sum())):
        changed = "changed" if buffer.after == "unchanged" else "have other bits"
        words.append(f"{different} elements {changed}")
    return tuple(words)
