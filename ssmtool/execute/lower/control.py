"""Control flow of a gang: which block runs next, with which lanes.

Every block whose lanes may have to wait has a mask of waiting lanes. At the end of a block its lanes are added to the
masks of the blocks they go to, and the lowest block in the order that has lanes runs next. Where `Schedule` shows
that nobody can be waiting, all of this is one jump.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ssmtool.execute.layout import Fault, LaunchSlot
from ssmtool.execute.lower import checks, counting
from ssmtool.execute.lower.barriers import barrier
from ssmtool.execute.lower.frames import DONE, STOPPED, Frame
from ssmtool.execute.lower.gang import Gang, zero_registers
from ssmtool.execute.lower.values import any_lane, i64
from ssmtool.execute.numerics.lanes import I64, Splat, Value
from ssmtool.execute.program.flat import Op
from ssmtool.ptx.cfg import Block

_ENDS = frozenset(("ret", "exit", "trap"))

Handler = Callable[[Gang, Op], None]


class Control:
    """Emits one gang function. `frame` is given when the gang must come back after barriers."""

    def __init__(self, gang: Gang, handler_of: Callable[[Op], Handler], frame: Frame | None) -> None:
        self.gang = gang
        self.handler_of = handler_of
        self.frame = frame
        self.schedule = gang.shapes.schedule
        self.graph = gang.shapes.graph
        self.order = [block for block in self.schedule.order if block in self.schedule.waiting]
        self.heads: dict[int, Value] = {}
        self.waiting: dict[int, Value] = {}
        self.active = gang.alloca(gang.mask_type, "active")
        self.live = gang.live = gang.alloca(gang.mask_type, "live")
        self.rounds = gang.alloca(I64, "rounds")
        self.all_stay = gang.geometry.threads % gang.lanes == 0 and not any(map(self._lanes_leave, self.order))
        """Every lane exists and none exits before the others."""

    def emit(self) -> None:
        """The whole function."""
        gang = self.gang
        b = gang.builder
        gang.stop_block = gang.function.append_basic_block("stopped")
        self.done = gang.function.append_basic_block("done")
        for block in self.order:
            self.heads[block] = gang.function.append_basic_block(f"block{block}")
            if any(block in others for others in self.schedule.waiting.values()):
                self.waiting[block] = gang.alloca(gang.mask_type, f"waiting{block}")
        start = gang.function.append_basic_block("start")
        b.position_at_end(gang.entry)
        if self.frame is None:
            b.branch(start)
        else:
            self.frame.enter(gang, start)
        b.position_at_end(start)
        self._begin()
        for block in self.order:
            self._block(self.graph.blocks[block])
        b.position_at_end(self.done)
        b.ret(i64(DONE))
        b.position_at_end(gang.stop_block)
        b.ret(i64(STOPPED))
        if self.frame is not None:
            self.frame.finish(gang)

    def masks(self) -> list[Value]:
        """The slots that hold masks and must outlive a barrier."""
        return [self.active, self.live, *self.waiting.values(), *self.gang.written.values()]

    def _begin(self) -> None:
        """All threads of the gang that exist run block 0; registers read before they are written hold zero."""
        gang = self.gang
        b = gang.builder
        exists = gang.existing()
        b.store(exists, self.active)
        b.store(exists, self.live)
        for slot in self.waiting.values():
            b.store(gang.no_lanes(), slot)
        b.store(i64(0), self.rounds)
        zero_registers(gang, sorted(gang.shapes.liveness.live_in(0), key=lambda each: (each.name, each.scope)))
        checks.begin(gang)
        b.branch(self.heads[0])

    def _lanes_leave(self, number: int) -> bool:
        """Whether some lanes may exit at the end of a block while others go on."""
        block = self.graph.blocks[number]
        return block.exits and (number in self.gang.shapes.divergent or not self.schedule.together(number))

    def _block(self, block: Block) -> None:
        gang = self.gang
        b = gang.builder
        b.position_at_end(self.heads[block.index])
        gang.together = self.schedule.together(block.index)
        gang.full = gang.together and self.all_stay
        gang.mask = gang.all_lanes() if gang.full else b.load(self.live if gang.together else self.active)
        gang.kept = gang.shapes.kept[block.index]
        counting.entered(gang, block.index)
        rank = self.schedule.rank
        if any(each in rank and rank[each] >= rank[block.index] for each in block.predecessors):
            self._spend(block)
        operations = gang.flat.instructions[block.start : block.end]
        for op in operations:
            if op.base in ("bra", "brx") or op.base in _ENDS:
                self._end(block, op)
                return
            checks.registers_read(gang, op)
            if op.base in ("bar", "barrier") and "warp" not in op.modifiers:
                barrier(gang, op, self)
            else:
                self.handler_of(op)(gang, op)
            checks.registers_written(gang, op)
        if block.successors:
            self._go(block.index, {block.successors[0]: gang.mask}, True)
        else:
            self._leave(block.index, gang.mask)

    def _spend(self, block: Block) -> None:
        """A loop's head counts its rounds; over the launch's budget the loop is called endless.

        The budget is read afresh each time, so that a launch can be ended from outside by taking it away.
        """
        gang = self.gang
        b = gang.builder
        rounds = b.add(b.load(self.rounds), i64(1))
        b.store(rounds, self.rounds)
        budget = b.load_atomic(b.gep(gang.arguments.launch, [i64(LaunchSlot.BUDGET)]), "monotonic", 8)
        first = gang.flat.instructions[min(block.start, len(gang.flat.instructions) - 1)]
        with gang.rarely(b.icmp_signed(">", rounds, budget)):
            gang.report(Fault.BUDGET, gang.sites.of(first), gang.thread_zero, i64(0), i64(0))
            b.branch(gang.stop_block)

    # -- the ends of blocks

    def _end(self, block: Block, op: Op) -> None:
        gang = self.gang
        b = gang.builder
        checks.registers_read(gang, op)
        targets = [self.graph.block_of[t.target] if t.target < len(self.graph.block_of) else -1 for t in op.targets]
        following = self.graph.block_of[block.end] if block.end < len(self.graph.block_of) else -1
        guard = gang.guard(op)
        if op.base in _ENDS and op.base == "trap":
            self._trap(op)
        if guard is None:
            self._taken(block, op, targets, gang.mask)
            return
        if op.base in ("bra", "brx"):
            taken_lanes = None if guard.shared else b.and_(gang.mask, gang.spread(guard))
            counting.branched(gang, op, taken_lanes)
        if guard.shared:
            taken, falls = (gang.function.append_basic_block(name) for name in ("taken", "falls"))
            b.cbranch(guard.value, taken, falls)
            b.position_at_end(taken)
            self._taken(block, op, targets, gang.mask)
            b.position_at_end(falls)
            self._go_to(block.index, following, gang.mask)
            return
        condition = gang.spread(guard)
        jumping, falling = b.and_(gang.mask, condition), b.and_(gang.mask, b.not_(condition))
        if op.base in _ENDS:
            self._exited(jumping)
            self._go(block.index, {following: falling} if following >= 0 else {}, False)
            return
        goals = self._goals(op, targets, jumping)
        if -1 in goals:
            self._exited(goals.pop(-1))
            goals[following] = falling
            self._go(block.index, goals, False)
        elif following < 0:
            self._exited(falling)
            self._go(block.index, goals, False)
        else:
            goals[following] = b.or_(goals[following], falling) if following in goals else falling
            self._go(block.index, goals, True)

    def _taken(self, block: Block, op: Op, targets: list[int], mask: Value) -> None:
        """All lanes of the block do what `op` says."""
        gang = self.gang
        if op.base in _ENDS:
            self._leave(block.index, mask)
        elif op.base == "bra":
            self._go_to(block.index, targets[0], mask)
        elif gang.shapes.of(op.operands[0]) == 0:
            self._switch(block, op, targets, mask)
        else:
            goals = self._goals(op, targets, mask)
            gone = goals.pop(-1, None)
            if gone is not None:
                self._exited(gone)
            self._go(block.index, goals, gone is None)

    def _goals(self, op: Op, targets: list[int], mask: Value) -> dict[int, Value]:
        """Block -> lanes of `mask` that go there; -1 stands for the function's end."""
        gang = self.gang
        b = gang.builder
        if op.base == "bra":
            return {targets[0]: mask}
        index = gang.spread(gang.read(op, op.operands[0], "u32"))
        goals: dict[int, Value] = {}
        for number, target in enumerate(targets):
            own = b.and_(mask, b.icmp_unsigned("==", index, Splat(index.type, ir.Constant(ir.IntType(32), number))))
            goals[target] = b.or_(goals[target], own) if target in goals else own
        return goals

    def _switch(self, block: Block, op: Op, targets: list[int], mask: Value) -> None:
        gang = self.gang
        b = gang.builder
        index = gang.read(op, op.operands[0], "u32").value
        choice = b.switch(index, gang.stop_block)  # an index outside the table is undefined: the launch ends
        for number, target in enumerate(targets):
            way = gang.function.append_basic_block("case")
            choice.add_case(ir.Constant(ir.IntType(32), number), way)
            b.position_at_end(way)
            self._go_to(block.index, target, mask)

    def _trap(self, op: Op) -> None:
        gang = self.gang
        b = gang.builder
        guard = gang.guard(op)
        condition = any_lane(b, gang.active(op)) if guard is not None else ir.Constant(ir.IntType(1), 1)
        with gang.rarely(condition):
            gang.report(Fault.TRAP, gang.sites.of(op), gang.thread_zero, i64(0), i64(0))
            b.branch(gang.stop_block)

    def _exited(self, mask: Value) -> None:
        """These lanes are gone."""
        b = self.gang.builder
        b.store(b.and_(b.load(self.live), b.not_(mask)), self.live)

    def _leave(self, block: int, mask: Value) -> None:
        self._exited(mask)
        self._go(block, {}, False)

    def _go_to(self, block: int, target: int, mask: Value) -> None:
        if target < 0:
            self._leave(block, mask)
        else:
            self._go(block, {target: mask}, True)

    def _go(self, block: int, goals: dict[int, Value], someone: bool) -> None:
        """Add lanes to blocks and run the lowest that has any; `someone` says that a goal surely has."""
        gang = self.gang
        b = gang.builder
        before = self.schedule.waiting[block]
        rank = self.schedule.rank
        if len(goals) == 1 and someone:
            (target, mask) = next(iter(goals.items()))
            if all(rank[each] >= rank[target] for each in before):
                self._jump(target, b.or_(mask, b.load(self.waiting[target])) if target in before else mask)
                return
        for target, mask in goals.items():
            slot = self.waiting.get(target)
            if slot is None:  # nobody can ever be found waiting there: it runs before anything else could
                slot = self.waiting[target] = gang.alloca(gang.mask_type, f"waiting{target}")
            b.store(b.or_(mask, b.load(slot)) if target in before else mask, slot)
        candidates = self.schedule.sorted(before | set(goals))
        last = max(goals, key=rank.__getitem__) if someone else None
        for target in candidates:
            lanes = b.load(self.waiting[target])
            if target == last:
                self._jump(target, lanes)
                return
            run, other = (gang.function.append_basic_block(name) for name in ("run", "next"))
            b.cbranch(any_lane(b, lanes), run, other)
            b.position_at_end(run)
            self._jump(target, lanes)
            b.position_at_end(other)
        b.branch(self.done)

    def _jump(self, target: int, mask: Value) -> None:
        b = self.gang.builder
        b.store(mask, self.active)
        if target in self.waiting:
            b.store(self.gang.no_lanes(), self.waiting[target])
        b.branch(self.heads[target])
