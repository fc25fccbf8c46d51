"""What a file for `ssmtool bench --beside FILE.py` is given (Task) and gives back (Peer)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PREFILL, DECODE, STEP = "prefill", "decode", "decode step"


@dataclass(frozen=True)
class Task:
    """One group of `ssmtool bench`: the same work that our kernels do, on the same numbers.

    `kind` is `prefill` (`positions` of one user), `decode` (one position of each of `users`) or `decode step` (the same
    from the projections to the gated output). `inputs` are fp32 arrays by the names of docs/kernels.md, in its layouts:
    of a prefill and a decode `s`, `q`, `k`, `v`, `g` (the logarithm of the decay), `beta`; they are not to be written.
    `snapshots` says that ours also store the state after every position. `device` is the card's number, as the driver
    and CUDA's runtime count; its primary context is current in the thread that calls.
    """

    kind: str
    positions: int
    users: int
    heads: int
    size: int
    scale: float
    snapshots: bool
    inputs: Mapping[str, NDArray[np.float32]]
    device: int


@dataclass(frozen=True)
class Peer:
    """Something that does a task.

    `run` puts the work into the card's default stream, or into streams that wait for it and that it waits for, and
    does not wait itself. `reset` puts back what `run` changes; it is called before each run, outside of the time.
    `outputs` is called after the last run and gives what our kernels' outputs are compared with: `y` and `s` (of a
    decode step `gated`, `s`, `conv_state`), in the inputs' layouts; any may be left out. `note` is printed below the
    table: versions, precision, whatever a reader has to know.
    """

    name: str
    run: Callable[[], Any]
    reset: Callable[[], Any] | None = None
    outputs: Callable[[], Mapping[str, Any]] | None = None
    note: str | None = None
