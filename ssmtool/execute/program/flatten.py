"""One flat list of instructions for an entry: the `.func` bodies it calls stand in place of their calls.

Divergence, liveness and everything after then need no notion of a call. Recursion and calls through registers are
refused. The `.param` variables of a call become registers, since all they do is carry values; names of variables
become places: a state space and a byte offset in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ssmtool.errors import SsmtoolError
from ssmtool.execute.program.flat import Flat, Op, Place, place, refuse
from ssmtool.execute.program.names import Names, framed, register_type
from ssmtool.execute.program.places import Places, Slot
from ssmtool.ptx import Function, Instruction, Module, Variable
from ssmtool.ptx.opcode import TYPE_BITS, split_opcode
from ssmtool.ptx.operands import Address, Group, Label, Operand, Predicate, Register, Symbol, Vector

_MOST_OPS = 200_000
_EXTERNAL = {
    "vprintf": "printf needs a host that prints; remove it or guard it with #ifdef",
    "malloc": "there is no device heap",
    "free": "there is no device heap",
}


def flatten(module: Module, entry: Function) -> Flat:
    """The flat code of `entry`. Raises UnsupportedError or SsmtoolError naming the line."""
    flat = Flat(entry, module.source)
    flattener = _Flattener(module, flat)
    flattener.entry_params()
    flattener.body(entry, {}, ())
    flattener.patch()
    flattener.places.finish()
    return flat


class _Flattener:
    def __init__(self, module: Module, flat: Flat) -> None:
        self.module = module
        self.flat = flat
        self.places = Places(module, flat)
        self.frames = 0
        self.positions: dict[tuple[int, int], int] = {}
        self.pending: list[tuple[Op, int, tuple[tuple[str, int], ...]]] = []
        self.slots: dict[str, dict[int, int]] = {}

    def entry_params(self) -> None:
        """Lay the entry's parameters out, each aligned to itself (PTX ISA, "Kernel Function Parameters")."""
        at = 0
        for param in self.flat.entry.params:
            at = -(-at // param.alignment) * param.alignment
            self.flat.params.append((param, at))
            at += param.size
        self.flat.param_bytes = at

    def body(self, function: Function, slots: dict[str, Slot | Place], stack: tuple[str, ...]) -> None:
        """Append a function's instructions; `slots` are its parameters by name when it is called."""
        frame = self.frames
        self.frames += 1
        bound: dict[tuple[str, int], Place | Slot] = {}
        if stack:
            for variable in (*function.params, *function.returns):
                if variable.space != "reg":
                    bound[variable.name, 0] = slots[variable.name]
        else:
            for variable, offset in self.flat.params:
                bound[variable.name, 0] = place("param", offset)
        names = Names(self.places, function, frame, bound)
        if stack:
            for variable in (*function.params, *function.returns):
                if variable.space == "reg":  # old style: parameters are registers
                    self.flat.types[names.named(variable.name)] = register_type(variable)
        for index in range(len(function.opcodes)):
            self.positions[frame, index] = len(self.flat.instructions)
            self.instruction(function.instructions[index], names, stack)
            if len(self.flat.instructions) > _MOST_OPS:
                raise SsmtoolError(
                    f"{self.flat.entry.name} has more than {_MOST_OPS} instructions with its calls in place",
                    path=self.flat.source.path,
                    line=self.flat.entry.line,
                )
        self.positions[frame, len(function.opcodes)] = len(self.flat.instructions)

    def add(self, origin: Instruction, opcode: str, operands: Sequence[Operand], guard: Predicate | None) -> Op:
        """Append one instruction."""
        op = Op(origin, split_opcode(opcode), tuple(operands), guard)
        self.flat.instructions.append(op)
        return op

    def instruction(self, origin: Instruction, names: Names, stack: tuple[str, ...]) -> None:
        """Append what one instruction of a body becomes."""
        names.line = origin.line
        guard = names.guard(origin.predicate)
        base = origin.base
        if base == "call":
            self.call(origin, names, guard, stack)
        elif base == "ret" and stack:
            self.branch(origin, guard, ((names.frame, len(names.function.opcodes)),))
        elif base in ("bra", "brx"):
            kept = [names.operand(each) for each in origin.operands[:1]] if base == "brx" else []
            op = self.add(origin, origin.opcode.text, kept, guard)
            self.pending.append((op, names.frame, tuple(("", label.target) for label in origin.targets)))
        elif base in ("ld", "st") and origin.space == "param" and names.slot(_address(origin)) is not None:
            self.slot_access(origin, names, guard)
        else:
            text = origin.opcode.text
            if stack and base in ("ld", "st") and origin.space == "param":  # parameters of functions, by address
                text = text.replace(".param", ".local", 1)
            self.add(origin, text, [names.operand(each) for each in origin.operands], guard)

    def branch(self, origin: Instruction, guard: Predicate | None, to: tuple[tuple[int, int], ...]) -> None:
        """Append a branch to the instruction `index` of frame `frame`."""
        op = self.add(origin, "bra", [], guard)
        self.pending.append((op, to[0][0], (("", to[0][1]),)))

    def patch(self) -> None:
        """Fill the branches' targets in, now that every instruction has its place."""
        for op, frame, targets in self.pending:
            op.targets = tuple(Label(name, self.positions[frame, index]) for name, index in targets)
            if not op.targets:
                raise refuse(op, "this branch names no label of its function")

    def slot_access(self, origin: Instruction, names: Names, guard: Predicate | None) -> None:
        """`ld.param`/`st.param` of a call's parameter: a move from or to the register that stands for it."""
        address = _address(origin)
        slot = names.slot(address)
        assert slot is not None
        kind = origin.types[-1]
        width = max(1, TYPE_BITS[kind] // 8)
        offset = address.offset + (address.base.offset if isinstance(address.base, Symbol) else 0)
        data = origin.operands[0] if origin.base == "ld" else origin.operands[1]
        elements = data.elements if isinstance(data, Vector) else (data,)
        for number, element in enumerate(elements):
            at = offset + number * width
            register = self.slot_register(origin, slot.name, at, width)
            value = names.operand(element)
            if origin.base == "st":
                move = "mov.b32" if width == 4 else "mov.b64" if width == 8 else f"cvt.u32.u{width * 8}"
                self.add(origin, move, (register, value), guard)
            elif width >= 4:
                self.add(origin, f"mov.b{width * 8}", (value, register), guard)
            elif isinstance(value, Register):
                wide = max(16, TYPE_BITS.get(self.flat.types.get(value, "b32"), 32))
                sign = "s" if kind[0] == "s" else "u"
                self.add(origin, f"cvt.{sign}{wide}.{sign}{width * 8}", (value, register), guard)

    def slot_register(self, origin: Instruction, name: str, offset: int, width: int) -> Register:
        """The register for `width` bytes at `offset` of a call parameter."""
        parts = self.slots.setdefault(name, {})
        for start, size in parts.items():
            if start < offset + width and offset < start + size and (start, size) != (offset, width):
                raise refuse(origin, "a call's parameter is read in other pieces than it is written in")
        parts[offset] = width
        register = Register(f"{name}+{offset}")
        self.flat.types[register] = "b64" if width == 8 else "b32"
        return register

    def call(self, origin: Instruction, names: Names, guard: Predicate | None, stack: tuple[str, ...]) -> None:
        """Append the callee's body with its parameters bound."""
        operands = list(origin.operands)
        returns: tuple[Operand, ...] = ()
        if operands and isinstance(operands[0], Group) and len(operands) > 1:
            returns = operands.pop(0).elements  # type: ignore[union-attr]
        target = operands.pop(0)
        arguments = operands[0].elements if operands and isinstance(operands[0], Group) else ()
        if not isinstance(target, Symbol):
            raise refuse(origin, "a call through a register cannot be followed")
        function = self.module.function(target.name)
        if function is None:
            if target.name == "__assertfail":  # what assert() comes to
                self.add(origin, "trap", (), guard)
                return
            raise refuse(origin, _EXTERNAL.get(target.name, f"{target.name} has no body in this module"))
        if function.name in stack or function is self.flat.entry:
            raise refuse(origin, f"{function.name} calls itself; recursion needs a stack")
        if len(arguments) != len(function.params) or len(returns) != len(function.returns):
            raise refuse(origin, f"{function.name} takes other parameters than this call gives")
        skip: Op | None = None
        if guard is not None:
            skip = self.add(origin, "bra", (), replace(guard, negated=not guard.negated))
        slots: dict[str, Slot | Place] = {}
        for given, param in zip((*arguments, *returns), (*function.params, *function.returns), strict=True):
            if param.space == "reg":
                continue
            bound = names.bound.get((given.name, given.scope)) if isinstance(given, Symbol) else None
            if isinstance(given, Symbol) and bound is None:
                bound = names.declare(given)
            if isinstance(bound, Slot):
                slots[param.name] = bound
                continue
            if isinstance(bound, Place) and bound.space in ("param", "local"):
                raise refuse(origin, f"{bound.name or 'a parameter'} is passed on as it came")
            slot = slots[param.name] = self.places.new_slot(param.name)
            width = max(1, param.size)
            register = self.slot_register(origin, slot.name, 0, width)
            self.add(origin, "mov.b64" if width == 8 else "mov.b32", (register, names.operand(given)), None)
        for param in function.params:
            bound = slots.get(param.name)
            if isinstance(bound, Slot) and _address_taken(function, param.name):
                slots[param.name] = self.in_memory(origin, bound, param)
        frame = self.frames  # the one that body() is about to take
        for given, param in zip(arguments, function.params, strict=True):
            if param.space == "reg":
                register = Register(framed(param.name, frame))
                self.flat.types[register] = register_type(param)
                self.add(origin, _move(param), (register, names.operand(given)), None)
        self.body(function, slots, (*stack, function.name))
        for given, param in zip(returns, function.returns, strict=True):
            if param.space == "reg":
                register = Register(framed(param.name, frame))
                self.add(origin, _move(param), (names.operand(given), register), None)
        if skip is not None:
            after = (self.frames, 0)
            self.frames += 1
            self.positions[after] = len(self.flat.instructions)
            self.pending.append((skip, after[0], (("", 0),)))

    def in_memory(self, origin: Instruction, slot: Slot, param: Variable) -> Place:
        """Copy a call parameter whose address the callee takes from its registers to local memory."""
        copy = self.places.new_local(param)
        for offset, width in self.slots.get(slot.name, {}).items():
            register = self.slot_register(origin, slot.name, offset, width)
            address = Address(place("local", copy.offset + offset))
            self.add(origin, f"st.local.b{8 * width}", (address, register), None)
        return copy


@lru_cache(maxsize=1024)
def _address_taken(function: Function, name: str) -> bool:
    """Whether a function uses a parameter's address other than to load from or store to it."""
    return any(
        isinstance(operand, Symbol) and operand.name == name
        for instruction in function.instructions
        if instruction.base in ("mov", "cvta", "add")
        for operand in instruction.operands
    )


def _move(param: Variable) -> str:
    bits = TYPE_BITS.get(param.type or "b32", 32)
    return "mov.pred" if param.type == "pred" else f"mov.b{max(16, bits)}"


def _address(origin: Instruction) -> Address:
    operand = origin.operands[1] if origin.base == "ld" else origin.operands[0]
    if not isinstance(operand, Address):
        raise refuse(origin, "expected an address")
    return operand
