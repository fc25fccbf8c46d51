"""One flat list of instructions for an entry: the `.func` bodies it calls stand in place of their calls.

Divergence, liveness and everything after then need no notion of a call. Recursion and calls through registers are
refused. The `.param` variables of a call become registers, since all they do is carry values; names of variables
become places: a state space and a byte offset in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ssmtool.errors import SsmtoolError
from ssmtool.execute.layout import SharedVariable
from ssmtool.execute.numerics.form import UnsupportedError
from ssmtool.ptx import Function, Instruction, Module, Variable
from ssmtool.ptx.opcode import TYPE_BITS, Opcode, split_opcode
from ssmtool.ptx.operands import (
    Address,
    Group,
    Immediate,
    Label,
    Negated,
    Not,
    Operand,
    Pair,
    Predicate,
    Register,
    Sink,
    Symbol,
    Vector,
)
from ssmtool.ptx.source import SourceText

_MOST_OPS = 200_000
_EXTERNAL = {
    "vprintf": "printf needs a host that prints; remove it or guard it with #ifdef",
    "malloc": "there is no device heap",
    "free": "there is no device heap",
}


@dataclass(frozen=True, slots=True)
class Place(Symbol):
    """A symbol whose place is known: byte `offset` in `param` of the entry, `shared` or `local`.

    In `global` and `const` the offset counts from the module variable `name`.
    """

    space: str = ""


def _place(space: str, offset: int, name: str = "") -> Place:
    return Place(name, -1, offset, space)


@dataclass(slots=True)
class Op:
    """An instruction of the flat list, shaped as `ptx.code.Statement`; `origin` is where it stands in the text."""

    origin: Instruction
    opcode: Opcode
    operands: tuple[Operand, ...]
    predicate: Predicate | None
    targets: tuple[Label, ...] = ()

    @property
    def base(self) -> str:
        """The opcode's first word."""
        return self.opcode.base

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The opcode's other words."""
        return self.opcode.modifiers

    @property
    def span(self) -> tuple[int, int]:
        """Offsets in the text."""
        return self.origin.span


@dataclass(slots=True)
class Flat:
    """The flat code of one entry, shaped as `ptx.code.Code`, and the memory it declares (bytes)."""

    entry: Function
    source: SourceText
    instructions: list[Op] = field(default_factory=list)
    types: dict[Register, str] = field(default_factory=dict)
    params: list[tuple[Variable, int]] = field(default_factory=list)
    param_bytes: int = 0
    shared_bytes: int = 0
    dynamic_alignment: int = 16
    local_bytes: int = 0
    symbols: list[str] = field(default_factory=list)
    shared_variables: list[SharedVariable] = field(default_factory=list)
    noreturn_names: set[str] = field(default_factory=set)

    @property
    def opcodes(self) -> Sequence[str]:
        """Opcode texts, a column."""
        return [op.opcode.text for op in self.instructions]


