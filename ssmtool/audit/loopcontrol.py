"""Which instructions only drive loops: the branches of a loop whose condition changes as it turns, and what feeds them.

A branch inside a loop on something that the loop does not change (a thread index, a parameter) is not loop control: it
would be there without the loop. Neither is one on data, on floating point or on what was loaded.
"""

from __future__ import annotations

from ssmtool.audit.classes import LOOP_CONTROL, class_of
from ssmtool.audit.flow import Flow, Step
from ssmtool.ptx import isa
from ssmtool.ptx.cfg import Loop
from ssmtool.ptx.operands import Register

_FEEDS = frozenset(("integer", "bit", "logic", "compare", "select", "move", "convert"))


def classes_by_place(flow: Flow) -> list[str]:
    """The class of every instruction of a function, loop control included."""
    classes = [class_of(opcode) for opcode in flow.function.opcodes]
    for loop in flow.graph.loops.values():
        for index in _control(flow, loop):
            classes[index] = LOOP_CONTROL
    return classes


def _control(flow: Flow, loop: Loop) -> set[int]:
    """Indices of the loop's own control; that of loops inside it is theirs."""
    loops = flow.graph.loops
    inner = {block for other in loops.values() if other.parent == loop.header for block in other.blocks}
    own = [
        index
        for block in sorted(loop.blocks - inner)
        for index in range(flow.blocks[block].start, flow.blocks[block].end)
    ]
    writers: dict[Register, list[int]] = {}
    for index in own:
        for register in flow.step(index).written:
            writers.setdefault(register, []).append(index)
    changed_inside = {register for block in inner for step in flow.steps(block) for register in step.written}
    found: set[int] = set()
    for index in own:
        step = flow.step(index)
        if step.instruction.base not in ("bra", "brx"):
            continue
        if step.guard is None:
            # A plain jump back to the top is control; one that skips over an else is not.
            block = flow.block_at(index)
            if block in loop.latches and flow.ending(block).taken == (loop.header,):
                found.add(index)
            continue
        feeding = _feeding(flow, step, writers, changed_inside)
        if feeding is not None and _turns(flow, feeding, writers):
            found.add(index)
            found |= feeding
    return found


def _feeding(flow: Flow, branch: Step, writers: dict[Register, list[int]], outside: set[Register]) -> set[int] | None:
    """Instructions of the loop that the branch's condition comes from; None when some are not plain integer ones."""
    feeding: set[int] = set()
    work = [branch.guard] if branch.guard else []
    seen: set[Register] = set()
    while work:
        register = work.pop()
        if register in seen:
            continue
        seen.add(register)
        if register in outside:
            return None
        for index in writers.get(register, ()):
            step = flow.step(index)
            text = step.instruction.opcode.text
            # A bound that is loaded from its parameter in every turn is as good as one in a register.
            if not text.startswith("ld.param") and (
                isa.category(text) not in _FEEDS or class_of(text) == "floating point"
            ):
                return None
            feeding.add(index)
            work.extend(isa.uses(step.instruction))
    return feeding


def _turns(flow: Flow, feeding: set[int], writers: dict[Register, list[int]]) -> bool:
    """Whether a value goes round: some feeding instruction needs, through others, its own result."""
    edges = {
        index: {
            writer
            for register in isa.uses(flow.step(index).instruction)
            for writer in writers.get(register, ())
            if writer in feeding
        }
        for index in feeding
    }
    for start in feeding:
        seen: set[int] = set()
        work = [*edges[start]]
        while work:
            index = work.pop()
            if index == start:
                return True
            if index not in seen:
                seen.add(index)
                work.extend(edges[index])
    return False
