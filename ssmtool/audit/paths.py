"""What remains of a kernel when branches that cannot be taken are taken out: local traffic on the executed path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ssmtool.audit.assumptions import Assumed
from ssmtool.audit.conditions import Wording
from ssmtool.audit.constants import Propagation, propagate
from ssmtool.audit.flow import Flow
from ssmtool.audit.localmemory import LocalAccess, local_accesses
from ssmtool.ptx.location import Loc


@dataclass(frozen=True, slots=True)
class Guarding:
    """The branch that decides whether a block runs: its PTX line, and the condition under which the block does run."""

    line: int
    condition: str


@dataclass(frozen=True, slots=True)
class PlacedAccess:
    """A local access with where it stands.

    `source` is `file:line` of the compiled source, where `.loc` tells;
    `executed` is False when it is proved that no execution reaches it under the assumptions.
    """

    function: str
    line: int
    column: int
    text: str
    kind: str
    generic: bool
    executed: bool
    source: str | None
    guarding: Guarding | None


@dataclass(frozen=True, slots=True)
class PathCounts:
    """Counts of the instructions that are not proved dead, under the assumptions (shown name -> value).

    `dead_blocks` of `blocks` cannot be entered. The numbers count instructions in the text, each once however often a
    loop runs it.
    """

    assumed: Mapping[str, int]
    instructions: int
    blocks: int
    dead_blocks: int
    local_loads: int
    local_stores: int
    accesses: tuple[PlacedAccess, ...]

    @property
    def executed_local(self) -> int:
        """Local loads and stores that may be executed."""
        return self.local_loads + self.local_stores


class PathAnalysis:
    """The path analysis of one function, with the pieces that the listing and the graph want too."""

    def __init__(
        self,
        flow: Flow,
        assumed: Assumed,
        parameter_names: Mapping[str, str],
        local: tuple[LocalAccess, ...] | None = None,
    ) -> None:
        self.flow = flow
        self.assumed = assumed
        self.found: Propagation = propagate(flow, assumed)
        # Of its own text; those that a caller of `Callees` has found, or what the function alone tells.
        self.local = local_accesses(flow.function) if local is None else local
        self._names = parameter_names
        self._wording: Wording | None = None

    def executed(self, index: int) -> bool:
        """Whether the instruction may be executed."""
        return self.flow.block_at(index) in self.found.live and index not in self.found.switched_off

    @property
    def wording(self) -> Wording:
        """Conditions in words."""
        if self._wording is None:
            self._wording = Wording(self.flow, self._names)
        return self._wording

    def counts(self, accesses: tuple[LocalAccess, ...], files: Mapping[int, str]) -> PathCounts:
        """The counts; `files` are the module's `.file` names."""
        placed = tuple(self._place(access, files) for access in accesses)
        live = [access for access in placed if access.executed]
        blocks = self.flow.blocks
        instructions = sum(blocks[block].end - blocks[block].start for block in self.found.live)
        return PathCounts(
            assumed=dict(self.assumed.shown),
            instructions=instructions - len(self.found.switched_off),
            blocks=len(blocks),
            dead_blocks=len(blocks) - len(self.found.live),
            local_loads=sum(access.kind == "load" for access in live),
            local_stores=sum(access.kind != "load" for access in live),
            accesses=placed,
        )

    def _place(self, access: LocalAccess, files: Mapping[int, str]) -> PlacedAccess:
        instruction = self.flow.function.instructions[access.index]
        return PlacedAccess(
            function=self.flow.function.name,
            line=instruction.line,
            column=instruction.column,
            text=" ".join(instruction.text.split()),
            kind=access.kind,
            generic=access.generic,
            executed=self.executed(access.index),
            source=source_place(instruction.loc, files),
            guarding=self.guarding(self.flow.block_at(access.index)),
        )

    def guarding(self, block: int) -> Guarding | None:
        """The closest branch, going up the dominators, that can keep a block from running.

        Loops' own branches back to their top are passed over.
        """
        graph = self.flow.graph
        at = graph.immediate_dominators.get(block)
        while at is not None:
            ending = self.flow.ending(at)
            last = self.flow.function.instructions[graph.blocks[at].end - 1]
            if ending.falls is not None and last.base == "bra" and ending.taken[0] != ending.falls:
                by_jump = _leads(self.flow, ending.taken[0], block, at)
                by_fall = _leads(self.flow, ending.falls, block, at)
                guard = self.flow.step(last.index)
                if by_jump != by_fall and guard.guard is not None:
                    negated = guard.guard_negated if by_jump else not guard.guard_negated
                    return Guarding(last.line, self.wording.condition(guard.guard, negated=negated))
            at = graph.immediate_dominators.get(at)
        return None


def _leads(flow: Flow, start: int, block: int, without: int) -> bool:
    """Whether control can get from `start` to `block` without passing `without`."""
    seen = {without}
    work = [start]
    while work:
        at = work.pop()
        if at == block:
            return True
        if at in seen or at < 0:
            continue
        seen.add(at)
        work.extend(flow.blocks[at].successors)
    return False


def source_place(loc: Loc | None, files: Mapping[int, str]) -> str | None:
    """`file:line` of the compiled source, with the line it was inlined at when that is another function's."""
    if loc is None or not loc.line:
        return None
    place = f"{files.get(loc.file, f'file {loc.file}')}:{loc.line}"
    outer = loc.outermost
    if outer is loc or not outer.line:
        return place
    file = "" if outer.file == loc.file else f"{files.get(outer.file, f'file {outer.file}')} "
    return f"{place} (inlined at {file}line {outer.line})"
