"""The control-flow graph of a function: blocks, dominators, post-dominators, loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ssmtool.ptx.code import Code
from ssmtool.ptx.graph import dominators, postorder
from ssmtool.ptx.opcode import split_opcode
from ssmtool.ptx.operands import Label

_ENDS = frozenset(("bra", "brx", "ret", "exit", "trap"))


@dataclass(slots=True)
class Block:
    """Instructions `start` up to but not including `end`, entered at the top and left at the bottom only.

    `successors` and `predecessors` are block numbers. `exits` says that the function may be left from here.
    A block with a guarded branch lists the taken side first, then the fall-through.
    """

    index: int
    start: int
    end: int
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)
    exits: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its header, its blocks, the sources of its back edges, the loop around it.

    `depth` 1 is outermost.
    """

    header: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    parent: int | None
    depth: int


class ControlFlowGraph:
    """Blocks of one function, in text order; block 0 is the entry.

    A function without instructions has one empty block that exits. `block_of[i]` is the block of instruction i.
    Raises PtxSyntaxError when a branch names no label of the function.
    """

    def __init__(self, function: Code) -> None:
        self.function = function
        self.blocks: list[Block] = []
        self.block_of: list[int] = []
        self._build()

    def _build(self) -> None:
        function = self.function
        opcodes = function.opcodes
        count = len(opcodes)
        ending = {opcode for opcode in set(opcodes) if split_opcode(opcode).base in _ENDS}
        ends = [index for index, opcode in enumerate(opcodes) if opcode in ending]
        ends += self._calls_that_stay_away()
        ends.sort()
        targets = {index: self._targets(index) for index in ends}
        leaders = {0, *(index + 1 for index in ends)}
        leaders.update(label.target for labels in targets.values() for label in labels)
        starts = sorted(leader for leader in leaders if leader < count)
        if not starts:
            self.blocks = [Block(0, 0, 0, exits=True)]
            return
        number = {start: index for index, start in enumerate(starts)}
        for index, start in enumerate(starts):
            end = starts[index + 1] if index + 1 < len(starts) else count
            self.blocks.append(Block(index, start, end))
            self.block_of.extend([index] * (end - start))
        for block in self.blocks:
            self._connect(block, targets, number, count)
        for block in self.blocks:
            for successor in block.successors:
                self.blocks[successor].predecessors.append(block.index)

    def _calls_that_stay_away(self) -> list[int]:
        """Calls of `.noreturn` functions, which end a block as `exit` does; other calls fall through."""
        noreturn = self.function.noreturn_names
        if not noreturn:
            return []
        calls = [index for index, opcode in enumerate(self.function.opcodes) if opcode.startswith("call")]
        return [
            index
            for index in calls
            if any(getattr(op, "name", None) in noreturn for op in self.function.instructions[index].operands)
        ]

    def _targets(self, index: int) -> tuple[Label, ...]:
        instruction = self.function.instructions[index]
        targets = instruction.targets
        if instruction.base in ("bra", "brx") and not targets:
            raise self.function.source.error(instruction.span[0], "this branch names no label of its function")
        return targets

    def _connect(self, block: Block, targets: dict[int, tuple[Label, ...]], number: dict[int, int], count: int) -> None:
        last = block.end - 1
        falls = True
        if last in targets:
            guarded = self.function.instructions[last].predicate is not None
            for label in targets[last]:
                if label.target >= count:
                    block.exits = True  # a label at the very end: running off it is a return
                elif number[label.target] not in block.successors:
                    block.successors.append(number[label.target])
            if not targets[last]:
                block.exits = True
            falls = guarded
        if falls:
            if block.end >= count:
                block.exits = True
            elif number[block.end] not in block.successors:
                block.successors.append(number[block.end])

    @cached_property
    def reachable(self) -> frozenset[int]:
        """Blocks that some path from the entry reaches."""
        return frozenset(self.reverse_postorder)

    @cached_property
    def reverse_postorder(self) -> list[int]:
        """Reachable blocks, each before its successors but for back edges."""
        return postorder(0, lambda index: self.blocks[index].successors)[::-1]

    @cached_property
    def immediate_dominators(self) -> dict[int, int | None]:
        """Reachable block -> the closest block that every path to it passes; None for the entry."""
        order = self.reverse_postorder
        return dominators(order, {index: self.blocks[index].predecessors for index in order}, 0)

    @cached_property
    def immediate_post_dominators(self) -> dict[int, int | None]:
        """Block -> the closest later block that every path to the function's end passes.

        None when that is only the end itself, or when the block never gets to the end (an endless loop). Only
        reachable blocks count as places from which the end is reached.
        """
        virtual = len(self.blocks)
        before: dict[int, list[int]] = {virtual: []}
        after: dict[int, list[int]] = {virtual: []}
        for index in self.reachable:
            block = self.blocks[index]
            after[index] = block.successors + ([virtual] if block.exits else [])
            before[index] = [each for each in block.predecessors if each in self.reachable]
            if block.exits:
                before[virtual].append(index)
        before[virtual].sort()
        order = postorder(virtual, lambda index: before[index])[::-1]
        found = dominators(order, after, virtual)
        found[virtual] = virtual
        nearest = {index: dominator for index, dominator in found.items() if dominator != virtual}
        return {index: nearest.get(index) for index in range(virtual)}

    def dominates(self, first: int, second: int) -> bool:
        """Whether every path to block `second` passes block `first`; a block dominates itself."""
        if first not in self._dominator_spans or second not in self._dominator_spans:
            return first == second
        begin, end = self._dominator_spans[first]
        return begin <= self._dominator_spans[second][0] < end

    @cached_property
    def _dominator_spans(self) -> dict[int, tuple[int, int]]:
        """Each reachable block's place in a preorder of the dominator tree, and where its subtree ends there."""
        children: dict[int, list[int]] = {}
        for block, dominator in self.immediate_dominators.items():
            if dominator is not None:
                children.setdefault(dominator, []).append(block)
        finished = postorder(0, lambda block: children.get(block, ()))
        sizes = dict.fromkeys(finished, 1)
        for block in finished:  # children before parents
            sizes[block] += sum(sizes[child] for child in children.get(block, ()))
        spans = {0: (0, sizes[0])}
        for block in reversed(finished):
            at = spans[block][0] + 1
            for child in children.get(block, ()):
                spans[child] = (at, at + sizes[child])
                at += sizes[child]
        return spans

    @cached_property
    def back_edges(self) -> list[tuple[int, int]]:
        """(source, header) edges whose header dominates the source."""
        return [
            (index, successor)
            for index in self.reverse_postorder
            for successor in self.blocks[index].successors
            if self.dominates(successor, index)
        ]

    @cached_property
    def irreducible(self) -> bool:
        """Whether some cycle has more than one way in, so that `loops` does not tell of every cycle."""
        position = {index: place for place, index in enumerate(self.reverse_postorder)}
        back = set(self.back_edges)
        return any(
            position[successor] <= position[index] and (index, successor) not in back
            for index in self.reverse_postorder
            for successor in self.blocks[index].successors
        )

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """Natural loops by header; loops that share a header are one."""
        latches: dict[int, list[int]] = {}
        for source, header in self.back_edges:
            latches.setdefault(header, []).append(source)
        bodies: dict[int, frozenset[int]] = {}
        for header, sources in latches.items():
            body = {header}
            work = list(sources)
            while work:
                index = work.pop()
                if index not in body:
                    body.add(index)
                    work.extend(p for p in self.blocks[index].predecessors if p in self.reachable)
            bodies[header] = frozenset(body)
        loops: dict[int, Loop] = {}
        innermost: dict[int, int] = {}
        for header in sorted(bodies, key=lambda each: len(bodies[each]), reverse=True):
            parent = innermost.get(header)  # larger loops have been entered already
            innermost.update(dict.fromkeys(bodies[header], header))
            depth = loops[parent].depth + 1 if parent is not None else 1
            loops[header] = Loop(header, bodies[header], tuple(latches[header]), parent, depth)
        return loops

    def innermost_loop(self, block: int) -> Loop | None:
        """The smallest loop that holds a block."""
        holding = [loop for loop in self.loops.values() if block in loop.blocks]
        return min(holding, key=lambda loop: len(loop.blocks)) if holding else None
