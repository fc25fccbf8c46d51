"""What an instruction works on: registers, immediates, addresses, vectors, symbols, labels.

All are frozen and hashable. A register or symbol also carries the number of the `{ }` scope that declares it,
because inline assembly may declare the same name again inside a nested scope; scope 0 is the function itself.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Register:
    """A register. `selector` is the byte or half of a video instruction's operand (`b0`..`b3`, `h0`, `h1`)."""

    name: str
    scope: int = 0
    selector: str | None = None

    @property
    def special(self) -> bool:
        """Whether this is a read-only special register (`%tid.x`, `%laneid`, `%clock64`)."""
        return is_special(self.name)


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal or a folded constant expression.

    `kind` is `int` (value is the mathematical value, `unsigned` says it had a U suffix or needs 64 unsigned bits),
    `f32` (`0f` hex, value is the 32 bits) or `f64` (`0d` hex or decimal, value is the 64 bits).
    """

    value: int
    kind: str = "int"
    unsigned: bool = False

    @property
    def number(self) -> int | float:
        """The numeric value: the bits of a float literal read as a float."""
        if self.kind == "f32":
            return float(struct.unpack("<f", struct.pack("<I", self.value))[0])
        if self.kind == "f64":
            return float(struct.unpack("<d", struct.pack("<Q", self.value))[0])
        return self.value


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter, function, call prototype or target table, by name.

    `scope` is the nested scope that declares it, 0 for the function, -1 for the module (or nobody).
    `offset` is a byte offset added to it (`mov.u64 %rd1, table+16`).
    """

    name: str
    scope: int = -1
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target. `target` is the index of the instruction it stands before."""

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; `base` is None for an absolute address.

    `extra` holds what follows a comma inside the brackets (texture sampler and coordinates, tensor-map
    coordinates).
    """

    base: Register | Symbol | None
    offset: int = 0
    extra: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b, ...)`: the arguments or results of a call."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: a second destination, a predicate in all but tcgen05 instructions."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """`-r`: a negated register source, which video instructions accept."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a destination that is thrown away."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """The guard of an instruction: `@p` or, `negated`, `@!p`."""

    register: Register
    negated: bool = False


Operand: TypeAlias = "Register | Immediate | Symbol | Label | Address | Vector | Group | Pair | Not | Negated | Sink"

_NUMBERED = re.compile(r"envreg\d+|pm\d+(?:_64)?|reserved_smem_offset_\d+")
SPECIAL = frozenset(
    [
        "tid",
        "ntid",
        "laneid",
        "warpid",
        "nwarpid",
        "ctaid",
        "nctaid",
        "smid",
        "nsmid",
        "gridid",
        "is_explicit_cluster",
        "clusterid",
        "nclusterid",
        "cluster_ctaid",
        "cluster_nctaid",
        "cluster_ctarank",
        "cluster_nctarank",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "clock",
        "clock_hi",
        "clock64",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        "reserved_smem_offset_begin",
        "reserved_smem_offset_end",
        "reserved_smem_offset_cap",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    ]
)


@lru_cache(maxsize=4096)  # asked of every register of every instruction that is walked or lowered
def is_special(name: str) -> bool:
    """Whether a register name, with its `%` and component, is one of PTX's special registers."""
    if name[:1] != "%":
        return False
    stem = name[1:].partition(".")[0]
    if stem in SPECIAL:
        return True
    return _NUMBERED.fullmatch(stem) is not None


def registers_of(operand: Operand) -> tuple[Register, ...]:
    """Every register an operand mentions, special ones included, in order; duplicates kept."""
    if isinstance(operand, Register):
        return (operand,)
    if isinstance(operand, (Vector, Group)):
        return tuple(register for element in operand.elements for register in registers_of(element))
    if isinstance(operand, Address):
        base = (operand.base,) if isinstance(operand.base, Register) else ()
        return base + tuple(register for element in operand.extra for register in registers_of(element))
    if isinstance(operand, Pair):
        return registers_of(operand.first) + registers_of(operand.second)
    if isinstance(operand, (Not, Negated)):
        return registers_of(operand.operand)
    return ()
