"""Other people's kernels, timed beside ours: what a file for `--beside` is given and gives back (docs/bench.md)."""

from __future__ import annotations

from ssmtool.bench.beside.api import Peer, Task

__all__ = ["Peer", "Task"]
