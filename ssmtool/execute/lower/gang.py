"""What the emitters of single instructions work with: the builder, masks, registers and operands of one gang.

A gang is the threads that run as one vector: a warp, or a whole block. The registers of a gang are stack slots of the
generated function, which LLVM turns into SSA values; a slot holds a scalar where `Shapes` found that all lanes share
the value or step through it, else a vector.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ssmtool.execute.layout import Fault, LaunchSlot, Mode, Site, WorkerSlot
from ssmtool.execute.lower.nans import plan
from ssmtool.execute.lower.special import special
from ssmtool.execute.lower.values import (
    Lanes,
    Type,
    as_type,
    i64,
    lane_type,
    splat,
    vector_of,
    word,
    zeros,
)
from ssmtool.execute.numerics.lanes import F32, F64, I1, I32, I64, Builder, Splat, Value
from ssmtool.execute.numerics.special import nan_result
from ssmtool.execute.program.flat import Op, Place, refuse
from ssmtool.execute.program.geometry import Stride
from ssmtool.execute.program.shapes import Shapes
from ssmtool.ptx import isa
from ssmtool.ptx.operands import Immediate, Not, Operand, Register, Sink

if TYPE_CHECKING:
    from ssmtool.execute.lower.counting import Counted


@dataclass(slots=True)
class Arguments:
    """The generated function's arguments."""

    launch: Value
    worker: Value
    ctaid: tuple[Value, Value, Value]
    block: Value
    gang: Value
    frame: Value


@dataclass(slots=True)
class Sites:
    """Places that can be reported, in the order in which they were met."""

    rows: list[Site] = field(default_factory=list)
    known: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    files: Mapping[int, str] = field(default_factory=dict)
    """The compiled source's files, by their numbers in the PTX."""

    def of(self, op: Op, store: bool = False) -> int:
        """The number of the place of `op`."""
        key = (id(op.origin.function), op.origin.index, store)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.rows)
            loc = op.origin.loc
            source = f"{self.files.get(loc.file, loc.file)}:{loc.line}" if loc else ""
            self.rows.append(Site(op.origin.line, " ".join(op.origin.text.split()), source, store))
        return found


