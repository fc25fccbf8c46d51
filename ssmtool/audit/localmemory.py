"""Instructions that reach local memory: `ld.local`/`st.local`, and generic accesses through an address made from it."""

from __future__ import annotations

from dataclasses import dataclass

from ssmtool.ptx import isa
from ssmtool.ptx.function import Function
from ssmtool.ptx.instruction import Instruction
from ssmtool.ptx.opcode import split_opcode
from ssmtool.ptx.operands import Address, Group, Operand, Pair, Register, Symbol, Vector

_LOADS = frozenset(("ld", "ldu"))
_ACCESSES = frozenset(("ld", "ldu", "st", "atom", "red"))
# What makes no address of an address: accesses (what comes out of memory is `_hands_out`'s business), control, tests.
_MAKES_NONE = _ACCESSES | frozenset(
    (
        "setp",
        "set",
        "testp",
        "isspacep",
        "bra",
        "brx",
        "ret",
        "exit",
        "trap",
        "call",
        "bar",
        "barrier",
        "membar",
        "fence",
    )
)
# Of floating-point instructions only these keep the bits of an address.
_KEEPS_BITS = frozenset(("mov", "selp", "slct", "shfl"))


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """One instruction that touches local memory.

    `kind` is `load`, `store` or `atomic`. `generic` says that the opcode names no state space and the address was
    followed back to a `.local` variable; ptxas may or may not find that out too.
    """

    index: int
    kind: str
    generic: bool


def local_accesses(
    function: Function, *, handed: bool = False, module_locals: frozenset[str] = frozenset()
) -> tuple[LocalAccess, ...]:
    """Every such instruction, in text order.

    `handed` says that local addresses of others may reach this function (a caller passes or stores one): then every
    access without a state space counts. `module_locals` are `.local` variables outside any function.

    Operands are read only where the function declares local memory or converts a local address, so a function without
    any costs one look at its opcodes.
    """
    found: list[LocalAccess] = []
    if any(".local" in opcode for opcode in set(function.opcodes)):
        found += [
            LocalAccess(index, _kind(opcode), False)
            for index, opcode in enumerate(function.opcodes)
            if ".local" in opcode and opcode.partition(".")[0] in _ACCESSES
        ]
    if handed:
        found += [LocalAccess(index, _kind(function.opcodes[index]), True) for index in _generic(function)]
    elif _makes_local_addresses(function, module_locals):
        found += _through_addresses(function, module_locals)
    found.sort(key=lambda access: access.index)
    return tuple(found)


def hands_out(function: Function, module_locals: frozenset[str] = frozenset()) -> bool:
    """Whether a local address is stored or passed on, so that any address that is loaded or got may be local."""
    if not _makes_local_addresses(function, module_locals):
        return False
    return _Taint(function, module_locals).escapes


def _makes_local_addresses(function: Function, module_locals: frozenset[str]) -> bool:
    return bool(function.local_variables or module_locals) or any(
        opcode.startswith("cvta.local") for opcode in set(function.opcodes)
    )


def _generic(function: Function) -> list[int]:
    """Indices of the accesses without a state space."""
    wanted = {
        opcode
        for opcode in set(function.opcodes)
        if opcode.partition(".")[0] in _ACCESSES and split_opcode(opcode).space is None
    }
    return [index for index, opcode in enumerate(function.opcodes) if opcode in wanted] if wanted else []


def _kind(opcode: str) -> str:
    base = opcode.partition(".")[0]
    return "load" if base in _LOADS else "store" if base == "st" else "atomic"


def _through_addresses(function: Function, module_locals: frozenset[str]) -> list[LocalAccess]:
    """Accesses without a state space whose address derives from a local variable; all when one is handed out."""
    generic = _generic(function)
    if not generic:
        return []
    taint = _Taint(function, module_locals)
    return [
        LocalAccess(index, _kind(function.opcodes[index]), True)
        for index in generic
        if taint.escapes
        or any(
            taint.names(operand.base)
            for operand in function.instructions[index].operands
            if isinstance(operand, Address)
        )
    ]


class _Taint:
    """Registers that may hold a local address anywhere in the function.

    Followed without regard to order: one that shares its register with another pointer is tainted too. Whatever is
    computed from a local address counts as one, by any instruction, those included that nobody knows.
    """

    def __init__(self, function: Function, module_locals: frozenset[str]) -> None:
        self._variables = {variable.name for variable in function.local_variables} | module_locals
        self._tainted: set[Register] = set()
        outlets: list[Instruction] = []
        written_from: dict[Register, list[frozenset[Register]]] = {}
        work: list[Register] = []
        for index, opcode in enumerate(function.opcodes):
            base = opcode.partition(".")[0]
            known = isa.info(opcode) is not None
            if base in ("st", "atom", "red", "call") or not known:
                outlets.append(function.instructions[index])
            type_ = split_opcode(opcode).type or ""
            if base in _MAKES_NONE or (known and type_[:1] == "f" and base not in _KEEPS_BITS):
                continue
            instruction = function.instructions[index]
            to = base == "cvta" and instruction.opcode.has("to")
            if to and instruction.space != "local":
                continue  # of a generic address the one in another space: a local one has none there
            written = isa.defs(instruction) if known else isa.uses(instruction)
            from_local = base == "cvta" and not to and instruction.space == "local"
            if from_local or any(self.names(operand) for operand in instruction.operands):
                work += written
            for register in isa.uses(instruction):
                written_from.setdefault(register, []).append(written)
        while work:
            register = work.pop()
            if register not in self._tainted:
                self._tainted.add(register)
                for written in written_from.pop(register, ()):
                    work += written
        self.escapes = any(self._escapes(instruction) for instruction in outlets)

    def names(self, operand: Operand | None) -> bool:
        """Whether the operand is a local variable or a register that may hold the address of one."""
        if isinstance(operand, (Vector, Group)):
            return any(self.names(element) for element in operand.elements)
        if isinstance(operand, Pair):
            return self.names(operand.first) or self.names(operand.second)
        if isinstance(operand, Symbol):
            return operand.name in self._variables
        if isinstance(operand, Register):
            return operand in self._tainted or (
                operand.selector is not None and Register(operand.name, operand.scope) in self._tainted
            )
        return False

    def _escapes(self, instruction: Instruction) -> bool:
        return any(self.names(operand) for operand in instruction.operands if not isinstance(operand, Address))
