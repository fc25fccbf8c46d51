"""Instructions with their operands sorted into results and sources, and where control goes from a block."""

from __future__ import annotations

from dataclasses import dataclass

from ssmtool.ptx import isa
from ssmtool.ptx.cfg import Block, ControlFlowGraph
from ssmtool.ptx.function import Function
from ssmtool.ptx.instruction import Instruction
from ssmtool.ptx.modifiers import problem
from ssmtool.ptx.operands import Group, Immediate, Operand, Register

# Where a return leads: no block has this number.
EXIT = -1


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction. `results` are the operands it writes.

    An instruction that is not known, or that has a modifier which is not, may write any register it mentions: `written`
    then names them all, and `results` is empty, for nobody knows what comes out.
    """

    instruction: Instruction
    guard: Register | None
    guard_negated: bool
    results: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    written: frozenset[Register]


def decode(instruction: Instruction) -> Step:
    """The step of an instruction. Raises PtxSyntaxError when its operands cannot be read."""
    operands = instruction.operands
    text = instruction.opcode.text
    info = isa.info(text)
    known = info is not None and problem(text) is None
    guard = instruction.predicate
    if instruction.base == "call":
        count = 1 if len(operands) > 1 and isinstance(operands[0], Group) else 0
    else:
        count = info.destinations if info and known else 0
    return Step(
        instruction,
        guard.register if guard else None,
        guard.negated if guard else False,
        operands[:count],
        operands[count:],
        isa.defs(instruction) if known else isa.defs(instruction) | isa.uses(instruction),
    )


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a block's last instruction sends control: `taken` when its guard holds, `falls` when not.

    Numbers of blocks, or EXIT. `falls` is None when there is no guard; then only `taken` counts. A block without a
    branch has only `taken`, the next block. Several `taken` are those of a `brx.idx`.
    """

    taken: tuple[int, ...]
    falls: int | None = None


class Flow:
    """A function's control-flow graph with decoded steps, each decoded once."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.graph = ControlFlowGraph(function)
        self._steps: dict[int, Step] = {}
        self._endings: dict[int, Ending] = {}

    @property
    def blocks(self) -> list[Block]:
        """The blocks, in text order; block 0 is the entry."""
        return self.graph.blocks

    def step(self, index: int) -> Step:
        """The decoded instruction `index`."""
        step = self._steps.get(index)
        if step is None:
            step = self._steps[index] = decode(self.function.instructions[index])
        return step

    def steps(self, block: int) -> list[Step]:
        """The steps of a block, in order."""
        span = self.blocks[block]
        return [self.step(index) for index in range(span.start, span.end)]

    def block_at(self, index: int) -> int:
        """The block of an instruction, EXIT past the last."""
        return self.graph.block_of[index] if index < len(self.graph.block_of) else EXIT

    def ending(self, block: int) -> Ending:
        """Where control goes from a block."""
        found = self._endings.get(block)
        if found is None:
            found = self._endings[block] = self._ending(self.blocks[block])
        return found

    def _ending(self, block: Block) -> Ending:
        following = self.block_at(block.end)
        if block.start == block.end:
            return Ending((EXIT,))
        last = self.function.instructions[block.end - 1]
        falls = following if last.predicate is not None else None
        if last.base in ("bra", "brx"):
            return Ending(tuple(self.block_at(label.target) for label in last.targets), falls)
        if last.base in ("ret", "exit", "trap"):
            return Ending((EXIT,), falls)
        if not block.successors:
            return Ending((EXIT,))  # the end of the text, or a call that does not return
        return Ending((following,))

    def goes_to(self, block: int, guard: int | None, index: int | None) -> tuple[int, ...]:
        """The blocks that control can go to from `block`.

        The guard of its last instruction, and the index of a `brx.idx`, are known or (None) not.
        """
        ending = self.ending(block)
        taken = ending.taken
        if index is not None and index < len(taken) and self._is_table(block):
            taken = (taken[index],)
        if ending.falls is None:
            return taken
        if guard is None:
            return (*taken, ending.falls)
        return taken if guard else (ending.falls,)

    def _is_table(self, block: int) -> bool:
        return self.function.instructions[self.blocks[block].end - 1].base == "brx"


def literal(operand: Operand, type_: str | None) -> int | None:
    """The bit pattern of an immediate used as `type_`; None for one whose bits depend on a conversion."""
    if not isinstance(operand, Immediate):
        return None
    if operand.kind == "int":
        return operand.value & ((1 << 64) - 1)
    width = "f32" if type_ in ("f32", "b32") else "f64"
    return operand.value if operand.kind == width else None