class Gang:
    """Emission state of one gang function; see the module's text."""

    def __init__(
        self,
        shapes: Shapes,
        mode: Mode,
        function: Value,
        arguments: Arguments,
        sites: Sites,
        counted: Counted,
        lane_numbers: Value,
    ) -> None:
        self.shapes = shapes
        self.flat = shapes.flat
        self.geometry = shapes.geometry
        self.lanes = shapes.geometry.lanes
        self.mode = mode
        self.function = function
        self.arguments = arguments
        self.sites = sites
        self.entry = function.append_basic_block("entry")
        self.builder: Builder = ir.IRBuilder(self.entry)
        self.mask: Value = None
        """The lanes that run the current instruction."""
        self.kept: frozenset[Register] = frozenset()
        self.slots: dict[Register, Value] = {}
        self.shadow: Any = None
        """Checked mode: what `checks.cells` keeps at hand."""
        self.written: dict[Register, Value] = {}
        """Checked mode: slots with the lanes that have written a register which may be read before it is."""
        self.live: Value = None
        """Slot of the lanes that have not exited."""
        self.together = True
        self.full = False
        """Whether `mask` is known to hold every lane."""
        self.lane_numbers = self.builder.load(lane_numbers)
        """0, 1, 2, ... as a vector of i64."""
        self.stop_block: Value = None
        self.counted = counted
        self.nans = plan(shapes)
        self._flags: dict[Register, Value] = {}

    # -- types and constants

    @property
    def mask_type(self) -> Type:
        """One bit a lane."""
        return vector_of(I1, self.lanes)

    def vector(self, lane: Type) -> Type:
        """A vector of this gang's lanes."""
        return vector_of(lane, self.lanes)

    def all_lanes(self) -> Value:
        """A mask with every bit set."""
        return Splat(self.mask_type, ir.Constant(I1, 1))

    def no_lanes(self) -> Value:
        """A mask with no bit set."""
        return Splat(self.mask_type, ir.Constant(I1, 0))

    def launch_word(self, slot: LaunchSlot) -> Value:
        """A word of the launch table."""
        return word(self.builder, self.arguments.launch, slot)

    def worker_word(self, slot: WorkerSlot) -> Value:
        """A word of the worker's table."""
        return word(self.builder, self.arguments.worker, slot)

    @cached_property
    def shared(self) -> tuple[Value, Value]:
        """Address and size of the block's shared memory, read once: memory that the kernel writes may alias the table.

        Its alignment is put where LLVM sees it.
        """
        b = self.builder
        with b.goto_block(self.entry):
            base = b.and_(self.worker_word(WorkerSlot.SHARED), i64(-128 & (2**64 - 1)))
            return base, self.launch_word(LaunchSlot.SHARED_BYTES)

    def alloca(self, kind: Type, name: str = "") -> Value:
        """A stack slot, made in the entry block so that LLVM can take it apart."""
        # A builder of its own, at the block's start: to look for the end among thousands of slots takes quadratic time.
        start = ir.IRBuilder(self.entry)
        start.position_at_start(self.entry)
        slot = start.alloca(kind, name=name)
        if self.builder.block is self.entry:
            self.builder.position_at_end(self.entry)
        return slot

    def existing(self) -> Value:
        """The lanes that are threads of the block: its last warp may be a part of one."""
        threads, lanes = self.geometry.threads, self.lanes
        if threads % lanes == 0:
            return self.all_lanes()
        if self.geometry.gangs == 1:
            return ir.Constant(self.mask_type, [ir.Constant(I1, int(lane < threads)) for lane in range(lanes)])
        return self.builder.icmp_unsigned("<", self.thread_numbers, splat(self.builder, i64(threads), lanes))

    @property
    def thread_zero(self) -> Value:
        """The linear thread number of lane 0, i64."""
        return self.builder.mul(self.arguments.gang, i64(self.lanes))

    # -- registers

    def type_of(self, register: Register) -> str:
        """The PTX type of a register."""
        if register == isa.CARRY:
            return "carry"
        return self.flat.types[register]

    def stride_of(self, register: Register) -> Stride:
        """How a register is kept."""
        return self.shapes.strides.get(register, 0)

    def slot(self, register: Register) -> Value:
        """The stack slot of a register, zero at first."""
        found = self.slots.get(register)
        if found is None:
            lane = lane_type(self.type_of(register))
            kind = lane if self.stride_of(register) is not None else self.vector(lane)
            found = self.slots[register] = self.alloca(kind, register.name.replace("%", ""))
        return found

    def load(self, register: Register) -> Lanes:
        """A register as it is kept."""
        return Lanes(self.builder.load(self.slot(register)), self.stride_of(register))

    def may_defer(self, operand: Operand) -> bool:
        """Whether a NaN written to a register need not have the card's bits at once, see `nans`."""
        return isinstance(operand, Register) and (operand in self.nans.loose or operand in self.nans.late)

    def flag(self, register: Register) -> Value:
        """The slot that says that a late register holds a result whose NaNs are not the card's yet."""
        found = self._flags.get(register)
        if found is None:
            found = self._flags[register] = self.alloca(I1, "any_nan")
        return found

    def _seen(self, op: Op, register: Register) -> Lanes:
        """A register as `op` may see it: a late one with the card's NaNs, unless `op` cannot tell."""
        found = self.load(register)
        if register not in self.nans.late or id(op) in self.nans.blind:
            return found
        b = self.builder
        right = nan_result(b, found.value, ())
        return Lanes(b.select(b.load(self.flag(register)), right, found.value), found.stride)

    # -- operands

    def read(self, op: Op, operand: Operand, kind: str) -> Lanes:
        """An operand of an instruction as lanes of a PTX kind."""
        b = self.builder
        lane = lane_type(kind)
        if isinstance(operand, Immediate):
            return Lanes(immediate(b, op, operand, lane))
        if isinstance(operand, Not):
            inner = self.read(op, operand.operand, kind)
            return Lanes(b.not_(inner.value), inner.stride)
        if isinstance(operand, Place):
            return Lanes(as_type(b, self.place(operand), lane))
        if not isinstance(operand, Register):
            raise refuse(op, f"{type(operand).__name__.lower()} operand where a register or a number is expected")
        if operand.special:
            return self._narrow(self.special(op, operand.name), lane, kind)
        if operand.selector:
            raise refuse(op, "selects a byte or half of a register")
        found = self._seen(op, operand)
        if found.stride is None and isinstance(found.value.type.element, ir.IntType):
            number = self.shapes.ranges.constant(operand)
            if number is not None:  # known though lanes hold it apart: results were given shapes on that ground
                found = Lanes(ir.Constant(found.value.type.element, number))
        return self._narrow(found, lane, kind)

    def _narrow(self, found: Lanes, lane: Type, kind: str) -> Lanes:
        """Lanes of a register as lanes of an operand's type; a stepped value is only cut, never extended."""
        have = found.value.type
        if found.stride and (lane in (F32, F64) or lane.width > have.width):
            found = Lanes(self.spread(found), None)
        return Lanes(as_type(self.builder, found.value, lane, kind[0] == "s"), found.stride)

    def spread(self, lanes: Lanes) -> Value:
        """The value as a vector."""
        if lanes.stride is None:
            return lanes.value
        b = self.builder
        vector = splat(b, lanes.value, self.lanes)
        if lanes.stride == 0:
            return vector
        lane = lanes.value.type
        numbers = as_type(b, self.lane_numbers, lane)
        step = Splat(self.vector(lane), ir.Constant(lane, lanes.stride & ((1 << lane.width) - 1)))
        return b.add(vector, b.mul(numbers, step))

    def place(self, place: Place) -> Value:
        """The address of a variable in its own space, i64: an offset in shared, local and param space."""
        b = self.builder
        if place.space in ("shared", "local", "param"):
            return i64(place.offset)
        table = b.inttoptr(self.launch_word(LaunchSlot.SYMBOLS), I64.as_pointer())
        return b.add(word(b, table, self.flat.symbols.index(place.name)), i64(place.offset))

    def special(self, op: Op, name: str) -> Lanes:
        """A special register, as 32 bits unless it has 64."""
        return special(self, op, name)

    @property
    def thread_numbers(self) -> Value:
        """The linear thread number of every lane, a vector of i64."""
        return self.builder.add(self.lane_numbers, splat(self.builder, self.thread_zero, self.lanes))

    # -- guards and results

    def guard(self, op: Op) -> Lanes | None:
        """The guard as i1 lanes, negation applied; None without one."""
        if op.predicate is None:
            return None
        found = self.load(op.predicate.register)
        return Lanes(self.builder.not_(found.value), found.stride) if op.predicate.negated else found

    def active(self, op: Op) -> Value:
        """The lanes that do what `op` does: the block's mask and the guard."""
        guard = self.guard(op)
        if guard is None:
            return self.mask
        return self.builder.and_(self.mask, self.spread(guard))

    def write(self, op: Op, operand: Operand, lanes: Lanes, kind: str, any_nan: bool = False) -> None:
        """Write lanes of a PTX kind to a destination, in the lanes where the instruction runs.

        `any_nan`: NaNs among them have not got the card's bits, which only a register that may defer them takes.
        """
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register) or operand.special or operand.selector:
            raise refuse(op, "writes to something that is not a whole register")
        b = self.builder
        slot, stride = self.slot(operand), self.stride_of(operand)
        lane = lane_type(self.type_of(operand))
        if lanes.stride and (lane in (F32, F64) or lane.width != lanes.value.type.width):
            lanes = Lanes(self.spread(lanes), None)
        if stride is not None and lanes.stride != stride:
            raise refuse(op, f"a value of shape {lanes.stride} for a register of shape {stride}")
        value = lanes.value if stride is not None else self.spread(lanes)
        value = as_type(b, value, lane, kind[0] == "s")
        guard = self.guard(op)
        if operand in self.nans.late:
            flag: Value = ir.Constant(I1, int(any_nan))
            if guard is not None:
                flag = b.select(guard.value, flag, b.load(self.flag(operand)))
            b.store(flag, self.flag(operand))
        if guard is not None and guard.shared and operand not in self.kept:
            value = b.select(guard.value, value, b.load(slot))
        elif guard is not None or operand in self.kept:
            mask = self.active(op) if operand in self.kept else self.spread(guard)  # type: ignore[arg-type]
            value = b.select(mask, value, b.load(slot))
        b.store(value, slot)

    # -- reports

    def report(self, kind: Fault, site: int, thread: Value, address: Value, extra: Value) -> None:
        """Call the launch's report callback; all numbers are i64."""
        b = self.builder
        signature = ir.FunctionType(ir.VoidType(), [I64] * 6)
        callback = b.inttoptr(self.launch_word(LaunchSlot.REPORT), signature.as_pointer())
        b.call(callback, [i64(kind), i64(site), self.arguments.block, thread, address, extra])

    def rarely(self, condition: Value) -> Any:
        """A `with` block for code that hardly ever runs."""
        return self.builder.if_then(condition, likely=False)


