"""What a wrong array looks like: where the wrong elements lie, and whether they are right ones in a wrong place.

Known mistakes are recognised by their own reference (diagnosis.py); these are for all others, and narrow any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import is_poison

Array = NDArray[Any]
Flags = NDArray[np.bool_]

# Agreement of an array with a wrong place or factor: far looser than rounding, far tighter than chance.
_CLOSE = 1e-5
_WARP = 32
# Names of axes that chunks and warps run over.
_POSITIONS = ("t",)


def wrong_elements(got: Array, want: Array, limit: float = 1e-4) -> Flags:
    """Elements that differ by more than `limit` of the RMS, or are unwritten, or NaN or infinite in one only."""
    if want.dtype.kind != "f":
        return np.asarray(got != want)
    with np.errstate(invalid="ignore", over="ignore"):
        g, w = got.astype(np.float64), want.astype(np.float64)
        usable = np.isfinite(g) & np.isfinite(w)
        error = np.where(usable, np.abs(g - w), 0)
    rms = float(np.sqrt(np.mean(np.where(np.isfinite(w), w, 0) ** 2)))
    odd = (is_poison(got) != is_poison(want)) | (np.isnan(g) != np.isnan(w)) | (np.isinf(g) != np.isinf(w))
    wrong: Flags = odd | (error > limit * rms)
    if not wrong.any():
        wrong = odd | ((error > 0.1 * error.max()) if error.max() > 0 else (_bits(got) != _bits(want)))
    return wrong


def patterns(got: Array, want: Array, before: Array, axes: Sequence[str]) -> list[str]:
    """What fits, in words that continue "s looks like this: "; most telling first."""
    wrong = wrong_elements(got, want)
    if not wrong.any():
        return []
    found = []
    kind = _kind(got, want, before, wrong)
    if kind:
        found.append(kind)
    if not kind and want.dtype.kind == "f":
        found += [words for words in (_factor(got, want), _moved(got, want, axes)) if words]
    place = _place(wrong, axes)
    if place:
        found.append(place)
    return found


def _kind(got: Array, want: Array, before: Array, wrong: Flags) -> str | None:
    """What all wrong elements are."""
    if is_poison(got)[wrong].all() and not is_poison(want)[wrong].any():
        return "what is wrong was never written"
    if got.shape == before.shape and (_bits(got)[wrong] == _bits(before)[wrong]).all() and not is_poison(got).any():
        return "what is wrong is as it was before the launch"
    values = got[wrong]
    if (values == 0).all():
        return "what is wrong is 0"
    if np.isnan(values).all():
        return "what is wrong is NaN"
    return None


def _factor(got: Array, want: Array) -> str | None:
    """A constant factor or offset between what is there and what should be."""
    g, w = got.astype(np.float64).reshape(-1), want.astype(np.float64).reshape(-1)
    usable = np.isfinite(g) & np.isfinite(w)
    g, w = g[usable], w[usable]
    energy = float((w * w).sum())
    if len(g) < 4 or energy == 0:
        return None
    factor = float((g * w).sum()) / energy
    rms = np.sqrt(energy / len(w))
    if abs(factor) > 1e-12 and abs(factor - 1) > 1e-4 and np.abs(g - factor * w).max() <= _CLOSE * rms * abs(factor):
        if abs(factor + 1) < 1e-6:
            return "it has the opposite sign"
        return f"it is {factor:.6g} times what is expected{_root(factor)}"
    offset = float((g - w).mean())
    if abs(offset) > 1e-4 * rms and np.abs(g - w - offset).max() <= _CLOSE * rms:
        return f"it is what is expected plus {offset:.6g}"
    return None


def _root(factor: float) -> str:
    """A factor that is a root of a small integer, as a forgotten or doubled 1/sqrt(S) is."""
    for word, square in (("the square root of", factor * factor), ("1 over the square root of", 1 / factor / factor)):
        if 2 <= round(square) <= 4096 and abs(square - round(square)) < 1e-4 * square:
            return f", {word} {round(square)}"
    return ""


def _moved(got: Array, want: Array, axes: Sequence[str]) -> str | None:
    """Right elements in a wrong place."""
    for first in range(want.ndim):
        for second in range(first + 1, want.ndim):
            if want.shape[first] == want.shape[second] > 1 and _alike(got, want.swapaxes(first, second)):
                return f"{axes[first]} and {axes[second]} are exchanged"
    for axis, name in enumerate(axes):
        count = want.shape[axis]
        if count < 2:
            continue
        g, w = np.moveaxis(got, axis, 0), np.moveaxis(want, axis, 0)
        if _alike(g, w[::-1]):
            return f"{name} runs backwards"
        for step in (1, -1):
            here, there = (g[1:], w[:-1]) if step == 1 else (g[:-1], w[1:])
            if count > 2 and _alike(here, there):
                return (
                    f"{name}={'n' if step == 1 else 'n-1'} holds what belongs to {name}={'n-1' if step == 1 else 'n'}"
                )
        order = _order(g, w) if count <= 64 else None
        if order:
            few = ", ".join(f"{name}={at} holds what belongs to {name}={of}" for at, of in order[:3])
            return few + (f" and {len(order) - 3} more" if len(order) > 3 else "")
    return None


def _order(got: Array, want: Array) -> list[tuple[int, int]] | None:
    """(index, whose) of the slices that hold another slice's values, if every slice holds some slice's."""
    moved = []
    for at in range(len(got)):
        if _alike(got[at], want[at]):
            continue
        whose = next((of for of in range(len(want)) if of != at and _alike(got[at], want[of])), None)
        if whose is None:
            return None
        moved.append((at, whose))
    return moved or None


def _alike(got: Array, want: Array) -> bool:
    if got.size == 0 or not np.isfinite(got).all() or not np.isfinite(want).all():
        return False
    largest = float(np.abs(want.astype(np.float64)).max())
    return bool(largest > 0 and np.abs(got.astype(np.float64) - want).max() <= _CLOSE * largest)


def _place(wrong: Flags, axes: Sequence[str]) -> str | None:
    """Where the wrong elements lie: single heads, lanes, the last rows or positions."""
    if wrong.all():
        return None
    words = []
    for axis, name in enumerate(axes):
        count = wrong.shape[axis]
        hit = np.flatnonzero(wrong.any(axis=tuple(each for each in range(wrong.ndim) if each != axis)))
        if len(hit) == count:
            continue
        words.append(_indices(name, hit, count))
    return f"only {', '.join(words)}" if words else None


def _indices(name: str, hit: NDArray[np.int64], count: int) -> str:
    """`h=3`, `j=64 to 127 (the last 64)`, `i=31 of every 32`, `all h but 0 and 3`."""
    first, last = int(hit[0]), int(hit[-1])
    if len(hit) == 1:
        which = " (the last)" if last == count - 1 else " (the first)" if first == 0 else ""
        return f"{name}={first}{which}"
    if last - first + 1 == len(hit):
        end = f" (the last {len(hit)})" if last == count - 1 else f" (the first {len(hit)})" if first == 0 else ""
        chunk = ", the last chunk?" if end.startswith(" (the last") and name in _POSITIONS else ""
        return f"{name}={first} to {last}{end}{chunk}"
    if len(set(hit % _WARP)) == 1 and count > _WARP:
        return f"lane {first % _WARP} ({name} = {first % _WARP} of every {_WARP})"
    steps = set(np.diff(hit))
    if len(steps) == 1:
        return f"every {int(next(iter(steps)))}th {name} from {first} on"
    right = sorted(set(range(count)) - set(hit.tolist()))
    if len(right) <= 3:
        return f"all {name} but {', '.join(map(str, right))}"
    return f"{len(hit)} of {count} {name}"


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"<u{array.dtype.itemsize}")
