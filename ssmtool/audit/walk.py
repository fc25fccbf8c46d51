"""One block of a launch, walked: which instruction each warp issues, as far as parameters and indices decide it.

Only the part of the program that follows from parameters, block and thread indices is computed; what comes from memory
or floating point is unknown, and a branch on it ends the walk with `CannotTellError`. Lanes of a warp that part at a
branch run one side after the other and meet again at the branch's immediate post-dominator, as the SSY stack of Kepler
has them do. An instruction whose guard is false is still issued, so it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ssmtool.audit.assumptions import Assumed
from ssmtool.audit.constants import Environment, Machine
from ssmtool.audit.flow import EXIT, Flow, Step
from ssmtool.errors import SsmtoolError
from ssmtool.ptx import isa
from ssmtool.ptx.function import Function
from ssmtool.ptx.opcode import TYPE_BITS
from ssmtool.ptx.operands import Address, Register, Symbol

WARP = 32
# Instructions one warp may issue before the walk is given up.
_LIMIT = 3_000_000
# Where a pointer parameter that nothing is assumed of points to: parameter i owns the addresses that start with i + 1.
_BUFFER_SHIFT = 44

# Instructions that make an address of an address; on any other a made-up one gives nothing.
_KEEPS_ADDRESS = frozenset(("mov", "add", "sub", "mad", "selp", "setp"))

# A register in all lanes: one number, or one (or None, unknown) each.
Lanes = int | list[int | None]


class CannotTellError(SsmtoolError):
    """The walk met a branch that does not follow from what is known, or would not end."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch: blocks in the grid and threads in a block, x, y, z; and the block that is walked."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    at: tuple[int, int, int] = (0, 0, 0)

    @property
    def threads(self) -> int:
        """Threads in a block."""
        x, y, z = self.block
        return x * y * z

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        x, y, z = self.grid
        return x * y * z


@dataclass(slots=True)
class Walked:
    """What the warps of one block did; `issued` counts issues by instruction.

    `read` and `written` are the 4-byte words of global memory by parameter index, as far as addresses are known;
    `unknown_addresses` counts the accesses where they are not.
    """

    issued: dict[int, int] = field(default_factory=dict)
    read: dict[int, set[int]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)
    unknown_addresses: int = 0


def walk(flow: Flow, assumed: Assumed, shape: Shape) -> Walked:
    """Walk every warp of the block `shape.at`. Raises CannotTellError."""
    walked = Walked()
    machine = _Machine(flow.function, assumed)
    for first in range(0, shape.threads, WARP):
        _Warp(flow, machine, shape, first, walked).run()
    return walked


class _Machine(Machine):
    """The propagation's machine with addresses.

    A pointer parameter has a made-up value of its own, and a generic address equals that in its space.
    """

    def __init__(self, function: Function, assumed: Assumed) -> None:
        super().__init__(function, assumed)
        self._pointers = {
            variable.name: ((index + 1) << _BUFFER_SHIFT) + (1 << (_BUFFER_SHIFT - 1))
            for index, variable in enumerate(function.params)
            if variable.size == 8 and (variable.type or "")[:1] in ("u", "b", "s") and not variable.dims
        }

    def results(self, step: Step, known: Environment) -> dict[Register, int | None]:
        """As the propagation has it, but what only a made-up address would decide is unknown."""
        instruction = step.instruction
        sources = [self.value(source, instruction.type, known) for source in step.sources]
        made_up = {value >> _BUFFER_SHIFT for value in sources if value is not None and self._made_up(value)}
        if instruction.base == "cvta" and step.results and isinstance(step.results[0], Register):
            return {step.results[0]: sources[0]}
        if made_up:
            # Two buffers against each other, a buffer against NULL, the low bits of an address: all made up.
            numbers = {value >> _BUFFER_SHIFT for value in sources[:2] if value is not None}
            if instruction.base not in _KEEPS_ADDRESS:
                return {}
            if (
                instruction.base in ("setp", "sub")
                and len(numbers) > 1
                and (instruction.base == "setp" or len(made_up) > 1)
            ):
                return {}
        return super().results(step, known)

    def _made_up(self, value: int) -> bool:
        return 0 < value >> _BUFFER_SHIFT <= len(self.function.params)

    def parameter(self, step: Step, result: Register) -> int | None:
        """An assumed value, else a made-up address for a pointer."""
        found = super().parameter(step, result)
        address = step.sources[0]
        if found is not None or not isinstance(address, Address) or not isinstance(address.base, Symbol):
            return found
        whole = step.instruction.opcode.type in ("u64", "b64", "s64") and not address.offset
        return self._pointers.get(address.base.name) if whole and address.base.scope == 0 else None


