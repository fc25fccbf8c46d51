"""What the text of one kernel holds, whatever path is taken: declared local memory and static counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ssmtool.audit.classes import mix
from ssmtool.audit.localmemory import LocalAccess, local_accesses
from ssmtool.ptx import isa
from ssmtool.ptx.cfg import ControlFlowGraph
from ssmtool.ptx.function import Function
from ssmtool.ptx.operands import Operand, Register, Symbol

_APPROXIMATE_BASES = frozenset(("ex2", "lg2", "sin", "cos", "tanh"))


@dataclass(frozen=True, slots=True)
class Counts:
    """Static counts.

    `local_bytes` is what `.local` variables declare (the depot), in bytes; loads and stores are
    instructions, generic ones among them counted again in `generic_local`. `contractible` are un-suffixed products that
    ptxas may fuse into the add or subtract that alone uses them.
    """

    instructions: int
    local_bytes: int
    local_loads: int
    local_stores: int
    generic_local: int
    barriers: int
    shuffles: int
    atomics: int
    conditional_branches: int
    approximate: int
    contractible: int
    calls: int
    mix: Mapping[str, int]


def count(function: Function, accesses: tuple[LocalAccess, ...] | None = None) -> Counts:
    """The counts of one function, without the functions it calls."""
    if accesses is None:
        accesses = local_accesses(function)
    histogram = function.histogram()

    def total(*categories: str) -> int:
        return sum(number for opcode, number in histogram.items() if isa.category(opcode) in categories)

    return Counts(
        instructions=len(function.opcodes),
        local_bytes=function.local_bytes,
        local_loads=sum(access.kind == "load" for access in accesses),
        local_stores=sum(access.kind != "load" for access in accesses),
        generic_local=sum(access.generic for access in accesses),
        barriers=total("barrier"),
        shuffles=total("shuffle"),
        atomics=total("atomic"),
        conditional_branches=_conditional_branches(function),
        approximate=sum(number for opcode, number in histogram.items() if is_approximate(opcode)),
        contractible=len(contractible_products(function)),
        calls=total("call"),
        mix=mix(histogram),
    )


def is_approximate(opcode: str) -> bool:
    """Whether the instruction's result is not the correctly rounded one: `.approx`, `.full`, `ex2`, `lg2`, ..."""
    base, *modifiers = opcode.split(".")
    return "approx" in modifiers or "full" in modifiers or base in _APPROXIMATE_BASES


def _conditional_branches(function: Function) -> int:
    return sum(
        function.instructions[index].predicate is not None or opcode.startswith("brx")
        for index, opcode in enumerate(function.opcodes)
        if opcode.startswith(("bra", "brx"))
    )


def contractible_products(function: Function) -> tuple[int, ...]:
    """Indices of products that ptxas may fuse.

    Those are `mul.f32`/`mul.f64` without a rounding modifier whose result goes only into `add`/`sub` without one, in
    the same block: ptxas may make `fma` of the pair (PTX ISA manual, "mul", "add"), which rounds once.
    """
    kinds = [kind for kind in ("f32", "f64") if _has_pair(function.histogram(), kind)]
    if not kinds:
        return ()
    graph = ControlFlowGraph(function)
    candidates: dict[Register, tuple[int, str]] = {}
    good: dict[Register, int] = {}
    bad: set[Register] = set()
    for index, text in enumerate(function.opcodes):
        instruction = function.instructions[index]
        parts = text.split(".")
        open_form = parts[-1] in kinds and not {"rn", "rz", "rm", "rp"} & set(parts)
        adds = open_form and parts[0] in ("add", "sub")
        for register in isa.uses(instruction):
            if register not in candidates:
                continue
            same_block = graph.block_of[candidates[register][0]] == graph.block_of[index]
            if adds and same_block and candidates[register][1] == parts[-1]:
                good[register] = good.get(register, 0) + 1
            else:
                bad.add(register)
        for register in isa.defs(instruction):
            if register in candidates:
                bad.add(register)  # written twice: which product an add sees is not told by the name
            elif open_form and parts[0] == "mul":
                candidates[register] = (index, parts[-1])
    return tuple(sorted(candidates[register][0] for register in good if register not in bad))


def _has_pair(histogram: Counter[str], kind: str) -> bool:
    def occurs(base: str) -> bool:
        return any(
            opcode.startswith(base + ".")
            and opcode.endswith("." + kind)
            and not {"rn", "rz", "rm", "rp"} & set(opcode.split("."))
            for opcode in histogram
        )

    return occurs("mul") and (occurs("add") or occurs("sub"))


def callee(function: Function, index: int) -> str | None:
    """The name that a `call` names; None for a call through a register."""
    operands: tuple[Operand, ...] = function.instructions[index].operands
    named = next((operand for operand in operands if isinstance(operand, (Register, Symbol))), None)
    return named.name if isinstance(named, Symbol) else None
