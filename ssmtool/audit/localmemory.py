"""Instructions that reach local memory: `ld.local`/`st.local`, and generic accesses through an address made from it."""

from __future__ import annotations

from dataclasses import dataclass

from ssmtool.ptx import isa
from ssmtool.ptx.function import Function
from ssmtool.ptx.instruction import Instruction
from ssmtool.ptx.operands import Address, Operand, Register, Symbol, Vector

_LOADS = frozenset(("ld", "ldu"))
_MAKES_ADDRESS = frozenset(
    ("mov", "add", "sub", "mad", "cvta", "cvt", "selp", "and", "or", "xor", "shl", "prmt", "fma")
)


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """One instruction that touches local memory.

    `kind` is `load`, `store` or `atomic`. `generic` says that the opcode names no state space and the address was
    followed back to a `.local` variable; ptxas may or may not find that out too.
    """

    index: int
    kind: str
    generic: bool


def local_accesses(function: Function) -> tuple[LocalAccess, ...]:
    """Every such instruction, in text order.

    Operands are read only where the function declares local memory or
    converts a local address, so a function without any costs one look at its opcodes.
    """
    if not any(".local" in opcode for opcode in function.histogram()) and not function.local_variables:
        return ()
    found = [
        LocalAccess(index, "load" if opcode.startswith("ld") else "store", False)
        for index, opcode in enumerate(function.opcodes)
        if ".local" in opcode and not opcode.startswith("cvta")
    ]
    if function.local_variables or any(opcode.startswith("cvta.local") for opcode in function.opcodes):
        found += _generic(function)
        found.sort(key=lambda access: access.index)
    return tuple(found)


def _generic(function: Function) -> list[LocalAccess]:
    """Accesses without a state space whose address derives from a local variable.

    Registers are followed without regard to order: an address register that holds a local address anywhere counts as
    one everywhere, and one that shares its register with another pointer may be counted. Where a local address is
    stored, or passed to a function, every generic access of this function counts.
    """
    variables = {variable.name for variable in function.local_variables}
    tainted: set[Register] = set()
    candidates: list[Instruction] = []
    accesses: list[Instruction] = []
    for index, opcode in enumerate(function.opcodes):
        base = opcode.partition(".")[0]
        if base in _MAKES_ADDRESS:
            instruction = function.instructions[index]
            if instruction.type is None or instruction.type[0] in "usb":
                candidates.append(instruction)
        elif base in ("ld", "ldu", "st", "atom", "red"):
            instruction = function.instructions[index]
            accesses.append(instruction)
    changed = True
    while changed:
        changed = False
        for instruction in candidates:
            if _from_local(instruction, variables, tainted):
                new = isa.defs(instruction) - tainted
                if new:
                    tainted |= new
                    changed = True
    escapes = any(_escapes(instruction, variables, tainted) for instruction in accesses)
    found = []
    for instruction in accesses:
        addresses = [operand for operand in instruction.operands if isinstance(operand, Address)]
        if instruction.space is not None:
            continue
        if escapes or any(_names_local(address.base, variables, tainted) for address in addresses):
            kind = "load" if instruction.base in _LOADS else "store" if instruction.base == "st" else "atomic"
            found.append(LocalAccess(instruction.index, kind, True))
    return found


def _from_local(instruction: Instruction, variables: set[str], tainted: set[Register]) -> bool:
    if instruction.base == "cvta" and instruction.space == "local" and not instruction.opcode.has("to"):
        return True
    return any(_names_local(operand, variables, tainted) for operand in instruction.operands[1:])


def _escapes(instruction: Instruction, variables: set[str], tainted: set[Register]) -> bool:
    """Whether a local address is stored, so that any address that is loaded may be local too."""
    if instruction.base not in ("st", "atom", "red"):
        return False
    values = [operand for operand in instruction.operands if not isinstance(operand, Address)]
    return any(
        _names_local(element, variables, tainted)
        for value in values
        for element in (value.elements if isinstance(value, Vector) else (value,))
    )


def _names_local(operand: Operand | None, variables: set[str], tainted: set[Register]) -> bool:
    if isinstance(operand, Symbol):
        return operand.name in variables
    return isinstance(operand, Register) and operand in tainted