def immediate(b: Builder, op: Op, operand: Immediate, lane: Type) -> Value:
    """A literal as a constant of a lane type; floats through their bits, so that every NaN comes through."""
    if lane in (F32, F64):
        wide = lane == F64
        if operand.kind == ("f64" if wide else "f32"):
            bits = operand.value
        elif operand.kind == "int" and operand.value >= 0 and wide is False and operand.value >> 32 == 0:
            bits = struct.unpack("<I", struct.pack("<f", float(operand.value)))[0]
        else:
            try:
                packed = struct.pack("<d" if wide else "<f", float(operand.number))
            except OverflowError:
                raise refuse(op, "this number does not fit the operand's type") from None
            bits = struct.unpack("<Q" if wide else "<I", packed)[0]
        return b.bitcast(ir.Constant(I64 if wide else I32, bits), lane)
    return ir.Constant(lane, operand.value & ((1 << lane.width) - 1))


def zero_registers(gang: Gang, registers: Sequence[Register]) -> None:
    """Registers hold zero before their first write, so that no kernel's result depends on what was there."""
    b = gang.builder
    for register in registers:
        slot = gang.slot(register)
        b.store(zeros(slot.type.pointee), slot)
        if register in gang.nans.late:
            b.store(ir.Constant(I1, 0), gang.flag(register))
