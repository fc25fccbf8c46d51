"""The launches of a failing relation, each as a case of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.draws import DRAWERS
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.judge import bounds, same
from ssmtool.golden import Argument, ArrayResult, GoldenCase, compare_array
from ssmtool.golden.case import is_poison
from ssmtool.golden.reference import KERNELS
from ssmtool.verify.loaded import Check, Loaded

Array = NDArray[Any]

# Of the buffers that a kernel of the contract writes.
_POLICIES = {
    **dict.fromkeys(("s", "y", "snaps"), "recurrence"),
    **dict.fromkeys(("gated", "qg", "kg"), "norm"),
    **dict.fromkeys(("x", "g"), "elementwise"),
    "out": "convolution",
}


@dataclass(frozen=True)
class _Launched:
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    names: tuple[str, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]


class Recorder(Loaded):
    """Loaded modules that note every launch. `names` are the kernels' parameters."""

    def __init__(self, loaded: Loaded, names: Mapping[str, Sequence[str]]) -> None:
        self.__dict__.update(loaded.__dict__)
        self._names = names
        self._launches: list[_Launched] = []

    def launch(
        self, entry: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_bytes: int,
        *, check: Check | None = None,
    ) -> Any:  # fmt: skip
        """As `Loaded.launch`."""
        before = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in args)
        done = super().launch(entry, grid, block, args, shared_bytes, check=check)
        after = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in args)
        known = KERNELS[entry][1] if entry in KERNELS else tuple(self._names.get(entry, ()))
        names = known if len(known) == len(args) else tuple(f"p{number}" for number in range(len(args)))
        x, y, z = (*grid, 1, 1)[:3]
        threads = (*block, 1, 1)[:3]
        self._launches.append(_Launched(entry, (x, y, z), threads, shared_bytes, names, before, after))  # type: ignore[arg-type]
        return done

    def cases(self, relation: str) -> Iterator[GoldenCase]:
        """Launches of kernels that have a reference, in order."""
        for each in self._launches:
            if each.entry in DRAWERS:
                yield _case(each, relation)

    def against_each_other(self, failure: Failure) -> Failure:
        """The failure with the launch that left one side, held to the other side; as it was where no launch did."""
        for key in [name for name in failure.arrays if name.endswith(".got")]:
            got, want = failure.arrays[key], failure.arrays[f"{key.removesuffix('.got')}.want"]
            for each in self._launches:
                for name, array in zip(each.names, each.after, strict=True):
                    if _whole(array, got) and each.entry not in DRAWERS:
                        return _held(failure, each, name, want.reshape(array.shape))
        return failure


def _whole(array: Any, got: Array) -> bool:
    return isinstance(array, np.ndarray) and array.size == got.size and array.tobytes() == got.tobytes()


def _case(each: _Launched, title: str, wanted: Mapping[str, Array] | None = None) -> GoldenCase:
    """The launch as a case. Buffers that it changed, or that are in `wanted`, are expected to end otherwise."""
    b = Blank(f"fuzz/{each.entry}", f"a launch of {title}")
    args = []
    for name, before, after in zip(each.names, each.before, each.after, strict=True):
        if not isinstance(before, np.ndarray):
            args.append(_scalar(name, before))
            continue
        changed = before.tobytes() != after.tobytes() or name in (wanted or {})
        policy = (_POLICIES.get(name, "exact") if wanted is None else "exact") if changed else None
        axes = " ".join(f"axis{number}" for number in range(before.ndim))
        if before.size and is_poison(before).all():
            b.poison(name, before.shape, axes, policy)
        else:
            b.given(name, before, axes, policy)
        args.append(Argument(name=name, buffer=name))
    b.add(each.entry, each.grid, each.block, each.shared_bytes, args)
    return b.case()


def _scalar(name: str, value: Any) -> Argument:
    if value is None:
        return Argument(name=name, type="null")
    if isinstance(value, np.integer):
        return Argument(name=name, type="int32", value=int(value))
    return Argument(name=name, type="float32", value=float(value))


def _held(failure: Failure, each: _Launched, name: str, want: Array) -> Failure:
    """The failure as a case: the launch must leave what the other side has."""
    case = _case(each, failure.target, {name: want})
    left = dict(zip(each.names, each.after, strict=True))
    got = {buffer: np.asarray(left[buffer]) for buffer in case.meta.buffers}
    failure.case, failure.run = case, case.meta.runs[0]
    failure.after = got
    failure.want = {**got, name: np.where(same(got[name], want), got[name], want)}
    failure.low, failure.high = bounds([failure.want], case)
    failure.results = [_compared(case, name, got[name], want)]
    return failure


def _compared(case: GoldenCase, name: str, got: Array, want: Array) -> ArrayResult:
    return compare_array(case, name, got, against=want)
