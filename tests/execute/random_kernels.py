"""Random kernels: loops, breaks, early exits, guards and gotos over registers that are alike, stepped or all different.

A kernel keeps a handful of registers that every statement reads and writes, so that a value lost or mixed up anywhere
shows in the dump at its end. Every thread writes only its own places, or shared memory between barriers that the whole
block reaches, so one answer is right whatever the order of threads.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from random import Random

from execute.random_statements import DATA, HALVES, REALS, TESTS, TRACES, WIDE, WORDS, Statements

DUMP = 4 * (WORDS + REALS + HALVES) + 8 * WIDE

BLOCKS = (
    (1, 1, 1), (5, 1, 1), (31, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (96, 1, 1), (128, 1, 1), (100, 1, 1),
    (8, 4, 1), (4, 4, 4), (16, 3, 1), (32, 2, 1), (32, 2, 2), (64, 2, 1), (7, 5, 2), (1, 40, 1), (1, 1, 37),
    (300, 1, 1), (256, 1, 1), (128, 2, 1),
)  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """PTX text, and the shapes and scalars it is to be launched with."""

    text: str
    grid: int
    block: tuple[int, int, int]
    scalars: tuple[int, int]


class Generator(Statements):
    """Writes one kernel. `style` is "tree" (structured, with early exits) or "graph" (any jump between blocks)."""

    def __init__(self, random: Random, style: str) -> None:
        super().__init__(random)
        self.style = style
        self.counters = 0
        self.laneid = random.random() < 0.2
        self.barriers = style == "tree" and random.random() < 0.5
        self.budget = random.choice((12, 25, 45))

    # -- control flow

    def branch_test(self) -> str:
        """A predicate for a branch, often of its own."""
        if self.random.random() < 0.3:
            return self.test()
        op = self.random.choice(("lt.s32", "ge.u32", "eq.s32", "ne.s32", "gt.u32"))
        test = self.test()
        first, second = self.source(), self.source()
        if first[0] != "%":
            first = self.word()
        self.out(f"setp.{op} {test}, {first}, {second};")
        return test

    def tree(self, depth: int, loops: tuple[str, ...], convergent: bool) -> None:
        """Statements; `loops` are the labels behind the loops around, innermost last."""
        for _ in range(self.random.randrange(1, 5)):
            self.budget -= 1
            if self.budget < 0:
                return
            kind = self.random.random()
            if kind < 0.5 or depth > 4:
                self.plain()
            elif kind < 0.66:
                self.choice(depth, loops)
            elif kind < 0.78:
                self.loop(depth, loops)
            elif kind < 0.82 and loops:
                self.out(f"@{self.random.choice(('', '!'))}{self.branch_test()} bra {self.random.choice(loops)};")
            elif kind < 0.84:
                self.out(f"@{self.branch_test()} {self.random.choice(('bra DUMP', 'ret', 'exit'))};")
            elif kind < 0.88:
                self.switch(depth, loops)
            elif convergent and self.barriers:
                self.exchange()
            elif convergent:
                self.uniform_loop(depth)
            else:
                self.plain()

    def choice(self, depth: int, loops: tuple[str, ...]) -> None:
        other, end = self.label(), self.label()
        self.out(f"@{self.random.choice(('', '!'))}{self.branch_test()} bra {other};")
        self.tree(depth + 1, loops, False)
        if self.random.random() < 0.6:
            self.out(f"bra{self.random.choice(('', '.uni'))} {end};")
            self.out(f"{other}:")
            self.tree(depth + 1, loops, False)
            self.out(f"{end}:")
        else:
            self.out(f"{other}:")

    def loop(self, depth: int, loops: tuple[str, ...]) -> None:
        """A loop whose trips depend on data, at most eight."""
        top, end, counter = self.label(), self.label(), f"%c{self.counters}"
        self.counters += 1
        self.out(f"mov.u32 {counter}, {self.random.choice(('0', '5', '6'))};")
        first = self.random.random() < 0.5
        if first:
            self.out(f"@{self.branch_test()} bra {end};")
        self.out(f"{top}:")
        self.tree(depth + 1, (*loops, end), False)
        self.out(f"add.s32 {counter}, {counter}, 1;")
        self.out(f"setp.lt.u32 %q1, {counter}, {self.random.choice(('7', '8'))};")
        if self.random.random() < 0.7:
            self.out(f"and.pred %q1, %q1, {self.branch_test()};")
        self.out(f"@%q1 bra {top};")
        self.out(f"{end}:")

    def uniform_loop(self, depth: int) -> None:
        """A loop that all threads go round equally often; it may hold barriers."""
        top, counter = self.label(), f"%c{self.counters}"
        self.counters += 1
        self.out(f"mov.u32 {counter}, 0;")
        self.out(f"{top}:")
        self.tree(depth + 1, (), True)
        self.out(f"add.s32 {counter}, {counter}, 1;")
        self.out(f"setp.lt.u32 %q1, {counter}, {self.random.choice(('%n0', '3'))};")
        self.out(f"@%q1 bra {top};")

    def switch(self, depth: int, loops: tuple[str, ...]) -> None:
        end, table = self.label(), self.label()
        cases = [self.label() for _ in range(self.random.choice((2, 4)))]
        self.out(f"and.b32 %x0, {self.source()}, {len(cases) - 1};")
        self.out(f"{table}: .branchtargets {', '.join(cases)};")
        self.out(f"brx.idx %x0, {table};")
        for case in cases:
            self.out(f"{case}:")
            self.tree(depth + 1, loops, False)
            if self.random.random() < 0.8:
                self.out(f"bra {end};")
        self.out(f"{end}:")

    def exchange(self) -> None:
        """Through shared memory: every thread writes its place, all meet, each reads some place."""
        self.out(f"st.shared.u32 [%x3], {self.word()};")
        self.out("bar.sync 0;")
        if self.random.random() < 0.5:
            self.out(f"and.b32 %x0, {self.word()}, 255;")
            self.out("rem.u32 %x0, %x0, %x5;")
        else:
            self.out(f"xor.b32 %x0, %x4, {self.random.choice((0, 1, 2))};")
            self.out("min.u32 %x0, %x0, %x6;")
        self.out("shl.b32 %x0, %x0, 2;")
        self.out("mov.u32 %x1, cells;")
        self.out("add.s32 %x0, %x0, %x1;")
        self.out(f"{self.guard()}ld.shared.{self.random.choice(('u32', 's16'))} {self.word()}, [%x0];")
        self.out("bar.sync 0;")

    def graph(self) -> None:
        """Blocks that jump anywhere, each turn paid from a purse, so that every program ends."""
        count = self.random.randrange(3, 9)
        self.out(f"mov.u32 %c0, {self.random.choice(('9', '20'))};")
        if self.random.random() < 0.4:
            self.out("and.b32 %x0, %tid.x, 7;")
            self.out("add.s32 %c0, %c0, %x0;")
        for number in range(count):
            self.out(f"B{number}:")
            self.out("sub.s32 %c0, %c0, 1;")
            self.out("setp.lt.s32 %q1, %c0, 0;")
            self.out("@%q1 bra DUMP;")
            for _ in range(self.random.randrange(4)):
                self.plain()
            kind = self.random.random()
            to = f"B{self.random.randrange(count)}"
            if kind < 0.55:
                self.out(f"@{self.random.choice(('', '!'))}{self.branch_test()} bra {to};")
                if self.random.random() < 0.3:
                    self.out(f"bra B{self.random.randrange(count)};")
            elif kind < 0.7:
                self.out(f"bra {to};")
            elif kind < 0.8:
                self.out(f"and.b32 %x0, {self.source()}, 1;")
                self.out(f"T{number}: .branchtargets {to}, B{self.random.randrange(count)};")
                self.out(f"brx.idx %x0, T{number};")
            elif kind < 0.84:
                self.out(f"@{self.branch_test()} {self.random.choice(('ret', 'exit'))};")

    # -- the whole

    def head(self, threads: int) -> None:
        """Registers that the statements use, and the places every thread may touch."""
        self.lines += [
            "ld.param.u64 %a0, [k_data];", "ld.param.u64 %a1, [k_trace];", "ld.param.u64 %a2, [k_dump];",
            "ld.param.u64 %a4, [k_line];", "ld.param.u32 %n0, [k_n];", "ld.param.u32 %n1, [k_m];",
            "mad.lo.u32 %x4, %tid.z, %ntid.y, %tid.y;", "mad.lo.u32 %x4, %x4, %ntid.x, %tid.x;",
            "mul.lo.u32 %x5, %ntid.x, %ntid.y;", "mul.lo.u32 %x5, %x5, %ntid.z;", "sub.u32 %x6, %x5, 1;",
            "mad.lo.u32 %x7, %ctaid.x, %x5, %x4;",
            f"mad.wide.u32 %a1, %x7, {16 * TRACES}, %a1;", f"mad.wide.u32 %a2, %x7, {DUMP}, %a2;",
            "mad.wide.u32 %a4, %x7, 4, %a4;", "mad.wide.u32 %a5, %x4, 4, %a0;", "mov.u64 %a6, mine;",
            "shl.b32 %x3, %x4, 2;", "mov.u32 %x1, cells;", "add.s32 %x3, %x3, %x1;",
        ]  # fmt: skip
        self.lines += [f"st.local.u32 [%a6+{4 * k}], {k * 77};" for k in range(8)]
        if self.barriers:
            self.lines += ["st.shared.u32 [%x3], %x4;", "bar.sync 0;"]
        seeds = [
            "%x4",
            "%x7",
            "%n0",
            "%n1",
            "%tid.x",
            "%tid.y",
            "7",
            "%ctaid.x",
            "%ntid.x",
            "0",
            "-3",
        ]
        for k in range(WORDS):
            if k in (2, 5):
                self.out(f"ld.global.u32 %r{k}, [%a5+{4 * k}];")
            else:
                self.out(f"mov.u32 %r{k}, {self.random.choice(seeds)};")
        for k in range(WIDE):
            self.out(f"cvt.{self.random.choice(('u64.u32', 's64.s32'))} %d{k}, %r{self.random.randrange(WORDS)};")
        self.lines += [
            "ld.global.f32 %f0, [%a5+512];",
            "mov.f32 %f1, 0f3FC00000;",
            "ld.global.f32 %f2, [%a0+64];",
        ]
        self.lines += [f"cvt.u16.u32 %h{k}, %r{k};" for k in range(HALVES)]
        for k in range(TESTS):
            first = self.random.choice(("%r2", "%tid.x", "%n0", "%x4"))
            self.out(f"setp.lt.s32 %p{k}, {first}, {self.random.choice(('3', '16', '%r5'))};")
        self.lines += [
            "mov.u32 %x0, 0;",
            "mov.u64 %b0, 0;",
            "mov.u64 %b1, 0;",
            "setp.ne.u32 %q0, %x0, 0;",
            "setp.ne.u32 %q1, %x0, 0;",
        ]

    def dump(self) -> None:
        self.out("DUMP:")
        for k in range(WIDE):
            self.out(f"st.global.u64 [%a2+{8 * k}], %d{k};")
        at = 8 * WIDE
        for stem, count, op in (
            ("%r", WORDS, "u32"),
            ("%f", REALS, "f32"),
            ("%h", HALVES, "u16"),
        ):
            for k in range(count):
                self.out(f"st.global.{op} [%a2+{at}], {stem}{k};")
                at += 4
        self.out("ret;")

    def kernel(self) -> Kernel:
        """Everything."""
        block = self.random.choice(BLOCKS)
        self.head(block[0] * block[1] * block[2])
        if self.style == "graph":
            self.graph()
        else:
            while self.budget > 0:
                self.tree(0, (), True)
        self.dump()
        scalars = (
            self.random.choice((1, 2, 3)),
            self.random.choice((0, 5, 33, 0xFFFFFFFE)),
        )
        return Kernel(
            wrapped(self.lines, self.counters, self.chained),
            self.random.choice((1, 1, 2, 3)),
            block,
            scalars,
        )


def wrapped(lines: list[str], counters: int, chained: int) -> str:
    """The lines as a module."""
    return "\n".join(
        [
            ".version 7.4\n.target sm_37\n.address_size 64",
            ".visible .entry k(.param .u64 k_data, .param .u64 k_trace, .param .u64 k_dump, .param .u64 k_line, "
            ".param .u32 k_n, .param .u32 k_m)\n{",
            f".reg .b32 %r<{WORDS}>;\n.reg .b64 %d<{WIDE}>;\n.reg .f32 %f<{REALS}>;\n.reg .b16 %h<{HALVES}>;",
            f".reg .pred %p<{TESTS}>;\n.reg .pred %q<2>;\n.reg .b32 %x<8>;\n.reg .b64 %a<7>;\n.reg .b64 %b<2>;",
            f".reg .b32 %c<{counters + 1}>;\n.reg .b32 %n<2>;\n.reg .b32 %s<{chained + 1}>;",
            ".shared .align 16 .b8 cells[1280];\n.local .align 16 .b8 mine[32];",
            *lines,
            "}\n",
        ]
    )


def data() -> bytes:
    """What kernels read: small numbers, large ones, and floats with NaNs that carry something."""
    random = Random(7)
    words = []
    for k in range(2 * DATA):
        kind = k % 4
        if kind == 0:
            words.append(random.randrange(40))
        elif kind == 1:
            words.append(random.getrandbits(32))
        elif kind == 2:
            words.append(struct.unpack("<I", struct.pack("<f", random.uniform(-4, 4)))[0])
        else:
            words.append(random.choice((0x7FC12345, 0xFFFFFFFF, 3, 0x80000000, 0x7F800000)))
    return struct.pack(f"<{len(words)}I", *words)


def generate(seed: int) -> Kernel:
    """The kernel of a seed."""
    random = Random(seed)
    return Generator(random, random.choice(("tree", "tree", "graph"))).kernel()
