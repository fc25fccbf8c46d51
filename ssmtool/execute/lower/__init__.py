"""PTX of one entry to LLVM IR, for one block shape and mode.

| module | what it emits |
|---|---|
| kernel | the whole module of an entry: `lower` |
| blocks | the worker's loop over blocks, and warps from barrier to barrier |
| control, frames | which basic block runs next, with which lanes; what a waiting warp keeps |
| gang, values | operands, registers, guards; scalars and vectors |
| numeric, moves, memory, atomics, warp, barriers, special | the instructions, by kind |
| access, runtime, masked | addresses, bounds, the exact look at single lanes |
| checks | what checked mode adds |
| evidence | how far the data that a store writes can be trusted |
"""

from __future__ import annotations

from ssmtool.execute.lower.kernel import Lowered, lower

__all__ = ["Lowered", "lower"]
