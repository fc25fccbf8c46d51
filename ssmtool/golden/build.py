"""Builds a case: buffers and launches are added one by one, what is expected comes from the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.golden import generator
from ssmtool.golden.case import (
    FORMAT,
    Argument,
    Buffer,
    CaseError,
    GoldenCase,
    Launch,
    Meta,
    Provenance,
    Run,
    is_poison,
)
from ssmtool.golden.compare import compare_array
from ssmtool.golden.reference import KERNELS, reference_hash, run

CONTRACT = "1"
# What others do otherwise, said in every case.
CONVENTIONS: dict[str, str | int | float] = {
    "head_order": "interleaved",
    "l2_eps": "max(norm, eps)",
    "decay": "log",
    "state_layout": "[h][j][i], value index j, key index i",
    "conv_taps": "newest last",
}

# An argument: a buffer's name, (name, offset), an integer, a float, or None for a null pointer.
Given = str | tuple[str, int] | int | float | None


class Builder:
    """One case in the making. Its random numbers come from its name."""

    def __init__(self, name: str, title: str, *, exposes: Sequence[str] = (), **conventions: str | int | float) -> None:
        self.name, self.title, self.exposes = name, title, tuple(exposes)
        self.conventions = {**CONVENTIONS, **conventions}
        self.random = generator.Stream(name)
        self._buffers: dict[str, Buffer] = {}
        self._before: dict[str, NDArray[Any]] = {}
        self._runs: dict[str, list[Launch]] = {}

    def given(
        self, name: str, array: NDArray[Any], axes: str, policy: str | None = None, *, group: str = "", rows: int = 0,
        at: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """A buffer with contents; it must not change unless a policy is named. `axes` and `group` as in "h j i"."""
        array = np.ascontiguousarray(array, np.float32)
        self._before[name] = array
        self._add(name, (rows or array.shape[0], *array.shape[1:]), axes, "given", policy, group, tuple(at) or None)

    def zero(
        self, name: str, shape: Sequence[int], axes: str, policy: str | None = None, *, group: str = "",
        at: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """A buffer of zeros."""
        self._add(name, tuple(shape), axes, "zero", policy, group, tuple(at) or None)

    def scratch(self, name: str, shape: Sequence[int], axes: str) -> None:
        """A buffer of zeros of which nothing is expected: what ends there shows in what a later launch makes of it."""
        self._add(name, tuple(shape), axes, "zero", None, "", None)
        self._buffers[name] = msgspec.structs.replace(self._buffers[name], after="any")

    def poison(
        self, name: str, shape: Sequence[int], axes: str, policy: str | None = None, *, group: str = "",
        at: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """A buffer that nobody wrote; without a policy nobody may."""
        self._add(name, tuple(shape), axes, "poison", policy, group, tuple(at) or None)

    def _add(
        self, name: str, shape: tuple[int, ...], axes: str, before: Any, policy: str | None, group: str,
        rows: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        self._buffers[name] = Buffer(
            shape=shape,
            axes=tuple(axes.split()),
            before=before,
            after="expected" if policy else "unchanged",
            policy=policy,
            group=tuple(group.split()) if policy else (),
            rows=rows,
        )

    def launch(
        self, run_name: str, entry: str, grid: Sequence[int], block: int, shared_floats: int, *values: Given
    ) -> None:
        """The next launch of a run; `values` are the contract's arguments, in order."""
        parameters = KERNELS[entry][1]
        args = tuple(_argument(name, value) for name, value in zip(parameters, values, strict=True))
        x, y, z = (*grid, 1, 1)[:3]
        launch = Launch(
            entry=entry, grid=(x, y, z), block=(block, 1, 1), shared_bytes=4 * shared_floats, args=args
        )  # fmt: skip
        self._runs.setdefault(run_name, []).append(launch)

    def case(self) -> GoldenCase:
        """The case, with what the reference expects. Raises CaseError unless all runs have the same end."""
        entries = {launch.entry for launches in self._runs.values() for launch in launches}
        meta = Meta(
            format=FORMAT,
            name=self.name,
            title=self.title,
            contract=CONTRACT,
            conventions=self.conventions,
            buffers=self._buffers,
            runs=tuple(Run(name, tuple(launches)) for name, launches in self._runs.items()),
            exposes=self.exposes,
            provenance=Provenance(
                generator="ssmtool.golden",
                generator_version=generator.VERSION,
                seed=self.name,
                reference=f"sha256:{reference_hash(entries)}",
            ),
        )
        blank = GoldenCase(meta, self._before, {})
        ends = {each.name: run(blank, each) for each in meta.runs}
        first = ends[meta.runs[0].name]
        after = {name: first[name] for name, buffer in self._buffers.items() if buffer.after == "expected"}
        buffers = {name: _counted(buffer, after.get(name)) for name, buffer in self._buffers.items()}
        case = replace(blank, meta=msgspec.structs.replace(meta, buffers=buffers), after=after)
        for each, end in ends.items():
            _require_agreement(case, each, end)
        return case


def _argument(name: str, value: Given) -> Argument:
    if value is None:
        return Argument(name=name, type="null")
    if isinstance(value, str):
        return Argument(name=name, buffer=value)
    if isinstance(value, tuple):
        return Argument(name=name, buffer=value[0], offset=value[1])
    if isinstance(value, int):
        return Argument(name=name, type="int32", value=value)
    return Argument(name=name, type="float32", value=float(np.float32(value)))


def _counted(buffer: Buffer, after: NDArray[Any] | None) -> Buffer:
    """The buffer with its expectation's NaN and infinities declared."""
    if after is None:
        return buffer
    nan = int((np.isnan(after) & ~is_poison(after)).sum())
    return msgspec.structs.replace(buffer, nan=nan, inf=int(np.isinf(after).sum()))


def _require_agreement(case: GoldenCase, run_name: str, end: dict[str, NDArray[Any]]) -> None:
    for name in case.meta.buffers:
        expected = case.expected(name)
        if expected is not None and not compare_array(case, name, end[name]).ok:
            raise CaseError(f"{case.meta.name}: by the reference, {name} ends otherwise in the run {run_name!r}")
