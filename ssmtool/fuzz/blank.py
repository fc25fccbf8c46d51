"""A case without expectations: what a round launches, before anything is known about its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.build import CONTRACT, Builder
from ssmtool.golden.case import FORMAT, Argument, Buffer, GoldenCase, Launch, Meta, Policy, Run


class Blank(Builder):
    """The builder of the golden vectors, which leaves the reference out: the fuzzer's judge comes later."""

    def case(self, policies: dict[str, Policy] | None = None) -> GoldenCase:
        """The case; its `after` is empty."""
        runs = tuple(Run(name, tuple(launches)) for name, launches in self._runs.items())
        meta = Meta(
            format=FORMAT,
            name=self.name,
            title=self.title,
            contract=CONTRACT,
            conventions=self.conventions,
            buffers=self._buffers,
            runs=runs,
            policies=policies or {},
        )
        return GoldenCase(meta, self._before, {})

    def buffer(self, name: str, array: NDArray[Any] | None, buffer: Buffer) -> None:
        """A buffer of any type, described by the caller; `array` where it is given."""
        self._buffers[name] = buffer
        if array is not None:
            self._before[name] = np.ascontiguousarray(array)

    def add(
        self, entry: str, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int,
        args: Sequence[Argument],
    ) -> None:  # fmt: skip
        """The only launch, of a kernel that the contract does not know."""
        launch = Launch(entry=entry, grid=grid, block=block, shared_bytes=shared_bytes, args=tuple(args))
        self._runs.setdefault(entry, []).append(launch)