@dataclass(slots=True)
class _Frame:
    block: int
    mask: int
    meets: int


class _Warp:
    def __init__(self, flow: Flow, machine: _Machine, shape: Shape, first: int, walked: Walked) -> None:
        self.flow = flow
        self.machine = machine
        self.walked = walked
        self.alive = (1 << min(WARP, shape.threads - first)) - 1
        self.registers: dict[Register, Lanes] = {}
        self.left = _LIMIT
        self._uses: dict[int, tuple[Register, ...]] = {}
        width, height, _ = shape.block
        threads = range(first, first + WARP)
        indices = {
            "x": [t % width for t in threads],
            "y": [t // width % height for t in threads],
            "z": [t // width // height for t in threads],
        }
        for place, (axis, numbers) in enumerate(indices.items()):
            self.registers[Register(f"%tid.{axis}")] = [*numbers]
            for name, sizes in (("ntid", shape.block), ("ctaid", shape.at), ("nctaid", shape.grid)):
                self.registers[Register(f"%{name}.{axis}")] = sizes[place]
        self.registers[Register("%laneid")] = list(range(WARP))

    def run(self) -> None:
        """Execute to the end of every lane."""
        stack = [_Frame(0, self.alive, EXIT)]
        while stack:
            top = stack[-1]
            top.mask &= self.alive
            if top.block == EXIT:
                self.alive &= ~top.mask
                stack.pop()
            elif not top.mask or top.block == top.meets:
                stack.pop()
            else:
                self._branch(stack, top, self._block(top.block, top.mask))

    def _block(self, block: int, mask: int) -> int:
        """Execute a block; the lanes in which the guard of its last instruction holds."""
        span = self.flow.blocks[block]
        issued = self.walked.issued
        for index in range(span.start, span.end):
            issued[index] = issued.get(index, 0) + 1
            self._execute(self.flow.step(index), mask)
        self.left -= span.end - span.start
        if self.left < 0:
            raise CannotTellError(f"the walk was given up after {_LIMIT} instructions of one warp")
        if span.start == span.end:
            return mask
        return self._guard(self.flow.step(span.end - 1), mask, branching=True)

    def _branch(self, stack: list[_Frame], top: _Frame, taken: int) -> None:
        ending = self.flow.ending(top.block)
        if len(set(ending.taken)) > 1:
            raise self._cannot(self.flow.step(self.flow.blocks[top.block].end - 1), "chooses from a table")
        target = ending.taken[0]
        if ending.falls is None or taken == top.mask:
            top.block = target
            return
        if not taken:
            top.block = ending.falls
            return
        meets = self.flow.graph.immediate_post_dominators.get(top.block)
        meeting = EXIT if meets is None else meets
        falls, mask = ending.falls, top.mask
        top.block = meeting
        stack.append(_Frame(falls, mask & ~taken, meeting))
        stack.append(_Frame(target, taken, meeting))

    def _guard(self, step: Step, mask: int, *, branching: bool = False) -> int:
        if step.guard is None:
            return mask
        value = self.registers.get(step.guard)
        if isinstance(value, int):
            return mask if (value & 1) ^ int(step.guard_negated) else 0
        taken = 0
        for lane in range(WARP):
            if mask >> lane & 1:
                own = value[lane] if value is not None else None
                if own is None:
                    if branching and step.instruction.base in ("bra", "brx", "ret", "exit", "trap"):
                        raise self._cannot(step, "depends on data, or on a parameter that nothing is assumed of")
                    continue
                taken |= ((own & 1) ^ int(step.guard_negated)) << lane
        return taken

    def _cannot(self, step: Step, why: str) -> CannotTellError:
        line = step.instruction.line
        return CannotTellError(f"the branch at PTX line {line} {why}: it cannot be told without execution", line=line)

    def _execute(self, step: Step, mask: int) -> None:
        base = step.instruction.base
        if base in ("ld", "st", "atom", "red", "ldu"):
            self._access(step, mask)
        if not step.written:
            return
        used = self._used(step)
        values = [(register, self.registers.get(register)) for register in used]
        varied = [register for register, value in values if isinstance(value, list)]
        known: Environment = {register: value for register, value in values if isinstance(value, int)}
        if not varied:
            guard = self.machine.guard(step, known)
            if guard == 0:
                return
            results = self.machine.results(step, known)
            for register in step.written:
                value = results.get(register) if guard == 1 else None
                self._write(register, value, mask)
            return
        for register in step.written:
            self._spread(register)
        for lane in range(WARP):
            if not mask >> lane & 1:
                continue
            own = dict(known)
            for register in varied:
                value = self._lane(register, lane)
                if value is not None:
                    own[register] = value
            guard = self.machine.guard(step, own)
            if guard == 0:
                continue
            results = self.machine.results(step, own)
            for register in step.written:
                lanes = self.registers[register]
                assert isinstance(lanes, list)
                lanes[lane] = results.get(register) if guard == 1 else None

    def _used(self, step: Step) -> tuple[Register, ...]:
        used = self._uses.get(step.instruction.index)
        if used is None:
            used = self._uses[step.instruction.index] = tuple(isa.uses(step.instruction))
        return used

    def _lane(self, register: Register, lane: int) -> int | None:
        value = self.registers.get(register)
        return value[lane] if isinstance(value, list) else value

    def _spread(self, register: Register) -> None:
        """Give a register a value for each lane, its own list."""
        value = self.registers.get(register)
        self.registers[register] = [*value] if isinstance(value, list) else [value] * WARP

    def _write(self, register: Register, value: int | None, mask: int) -> None:
        if mask == self.alive:
            if value is None:
                self.registers.pop(register, None)
            else:
                self.registers[register] = value
            return
        self._spread(register)
        lanes = self.registers[register]
        assert isinstance(lanes, list)
        for lane in range(WARP):
            if mask >> lane & 1:
                lanes[lane] = value

    def _access(self, step: Step, mask: int) -> None:
        """Record the words of global memory that the lanes touch."""
        instruction = step.instruction
        if instruction.space not in ("global", None):
            return
        operands = step.sources if instruction.base in ("ld", "ldu", "atom") else instruction.operands
        address = next((operand for operand in operands if isinstance(operand, Address)), None)
        if address is None or not isinstance(address.base, Register):
            self.walked.unknown_addresses += 1
            return
        size = TYPE_BITS.get(instruction.type or "b8", 8) // 8 * instruction.opcode.vector
        active = self._guard(step, mask)
        if step.guard is not None and any(
            mask >> lane & 1 and self._lane(step.guard, lane) is None for lane in range(WARP)
        ):
            self.walked.unknown_addresses += 1  # whether it is touched at all is not known
        targets = []
        if instruction.base != "st" and instruction.base != "red":
            targets.append(self.walked.read)
        if instruction.base in ("st", "atom", "red"):
            targets.append(self.walked.written)
        for lane in range(WARP):
            if not active >> lane & 1:
                continue
            base = self._lane(address.base, lane)
            if base is None:
                self.walked.unknown_addresses += 1
                return
            start = base + address.offset
            words = range(start >> 2, (start + size + 3) >> 2)
            for target in targets:
                target.setdefault((start >> _BUFFER_SHIFT) - 1, set()).update(words)