def flatten(module: Module, entry: Function) -> Flat:
    """The flat code of `entry`. Raises UnsupportedError or SsmtoolError naming the line."""
    flat = Flat(entry, module.source)
    flattener = _Flattener(module, flat)
    flattener.entry_params()
    flattener.body(entry, {}, ())
    flattener.patch()
    flat.shared_bytes = flattener.shared_end
    flat.local_bytes = -(-flattener.local_end // 16) * 16
    return flat


def refuse(op: Op | Instruction, why: str) -> UnsupportedError:
    """The refusal of an instruction, by name and line, before anything runs."""
    origin = op.origin if isinstance(op, Op) else op
    error = UnsupportedError(" ".join(origin.text.split()), why)
    error.line = origin.line
    error.path = origin.function.source.path
    return error


@dataclass(frozen=True, slots=True)
class _Slot:
    """A call's parameter variable: its accesses become registers named after it."""

    name: str


class _Flattener:
    def __init__(self, module: Module, flat: Flat) -> None:
        self.module = module
        self.flat = flat
        self.frames = 0
        self.module_places: dict[str, Place] = {}
        self.positions: dict[tuple[int, int], int] = {}
        self.pending: list[tuple[Op, int, tuple[tuple[str, int], ...]]] = []
        self.slots: dict[str, dict[int, int]] = {}
        self.slot_names = 0
        self.shared_end = 0
        self.local_end = 0
        self.dynamic = False

    def entry_params(self) -> None:
        """Lay the entry's parameters out, each aligned to itself (PTX ISA, "Kernel Function Parameters")."""
        at = 0
        for param in self.flat.entry.params:
            at = -(-at // param.alignment) * param.alignment
            self.flat.params.append((param, at))
            at += param.size
        self.flat.param_bytes = at

    def body(self, function: Function, slots: dict[str, _Slot | Place], stack: tuple[str, ...]) -> None:
        """Append a function's instructions; `slots` are its parameters by name when it is called."""
        frame = self.frames
        self.frames += 1
        local: dict[tuple[str, int], Place | _Slot] = {}
        if stack:
            for variable in (*function.params, *function.returns):
                if variable.space != "reg":
                    local[variable.name, 0] = slots[variable.name]
        else:
            for variable, offset in self.flat.params:
                local[variable.name, 0] = _place("param", offset)
        resolver = _Resolver(self, function, frame, local)
        if stack:
            for variable in (*function.params, *function.returns):
                if variable.space == "reg":  # old style: parameters are registers
                    self.flat.types[resolver.named(variable.name)] = _register_type(variable)
        for index in range(len(function.opcodes)):
            self.positions[frame, index] = len(self.flat.instructions)
            self.instruction(function.instructions[index], resolver, stack)
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

    def instruction(self, origin: Instruction, resolver: _Resolver, stack: tuple[str, ...]) -> None:
        """Append what one instruction of a body becomes."""
        resolver.line = origin.line
        guard = resolver.guard(origin.predicate)
        base = origin.base
        if base == "call":
            self.call(origin, resolver, guard, stack)
        elif base == "ret" and stack:
            self.branch(origin, guard, ((resolver.frame, len(resolver.function.opcodes)),))
        elif base in ("bra", "brx"):
            kept = [resolver.operand(each) for each in origin.operands[:1]] if base == "brx" else []
            op = self.add(origin, origin.opcode.text, kept, guard)
            self.pending.append((op, resolver.frame, tuple(("", label.target) for label in origin.targets)))
        elif base in ("ld", "st") and origin.space == "param" and resolver.slot(_address(origin)) is not None:
            self.slot_access(origin, resolver, guard)
        else:
            text = origin.opcode.text
            if stack and base in ("ld", "st") and origin.space == "param":  # parameters of functions, by address
                text = text.replace(".param", ".local", 1)
            self.add(origin, text, [resolver.operand(each) for each in origin.operands], guard)

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
        if not self.dynamic:
            return
        end = -(-self.shared_end // self.flat.dynamic_alignment) * self.flat.dynamic_alignment
        # Dynamic shared memory lies behind all static variables; its places were made before that end was known.
        for op in self.flat.instructions:
            op.operands = tuple(_moved(operand, end) for operand in op.operands)

    def slot_access(self, origin: Instruction, resolver: _Resolver, guard: Predicate | None) -> None:
        """`ld.param`/`st.param` of a call's parameter: a move from or to the register that stands for it."""
        address = _address(origin)
        slot = resolver.slot(address)
        assert slot is not None
        kind = origin.types[-1]
        width = max(1, TYPE_BITS[kind] // 8)
        offset = address.offset + (address.base.offset if isinstance(address.base, Symbol) else 0)
        data = origin.operands[0] if origin.base == "ld" else origin.operands[1]
        elements = data.elements if isinstance(data, Vector) else (data,)
        for number, element in enumerate(elements):
            at = offset + number * width
            register = self.slot_register(origin, slot.name, at, width)
            value = resolver.operand(element)
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

    def call(self, origin: Instruction, resolver: _Resolver, guard: Predicate | None, stack: tuple[str, ...]) -> None:
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
        slots: dict[str, _Slot | Place] = {}
        for given, param in zip((*arguments, *returns), (*function.params, *function.returns), strict=True):
            if param.space == "reg":
                continue
            bound = resolver.local.get((given.name, given.scope)) if isinstance(given, Symbol) else None
            if isinstance(given, Symbol) and bound is None:
                bound = resolver.declare(given)
            if isinstance(bound, _Slot):
                slots[param.name] = bound
                continue
            if isinstance(bound, Place) and bound.space in ("param", "local"):
                raise refuse(origin, f"{bound.name or 'a parameter'} is passed on as it came")
            self.slot_names += 1
            slot = slots[param.name] = _Slot(f"{param.name}@{self.slot_names}")
            width = max(1, param.size)
            register = self.slot_register(origin, slot.name, 0, width)
            self.add(origin, "mov.b64" if width == 8 else "mov.b32", (register, resolver.operand(given)), None)
        for param in function.params:
            bound = slots.get(param.name)
            if isinstance(bound, _Slot) and _address_taken(function, param.name):
                slots[param.name] = self.in_memory(origin, bound, param)
        frame = self.frames  # the one that body() is about to take
        for given, param in zip(arguments, function.params, strict=True):
            if param.space == "reg":
                register = Register(_framed(param.name, frame))
                self.flat.types[register] = _register_type(param)
                self.add(origin, _move(param), (register, resolver.operand(given)), None)
        self.body(function, slots, (*stack, function.name))
        for given, param in zip(returns, function.returns, strict=True):
            if param.space == "reg":
                register = Register(_framed(param.name, frame))
                self.add(origin, _move(param), (resolver.operand(given), register), None)
        if skip is not None:
            after = (self.frames, 0)
            self.frames += 1
            self.positions[after] = len(self.flat.instructions)
            self.pending.append((skip, after[0], (("", 0),)))

    def in_memory(self, origin: Instruction, slot: _Slot, param: Variable) -> Place:
        """Copy a call parameter whose address the callee takes from its registers to local memory."""
        place = self.variable_place(replace(param, space="local"))
        assert isinstance(place, Place)
        for offset, width in self.slots.get(slot.name, {}).items():
            register = self.slot_register(origin, slot.name, offset, width)
            address = Address(_place("local", place.offset + offset))
            self.add(origin, f"st.local.b{8 * width}", (address, register), None)
        return place

    def variable_place(self, variable: Variable) -> Place | _Slot:
        """Where a declared variable lies; a new one is given its place now."""
        space = variable.space.partition("::")[0]
        if space == "param":
            self.slot_names += 1
            return _Slot(f"{variable.name}@{self.slot_names}")
        if space == "shared":
            if variable.linkage == "extern" or variable.size == 0:
                self.dynamic = True
                self.flat.dynamic_alignment = max(self.flat.dynamic_alignment, variable.alignment)
                return _place("dynamic", 0)
            start = -(-self.shared_end // variable.alignment) * variable.alignment
            self.shared_end = start + variable.size
            self.flat.shared_variables.append(
                SharedVariable(variable.name, start, variable.size, variable.element_size)
            )
            return _place("shared", start)
        if space == "local":
            start = -(-self.local_end // variable.alignment) * variable.alignment
            self.local_end = start + variable.size
            return _place("local", start)
        if variable.name not in self.flat.symbols:
            self.flat.symbols.append(variable.name)
        return _place(space, 0, variable.name)


class _Resolver:
    """Names of one body, in one place where it stands, turned into registers and places of the flat code."""

    def __init__(
        self, flattener: _Flattener, function: Function, frame: int, local: dict[tuple[str, int], Place | _Slot]
    ) -> None:
        self.flattener = flattener
        self.function = function
        self.frame = frame
        self.local = local
        self.line = function.line

    def named(self, name: str) -> Register:
        """A register of the body's own scope by name."""
        return Register(_framed(name, self.frame), 0)

    def register(self, register: Register) -> Register:
        """The register of the flat code; its type is noted."""
        if register.special:
            return register
        found = Register(_framed(register.name, self.frame), register.scope, register.selector)
        plain = Register(found.name, found.scope)
        if plain not in self.flattener.flat.types:
            declared = self.function.register(register)
            if declared is None:
                raise SsmtoolError(
                    f"register {register.name} is not declared in {self.function.name}",
                    path=self.function.source.path,
                    line=self.line,
                )
            self.flattener.flat.types[plain] = _register_type(declared)
        return found

    def guard(self, predicate: Predicate | None) -> Predicate | None:
        """The guard with its register renamed."""
        return None if predicate is None else Predicate(self.register(predicate.register), predicate.negated)

    def declare(self, symbol: Symbol) -> Place | _Slot:
        """The place of a symbol, made when it is first met."""
        key = (symbol.name, symbol.scope)
        found = self.local.get(key)
        if found is not None:
            return found
        flattener = self.flattener
        variable = self.function.variable(symbol)
        if variable is not None:
            found = flattener.variable_place(variable)
            self.local[key] = found
            return found
        known = flattener.module_places.get(symbol.name)
        if known is None:
            variable = flattener.module.variable(symbol.name)
            if variable is None:
                raise SsmtoolError(
                    f"{symbol.name} is not a variable of this module: only data has an address here",
                    path=self.function.source.path,
                    line=self.function.line,
                )
            place = flattener.variable_place(variable)
            assert isinstance(place, Place)
            known = flattener.module_places[symbol.name] = place
        return known

    def slot(self, address: Address) -> _Slot | None:
        """The call parameter that an address names, None when it names none."""
        if not isinstance(address.base, Symbol):
            return None
        place = self.declare(address.base)
        return place if isinstance(place, _Slot) else None

    def operand(self, operand: Operand) -> Operand:
        """The operand with names resolved."""
        if isinstance(operand, Register):
            return self.register(operand)
        if isinstance(operand, Symbol):
            place = self.declare(operand)
            if isinstance(place, _Slot):
                raise SsmtoolError(
                    f"the address of call parameter {operand.name} is taken in {self.function.name}",
                    path=self.function.source.path,
                    line=self.function.line,
                )
            return replace(place, offset=place.offset + operand.offset)
        if isinstance(operand, Address):
            base = operand.base
            resolved = None if base is None else self.operand(base)
            assert resolved is None or isinstance(resolved, (Register, Symbol))
            return Address(resolved, operand.offset, tuple(self.operand(each) for each in operand.extra))
        if isinstance(operand, (Vector, Group)):
            return type(operand)(tuple(self.operand(each) for each in operand.elements))
        if isinstance(operand, Pair):
            return Pair(self.operand(operand.first), self.operand(operand.second))
        if isinstance(operand, (Not, Negated)):
            return type(operand)(self.operand(operand.operand))
        assert isinstance(operand, (Immediate, Label, Sink))
        return operand


@lru_cache(maxsize=1024)
def _address_taken(function: Function, name: str) -> bool:
    """Whether a function uses a parameter's address other than to load from or store to it."""
    return any(
        isinstance(operand, Symbol) and operand.name == name
        for instruction in function.instructions
        if instruction.base in ("mov", "cvta", "add")
        for operand in instruction.operands
    )


def _framed(name: str, frame: int) -> str:
    return f"{name}#{frame}" if frame else name


def _register_type(variable: Variable) -> str:
    return variable.type or "b32"


def _move(param: Variable) -> str:
    bits = TYPE_BITS.get(param.type or "b32", 32)
    return "mov.pred" if param.type == "pred" else f"mov.b{max(16, bits)}"


def _address(origin: Instruction) -> Address:
    operand = origin.operands[1] if origin.base == "ld" else origin.operands[0]
    if not isinstance(operand, Address):
        raise refuse(origin, "expected an address")
    return operand


def _moved(operand: Operand, end: int) -> Operand:
    """Places in dynamic shared memory as places in shared memory, now that its start is known."""
    if isinstance(operand, Place):
        return _place("shared", operand.offset + end) if operand.space == "dynamic" else operand
    if isinstance(operand, Address) and isinstance(operand.base, Place) and operand.base.space == "dynamic":
        return replace(operand, base=_place("shared", operand.base.offset + end))
    if isinstance(operand, Vector):
        return Vector(tuple(_moved(each, end) for each in operand.elements))
    return operand
