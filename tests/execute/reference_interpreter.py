"""A plain interpreter of a small part of PTX, one thread after the other: the oracle for control flow and shapes.

It shares nothing with the executor: its own reader (one instruction a line), Python integers, no vectors, no masks, no
order of blocks. Threads run in turn from barrier to barrier, so a program must have no races. Floats are limited to
what a double rounds once: add, sub and mul of f32.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

Registers = list[int]
Get = Callable[["Thread"], int]
Step = Callable[["Thread"], "int | None"]
STEP_LIMIT = 200_000

_LINE = re.compile(r"(?:@(!?)(%\w+)\s+)?([\w.:]+)\s*(.*);$")
_NAN = 0x7FFFFFFF


def signed(value: int, bits: int) -> int:
    """Bits as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def to_float(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def from_float(value: float) -> int:
    """f32 bits, rounded to nearest even; any NaN as the card's."""
    if value != value:
        return _NAN
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


@dataclass
class Memory:
    """Segments of bytes at made-up addresses; an access outside is an IndexError."""

    segments: list[tuple[int, bytearray]] = field(default_factory=list)

    def add(self, data: bytes) -> int:
        base = (len(self.segments) + 1) << 32
        self.segments.append((base, bytearray(data)))
        return base

    def _at(self, address: int, size: int) -> tuple[bytearray, int]:
        number = (address >> 32) - 1
        if not 0 <= number < len(self.segments) or address % size:
            raise IndexError(f"address {address:#x}")
        base, data = self.segments[number]
        if address - base + size > len(data):
            raise IndexError(f"address {address:#x}")
        return data, address - base

    def load(self, address: int, size: int) -> int:
        data, at = self._at(address, size)
        return int.from_bytes(data[at : at + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        data, at = self._at(address, size)
        data[at : at + size] = value.to_bytes(size, "little")


class Flat:
    """One region of bytes from 0, for shared and local memory."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(b"\xff" * size)

    def load(self, address: int, size: int) -> int:
        if not 0 <= address <= len(self.data) - size or address % size:
            raise IndexError(f"offset {address}")
        return int.from_bytes(self.data[address : address + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        if not 0 <= address <= len(self.data) - size or address % size:
            raise IndexError(f"offset {address}")
        self.data[address : address + size] = value.to_bytes(size, "little")


@dataclass
class Thread:
    regs: Registers
    special: dict[str, int]
    spaces: dict[str, Any]


class Program:
    """A kernel's text, ready to run."""

    def __init__(self, text: str) -> None:
        self.numbers: dict[str, int] = {}
        self.widths: list[int] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, list[str]] = {}
        self.params: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self.sizes = {"shared": 0, "local": 0}
        lines = []
        body = text[text.index("{") + 1 : text.rindex("}")]
        head = text[: text.index("{")]
        at = 0
        for kind, name in re.findall(r"\.param \.(\w+) (\w+)", head):
            size = int(kind[1:]) // 8
            at = -(-at // size) * size
            self.params[name] = at
            at += size
        self.param_bytes = at
        for raw in body.splitlines():
            line = raw.strip()
            label = re.match(r"(\w+):\s*(\.branchtargets (.*);)?$", line)
            if not line:
                continue
            if label and label[2]:
                self.tables[label[1]] = [each.strip() for each in label[3].split(",")]
            elif label:
                self.labels[label[1]] = len(lines)
            elif declared := re.match(r"\.reg \.(\w+) (%\w+)<(\d+)>;$", line):
                width = 1 if declared[1] == "pred" else int(declared[1][1:])
                for number in range(int(declared[3])):
                    self.numbers[f"{declared[2]}{number}"] = len(self.widths)
                    self.widths.append(width)
            elif declared := re.match(r"\.(shared|local) \.align \d+ \.b8 (\w+)\[(\d+)\];$", line):
                self.places[declared[2]] = self.sizes[declared[1]]
                self.sizes[declared[1]] += -(-int(declared[3]) // 16) * 16
            else:
                lines.append(line)
        self.steps = [self._step(line, number) for number, line in enumerate(lines)]
        self.barriers = {number for number, line in enumerate(lines) if line.startswith("bar.sync")}

    # -- operands

    def _get(self, operand: str) -> Get:
        if operand in self.numbers:
            index = self.numbers[operand]
            return lambda t: t.regs[index]
        if operand.startswith("!"):
            inner = self._get(operand[1:])
            return lambda t: 1 - inner(t)
        if operand.startswith("%"):
            return lambda t: t.special[operand]
        if operand in self.places:
            place = self.places[operand]
            return lambda _: place
        if operand.startswith("0f"):
            bits = int(operand[2:], 16)
            return lambda _: bits
        value = int(operand, 0)
        return lambda _: value

    def _address(self, operand: str) -> Get:
        base, _, offset = operand[1:-1].replace("-", "+-").partition("+")
        more = int(offset, 0) if offset else 0
        if base in self.params:
            place = self.params[base] + more
            return lambda _: place
        get = self._get(base)
        return lambda t: get(t) + more

    def _put(self, operand: str, bits: int, is_signed: bool) -> Callable[[Thread, int], None]:
        index = self.numbers[operand]
        mask = (1 << self.widths[index]) - 1
        own = (1 << bits) - 1

        def put(t: Thread, value: int) -> None:
            value &= own
            t.regs[index] = (signed(value, bits) if is_signed else value) & mask

        return put

    # -- instructions

    def _step(self, line: str, number: int) -> Step:
        match = _LINE.match(line)
        assert match is not None, line
        negated, guard, opcode, rest = match.groups()
        base, *words = opcode.split(".")
        operands = [each.strip() for each in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
        run = self._run(base, words, operands)
        if guard is None:
            return run
        index, wanted = self.numbers[guard], 0 if negated else 1
        return lambda t: run(t) if t.regs[index] == wanted else None

    def _run(self, base: str, words: list[str], operands: list[str]) -> Step:
        if base == "bra":
            return lambda _: self.labels[operands[0]]
        if base == "brx":
            index, table = self._get(operands[0]), self.tables[operands[1]]
            return lambda t: self.labels[table[index(t)]]
        if base in ("ret", "exit"):
            return lambda _: 1 << 40
        if base == "bar":
            return lambda _: None
        kinds = [word for word in words if re.fullmatch(r"[usbf]\d+|pred", word)]
        kind = kinds[0]
        bits = 1 if kind == "pred" else int(kind[1:])
        if base in ("ld", "st"):
            return self._memory(base, words, operands, kind, bits)
        if base == "mov" and ("{" in operands[0] or "{" in operands[1]):
            return self._parts(operands, bits)
        if base == "setp":
            return self._compare(words, operands, kind, bits)
        full = "mad.wide" if base == "mad" and "wide" in words else base
        gets = [self._source(each, full, kinds, place) for place, each in enumerate(operands[1:])]
        compute, result_bits, result_signed = _operation(base, words, kinds)
        put = self._put(operands[0], result_bits, result_signed)

        def run(t: Thread) -> None:
            put(t, compute(*[get(t) for get in gets]))

        return run

    def _source(self, operand: str, base: str, kinds: list[str], place: int) -> Get:
        """A source as a mathematical integer of its type; floats as bits."""
        kind = kinds[-1]
        if base in ("shl", "shr") and place == 1:
            kind = "u32"
        elif base == "selp" and place == 2:
            kind = "pred"
        elif base == "mad.wide" and place == 2:
            kind = kind[0] + str(2 * int(kind[1:]))
        get = self._get(operand)
        if kind == "pred":
            return get
        bits = int(kind[1:])
        if kind[0] == "s":
            return lambda t: signed(get(t), bits)
        mask = (1 << bits) - 1
        return lambda t: get(t) & mask

    def _compare(self, words: list[str], operands: list[str], kind: str, bits: int) -> Step:
        first, second = (self._source(each, "setp", [kind], 0) for each in operands[1:3])
        put = self._put(operands[0], 1, False)
        test = {
            "eq": lambda a, b: a == b,
            "ne": lambda a, b: a != b,
            "lt": lambda a, b: a < b,
            "le": lambda a, b: a <= b,
            "gt": lambda a, b: a > b,
            "ge": lambda a, b: a >= b,
        }[words[0]]
        if kind[0] == "f":
            # ordered comparisons: a NaN makes each of them false, `ne` too
            def compare(t: Thread) -> None:
                a, b = to_float(first(t)), to_float(second(t))
                put(t, int(a == a and b == b and test(a, b)))

            return compare
        return lambda t: put(t, int(test(first(t), second(t))))

    def _memory(self, base: str, words: list[str], operands: list[str], kind: str, bits: int) -> Step:
        space, size = words[0], bits // 8
        where, data = (operands[1], operands[0]) if base == "ld" else operands[:2]
        address = self._address(where)
        elements = [each.strip() for each in data.strip("{}").split(",")]
        if base == "ld":
            puts = [self._put(each, bits, kind[0] == "s") for each in elements]

            def load(t: Thread) -> None:
                at = address(t)
                found = [t.spaces[space].load(at + size * k, size) for k in range(len(puts))]
                for put, value in zip(puts, found, strict=True):
                    put(t, value)

            return load
        gets = [self._get(each) for each in elements]

        def store(t: Thread) -> None:
            at = address(t)
            for k, get in enumerate(gets):
                t.spaces[space].store(at + size * k, size, get(t) & ((1 << bits) - 1))

        return store

    def _parts(self, operands: list[str], bits: int) -> Step:
        to, source = operands
        if "{" in source:
            gets = [self._get(each.strip()) for each in source.strip("{}").split(",")]
            part = bits // len(gets)
            put = self._put(to, bits, False)
            return lambda t: put(
                t, sum((get(t) & ((1 << part) - 1)) << (part * place) for place, get in enumerate(gets))
            )
        names = [each.strip() for each in to.strip("{}").split(",")]
        part = bits // len(names)
        puts = [self._put(each, part, False) for each in names]
        whole = self._get(source)

        def unpack(t: Thread) -> None:
            value = whole(t)
            for place, put in enumerate(puts):
                put(t, value >> (part * place))

        return unpack

    # -- running

    def _thread(self, t: Thread) -> Generator[None, None, None]:
        pc, steps, end = 0, self.steps, len(self.steps)
        for _ in range(STEP_LIMIT):
            if pc >= end:
                return
            following = steps[pc](t)
            if pc in self.barriers:
                yield
            pc = pc + 1 if following is None else following
        raise RuntimeError("the program does not end")

    def launch(self, grid: int, block: Sequence[int], params: bytes, memory: Memory) -> None:
        """Run every thread of every block; `memory` is changed."""
        given = Flat(len(params))
        given.data[:] = params
        x, y, z = block
        for number in range(grid):
            shared = Flat(self.sizes["shared"])
            threads = []
            for place in range(x * y * z):
                special = {
                    "%tid.x": place % x, "%tid.y": place // x % y, "%tid.z": place // (x * y),
                    "%ntid.x": x, "%ntid.y": y, "%ntid.z": z, "%ctaid.x": number, "%nctaid.x": grid,
                    "%laneid": place % 32,
                }  # fmt: skip
                spaces = {"global": memory, "shared": shared, "local": Flat(self.sizes["local"]), "param": given}
                threads.append(self._thread(Thread([0] * len(self.widths), special, spaces)))
            while threads:
                threads = [each for each in threads if next(each, "over") is None]


def _operation(base: str, words: list[str], kinds: list[str]) -> tuple[Callable[..., int], int, bool]:
    """(function of mathematical sources, result bits, whether the result is signed)."""
    kind = kinds[0]
    bits = 1 if kind == "pred" else int(kind[1:])
    if kind == "f32" and base in ("add", "sub", "mul"):
        real = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}[base]
        return lambda a, b: from_float(real(to_float(a), to_float(b))), 32, False
    if base == "cvt":
        if kinds[0] == "f32":
            return lambda a: from_float(float(a)), 32, False
        return lambda a: a, bits, kind[0] == "s"
    if base in ("mul", "mad"):
        wide = "wide" in words
        high = "hi" in words
        size = 2 * bits if wide else bits
        if base == "mul":
            return lambda a, b: a * b >> (bits if high else 0), size, kind[0] == "s"
        return lambda a, b, c: (a * b >> (bits if high else 0)) + c, size, kind[0] == "s"
    if base == "div":
        return lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), bits, kind[0] == "s"
    if base == "rem":
        return lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1), bits, kind[0] == "s"
    functions: dict[str, Callable[..., int]] = {
        "mov": lambda a: a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "min": min,
        "max": max,
        "shl": lambda a, b: a << b if b < bits else 0,
        "shr": lambda a, b: a >> min(b, bits),
        "selp": lambda a, b, p: a if p else b,
    }
    return functions[base], bits, kind[0] == "s"
