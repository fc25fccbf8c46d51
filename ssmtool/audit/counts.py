"""What the text of one kernel holds, whatever path is taken: declared local memory and static counts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ssmtool.audit.classes import mix
from ssmtool.audit.localmemory import LocalAccess, local_accesses
from ssmtool.ptx import isa
from ssmtool.ptx.contraction import is_open
from ssmtool.ptx.function import Function
from ssmtool.ptx.operands import Operand, Register, Symbol

_APPROXIMATE_BASES = frozenset(("ex2", "lg2", "sin", "cos", "tanh"))


@dataclass(frozen=True, slots=True)
class Counts:
    """Static counts.

    `local_bytes` is what `.local` variables declare (the depot), in bytes; loads and stores are
    instructions, generic ones among them counted again in `generic_local`. `contractible` are un-suffixed products that
    ptxas may fuse into an add or subtract.
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
    categories: Counter[str] = Counter()
    approximate = 0
    for opcode, number in histogram.items():
        categories[isa.category(opcode)] += number
        approximate += number if is_approximate(opcode) else 0
    return Counts(
        instructions=len(function.opcodes),
        local_bytes=function.local_bytes,
        local_loads=sum(access.kind == "load" for access in accesses),
        local_stores=sum(access.kind != "load" for access in accesses),
        generic_local=sum(access.generic for access in accesses),
        barriers=categories["barrier"],
        shuffles=categories["shuffle"],
        atomics=categories["atomic"],
        conditional_branches=_conditional_branches(function),
        approximate=approximate,
        contractible=len(contractible_products(function, histogram)),
        calls=categories["call"],
        mix=mix(histogram),
    )


@lru_cache(maxsize=65536)
def is_approximate(opcode: str) -> bool:
    """Whether the instruction's result is not the correctly rounded one: `.approx`, `.full`, `ex2`, `lg2`, ..."""
    base, *modifiers = opcode.split(".")
    return "approx" in modifiers or "full" in modifiers or base in _APPROXIMATE_BASES


def _conditional_branches(function: Function) -> int:
    return sum(
        opcode.startswith("brx") or _text(function, index).startswith("@")
        for index, opcode in enumerate(function.opcodes)
        if opcode.startswith(("bra", "brx"))
    )


def _text(function: Function, index: int) -> str:
    """The instruction from its guard on, read off the columns: no operand is parsed."""
    body = function.body
    return function.source.code[body.starts[index] : body.ends[index]].lstrip()


def contractible_products(function: Function, histogram: Counter[str] | None = None) -> tuple[int, ...]:
    """Indices of products that ptxas may fuse.

    Those are `mul.f32`/`mul.f64` without a rounding modifier whose result goes into an `add`/`sub` without one: ptxas
    may make `fma` of the pair (PTX ISA manual, "mul", "add"), which rounds once. It may do so in another block too, and
    where the product is used elsewhere as well; a register that is written twice counts as if the add saw each of its
    products.
    """
    open_forms = {opcode for opcode in histogram or function.histogram() if is_open(opcode)}
    if not any(form.startswith("mul") for form in open_forms) or not any(
        form.startswith(("add", "sub")) for form in open_forms
    ):
        return ()
    products: dict[str, list[int]] = {}
    for index, opcode in enumerate(function.opcodes):
        if opcode in open_forms and opcode.startswith("mul"):
            match = _RESULT.match(_text(function, index))
            if match is not None:
                products.setdefault(match[1], []).append(index)
    mentions = _mentions(function, products)
    found = []
    for name, indices in products.items():
        added: set[tuple[Register, str]] = set()
        for index in mentions.get(name, ()):
            opcode = function.opcodes[index]
            if opcode in open_forms and opcode.startswith(("add", "sub")):
                kind = opcode.rpartition(".")[2]
                added |= {(register, kind) for register in isa.uses(function.instructions[index])}
        for product in indices if added else ():
            kind = function.opcodes[product].rpartition(".")[2]
            if any((register, kind) in added for register in isa.defs(function.instructions[product])):
                found.append(product)
    return tuple(sorted(found))


def _mentions(function: Function, names: Collection[str]) -> dict[str, list[int]]:
    """Name -> indices of the instructions whose text has it. Few names are searched for, many are met in one pass."""
    code, starts = function.source.code, function.body.starts
    begin, end = function.span
    found: dict[str, list[int]] = {}
    if len(names) > _FEW:
        for match in _REGISTER.finditer(code, begin, end):
            if match[0] in names:
                found.setdefault(match[0], []).append(bisect_right(starts, match.start()) - 1)
        return found
    for name in names:
        at = code.find(name, begin, end)
        while at >= 0:
            after = code[at + len(name)]
            if not (after.isalnum() or after in "_$"):
                found.setdefault(name, []).append(bisect_right(starts, at) - 1)
            at = code.find(name, at + 1, end)
    return found


_FEW = 32
# `@%p1 mul.f32 %f1, ...`
_RESULT = re.compile(r"(?:@\s*!?\s*[\w$%]+\s+)?[\w.:]+\s+(%?[\w$]+)")
_REGISTER = re.compile(r"[%\w$]+")


def callee(function: Function, index: int) -> str | None:
    """The name that a `call` names; None for a call through a register."""
    operands: tuple[Operand, ...] = function.instructions[index].operands
    named = next((operand for operand in operands if isinstance(operand, (Register, Symbol))), None)
    return named.name if isinstance(named, Symbol) else None
