"""An entry's LLVM module and the facts its runner needs."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ssmtool.errors import SsmtoolError
from ssmtool.execute.layout import KernelFacts, Mode, Param
from ssmtool.execute.lower import atomics, checks, evidence, memory, moves, numeric, warp
from ssmtool.execute.lower.blocks import emit_run
from ssmtool.execute.lower.control import Control, Handler
from ssmtool.execute.lower.counting import Counted
from ssmtool.execute.lower.frames import BLOCK_HEADER_BYTES, Frame
from ssmtool.execute.lower.gang import Arguments, Gang, Sites
from ssmtool.execute.lower.runtime import POINTER
from ssmtool.execute.numerics import instruction
from ssmtool.execute.numerics.lanes import I64
from ssmtool.execute.program.flat import Op, refuse
from ssmtool.execute.program.kernel import analyse, barrier_blocks, has_barrier
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx import Module

_HANDLERS: dict[str, Handler] = {
    **memory.HANDLERS,
    **moves.HANDLERS,
    **atomics.HANDLERS,
    **warp.HANDLERS,
    "bar": checks.warp_barrier,
    "barrier": checks.warp_barrier,
}


@dataclass(frozen=True)
class Lowered:
    """`ir` is an LLVM module as text whose `run(launch, worker)` runs blocks; see `layout` for its arguments."""

    ir: str
    facts: KernelFacts


def handler_of(op: Op) -> Handler:
    """What emits an instruction; UnsupportedError naming it and its line when nothing does."""
    found = _HANDLERS.get(op.base)
    if found is not None:
        return found
    if instruction.known(op.opcode.text):
        return numeric.emit
    raise refuse(op, "is not an instruction that the CPU executor knows")


def lower(module: Module, entry: str, block: tuple[int, int, int], mode: Mode) -> Lowered:
    """The code of `entry` for blocks of that shape.

    Raises UnsupportedError for an instruction that sm_37 with PTX 7.4 does not have or that is refused, and
    SsmtoolError for anything else that cannot be lowered; both name the line.
    """
    function = module.function(entry)
    if function is None or function.kind != "entry":
        raise SsmtoolError(f"no .entry {entry} in this PTX", path=module.path)
    if module.address_size != 64:
        raise SsmtoolError("32-bit PTX (.address_size 32) is not run", path=module.path, line=1)
    shapes = analyse(module, function, block)
    _refuse_unknown(module, shapes)
    text = ir.Module(f"ssmtool.{len(entry)}")
    sites = Sites(files=module.files)
    frame = Frame() if has_barrier(shapes.flat) and not _all_together(shapes) else None
    counted = Counted()
    _gang_function(text, shapes, mode, sites, counted, frame)
    counted.settle()
    frame_bytes = frame.bytes if frame is not None else None
    emit_run(text, text.globals["gang"], shapes.geometry, frame_bytes, checks.cell_shift(shapes, mode))
    return Lowered(str(text), _facts(entry, shapes, mode, sites, frame_bytes, counted))


def _refuse_unknown(module: Module, shapes: Shapes) -> None:
    """Raise for a directive that nobody knows, in what runs or around it: it may change what the code means.

    Unknown instructions are refused where they stand.
    """
    source = module.source
    reached = {id(op.origin.function) for op in shapes.flat.instructions} | {id(shapes.flat.entry)}
    elsewhere = [
        range(source.line(function.span[0]), source.line(function.span[1]) + 1)
        for function in module.functions
        if id(function) not in reached
    ]
    for unknown in module.unknown:
        if unknown.text.startswith(".") and not any(unknown.line in lines for lines in elsewhere):
            raise SsmtoolError(
                f"unknown directive: {' '.join(unknown.text.split())[:80]}", path=module.path, line=unknown.line
            )


def _all_together(shapes: Shapes) -> bool:
    """Whether every barrier is met by one gang that is the whole block, all of it."""
    return shapes.geometry.gangs == 1 and all(shapes.schedule.together(each) for each in barrier_blocks(shapes))


def _gang_function(
    text: ir.Module, shapes: Shapes, mode: Mode, sites: Sites, counted: Counted, frame: Frame | None
) -> None:
    lanes = shapes.geometry.lanes
    kind = ir.VectorType(I64, lanes)
    numbers = ir.GlobalVariable(text, kind, "lane_numbers")
    numbers.linkage = "internal"
    numbers.global_constant = True
    numbers.initializer = ir.Constant(kind, [ir.Constant(I64, lane) for lane in range(lanes)])
    function = ir.Function(text, ir.FunctionType(I64, [POINTER, POINTER, *[I64] * 5, POINTER]), "gang")
    function.linkage = "internal"
    launch, worker, x, y, z, block, number, own = function.args
    arguments = Arguments(launch, worker, (x, y, z), block, number, own)
    gang = Gang(shapes, mode, function, arguments, sites, counted, numbers)
    Control(gang, handler_of, frame).emit()


def _facts(
    entry: str, shapes: Shapes, mode: Mode, sites: Sites, frame_bytes: int | None, counted: Counted
) -> KernelFacts:
    flat, geometry = shapes.flat, shapes.geometry
    align = flat.dynamic_alignment
    return KernelFacts(
        entry=entry,
        block=geometry.block,
        lanes=geometry.lanes,
        params=tuple(Param(param.name, param.type, offset, param.size) for param, offset in flat.params),
        param_bytes=flat.param_bytes,
        static_shared=flat.shared_bytes,
        dynamic_offset=-(-flat.shared_bytes // align) * align,
        local_bytes=flat.local_bytes,
        frame_bytes=0 if frame_bytes is None else BLOCK_HEADER_BYTES + frame_bytes * geometry.gangs,
        scratch_bytes=checks.scratch_bytes(mode, sites.rows),
        shadow_granule=checks.granule(shapes),
        symbols=tuple(flat.symbols),
        sites=evidence.labelled(shapes, sites),
        registers=checks.suspects(shapes),
        counters=counted.words,
        blocks=_members(shapes, counted),
        branches=tuple(counted.branches),
        accesses=tuple(counted.accesses),
        shared_variables=tuple(flat.shared_variables),
        mode=mode,
    )


def _members(shapes: Shapes, counted: Counted) -> tuple[tuple[int, ...], ...]:
    """For each counted block its instructions, by index in the entry's text.

    What a call became counts as one instruction, where it stands first; a callee's own instructions are -1.
    """
    met: set[int] = set()
    blocks = []
    for number in counted.blocks:
        block = shapes.graph.blocks[number]
        members = []
        for op in shapes.flat.instructions[block.start : block.end]:
            index = op.origin.index if op.origin.function is shapes.flat.entry else -1
            if index < 0 or index not in met:
                members.append(index)
                met.add(index)
        blocks.append(tuple(members))
    return tuple(blocks)
