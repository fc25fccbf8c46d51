"""Random kernels: loops, breaks, early exits, guards and gotos over registers that are alike, stepped or all different.

A kernel keeps a handful of registers that every statement reads and writes, so that a value lost or mixed up anywhere
shows in the dump at its end. Every thread writes only its own places, or shared memory between barriers that the whole
block reaches, so one answer is right whatever the order of threads.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from random import Random

WORDS, WIDE, REALS, HALVES, TESTS = 8, 4, 3, 3, 4
TRACES = 8
"""Places of 16 bytes in which a thread notes values on its way."""
DATA = 1024
DUMP = 4 * (WORDS + REALS + HALVES) + 8 * WIDE

BLOCKS = (
    (1, 1, 1), (5, 1, 1), (31, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (96, 1, 1), (128, 1, 1), (100, 1, 1),
    (8, 4, 1), (4, 4, 4), (16, 3, 1), (32, 2, 1), (32, 2, 2), (64, 2, 1), (7, 5, 2), (1, 40, 1), (1, 1, 37), (300, 1, 1),
    (256, 1, 1), (128, 2, 1),
)  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """PTX text, and the shapes and scalars it is to be launched with."""

    text: str
    grid: int
    block: tuple[int, int, int]
    scalars: tuple[int, int]


class Generator:
    """Writes one kernel. `style` is "tree" (structured, with early exits) or "graph" (any jump between blocks)."""

    def __init__(self, random: Random, style: str) -> None:
        self.random = random
        self.style = style
        self.lines: list[str] = []
        self.labels = 0
        self.counters = 0
        self.chained = 0
        self.laneid = random.random() < 0.2
        self.barriers = style == "tree" and random.random() < 0.5
        self.budget = random.choice((12, 25, 45))

    # -- small choices

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def out(self, line: str) -> None:
        self.lines.append(line)

    def word(self) -> str:
        """A 32-bit register."""
        return f"%r{self.random.randrange(WORDS)}"

    def wide(self) -> str:
        return f"%d{self.random.randrange(WIDE)}"

    def real(self) -> str:
        return f"%f{self.random.randrange(REALS)}"

    def half(self) -> str:
        return f"%h{self.random.randrange(HALVES)}"

    def test(self) -> str:
        return f"%p{self.random.randrange(TESTS)}"

    def number(self) -> str:
        choices = (0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 64, 255, 1000, 65535, 0x7FFFFFFF, 0xFFFFFFF0, 0x80000000, -1, -4)
        return str(self.random.choice(choices))

    def source(self) -> str:
        """A 32-bit source: mostly a register, else a number or a special register."""
        kind = self.random.random()
        if kind < 0.55:
            return self.word()
        if kind < 0.8:
            return self.number()
        names = ["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ntid.x", "%nctaid.x"]
        return self.random.choice([*names, "%tid.x", *(["%laneid"] if self.laneid else [])])

    def guard(self) -> str:
        if self.random.random() > 0.2:
            return ""
        return f"@{self.random.choice(('', '!'))}{self.test()} "

    # -- statements without control flow

    def plain(self) -> None:
        """One instruction, or a few that belong together."""
        pick = self.random.choice
        kind = self.random.randrange(100)
        g = self.guard()
        a, b = self.source(), self.source()
        if self.random.random() < 0.12:
            self.chain()
        elif kind < 22:
            op = pick(
                ("add.s32", "sub.s32", "add.u32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32")
            )
            self.out(f"{g}{op} {self.word()}, {a}, {b};")
        elif kind < 28:
            self.out(f"{g}mad.lo.s32 {self.word()}, {a}, {pick(('1', '4', '12', b))}, {self.source()};")
        elif kind < 34:
            op = pick(("shl.b32", "shr.u32", "shr.s32"))
            self.out(f"{g}{op} {self.word()}, {a}, {pick(('0', '1', '2', '5', '7', '31', '32', '40', self.word()))};")
        elif kind < 39:
            self.out(f"{g}mov.u32 {self.word()}, {a};")
        elif kind < 48:
            op = pick(("eq", "ne", "lt", "le", "gt", "ge"))
            self.out(f"{g}setp.{op}.{pick(('s32', 'u32'))} {self.test()}, {self.word()}, {b};")
        elif kind < 52:
            self.out(f"{g}selp.b32 {self.word()}, {a}, {b}, {self.test()};")
        elif kind < 55:
            self.out(
                f"{g}{pick(('and.pred', 'or.pred', 'xor.pred'))} {self.test()}, {self.test()}, {pick(('!', ''))}{self.test()};"
            )
        elif kind < 67:
            self.extension(g, a, b)
        elif kind < 72:
            op = pick(("add.s64", "sub.s64", "mul.lo.s64", "and.b64", "or.b64", "min.s64", "max.u64"))
            self.out(f"{g}{op} {self.wide()}, {self.wide()}, {pick((self.wide(), '4', '-8', '1048575'))};")
        elif kind < 75:
            self.out(
                f"{g}{pick(('shl.b64', 'shr.u64', 'shr.s64'))} {self.wide()}, {self.wide()}, {pick(('1', '2', '32', '33', '63', '70'))};"
            )
        elif kind < 80:
            self.parts(g)
        elif kind < 84:
            op, divisor = pick(("div", "rem")), pick(("3", "7", "32", "33"))
            self.out(f"{g}{op}.{pick(('u32', 's32'))} {self.word()}, {a}, {divisor};")
        elif kind < 90:
            self.floating(g)
        elif kind < 95:
            self.load(g)
        else:
            self.trace(g)

    def chain(self) -> None:
        """A few registers that are written once, from the thread's numbers and literals: what is known of them is used.

        This is how compilers write addresses; the last goes into a register that other statements read.
        """
        pick = self.random.choice
        known = [
            "%tid.x",
            "%tid.y",
            "%x4",
            "%x7",
            "%ctaid.x",
            "%ntid.x",
            *([self.word()] if self.random.random() < 0.3 else []),
        ]
        for _ in range(self.random.randrange(2, 6)):
            a = pick(known[-3:]) if len(known) > 8 else pick(known)
            b = pick((pick(known), self.number(), self.number(), "4", "32", "96"))
            to = f"%s{self.chained}"
            self.chained += 1
            kind = self.random.randrange(14)
            if kind < 9:
                op = pick(("add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "min.u32", "max.s32", "add.u32"))
                self.out(f"{op} {to}, {a}, {b};")
            elif kind < 11:
                self.out(
                    f"{pick(('shl.b32', 'shr.u32', 'shr.s32'))} {to}, {a}, {pick(('1', '2', '3', '5', '16', '30', '31'))};"
                )
            elif kind == 11:
                self.out(f"mad.lo.s32 {to}, {a}, {pick(('4', '256', b))}, {pick(known)};")
            elif kind == 12:
                self.out(f"{pick(('div', 'rem'))}.{pick(('u32', 's32'))} {to}, {a}, {pick(('3', '32'))};")
            else:
                self.out(f"cvt.{pick(('u32.u16', 's32.s16', 'u32.u8', 's32.s8'))} {to}, {a};")
            known.append(to)
        last = known[-1]
        kind = self.random.randrange(6)
        if kind < 3:
            op = pick(("u64.u32", "s64.s32"))
            self.out(f"cvt.{op} {self.wide()}, {last};")
        elif kind < 5:
            self.out(f"mul.wide.{pick(('u32', 's32'))} {self.wide()}, {last}, {pick(('4', '-4', '12', '4294967292'))};")
        else:
            self.out(f"mov.u32 {self.word()}, {last};")

    def extension(self, g: str, a: str, b: str) -> None:
        """From 32 to 64 bits and back: what wraps in one lane and not in another."""
        pick = self.random.choice
        kind = self.random.randrange(6)
        if kind == 0:
            self.out(f"{g}mul.wide.{pick(('u32', 's32'))} {self.wide()}, {a}, {pick(('4', '12', b))};")
        elif kind == 1:
            self.out(f"{g}mad.wide.{pick(('u32', 's32'))} {self.wide()}, {a}, {pick(('8', '1', b))}, {self.wide()};")
        elif kind == 2:
            self.out(
                f"{g}cvt.{pick(('u64.u32', 's64.s32', 'u64.u16', 's64.s16', 's64.s8'))} {self.wide()}, {a if a[0] == '%' else self.word()};"
            )
        elif kind == 3:
            self.out(f"{g}cvt.{pick(('u32.u64', 's32.s64'))} {self.word()}, {self.wide()};")
        elif kind == 4:
            self.out(
                f"{g}cvt.{pick(('u32.u16', 's32.s16', 'u32.u8', 's32.s8', 'u8.u32', 's8.s32'))} {self.word()}, {self.word()};"
            )
        else:
            self.out(f"{g}mul.hi.{pick(('u32', 's32'))} {self.word()}, {a}, {b};")

    def parts(self, g: str) -> None:
        pick = self.random.choice
        kind = self.random.randrange(7)
        if kind == 0:
            first = self.random.randrange(HALVES)
            self.out(f"{g}mov.b32 {{%h{first}, %h{(first + 1) % HALVES}}}, {self.word()};")
        elif kind == 1:
            self.out(f"{g}mov.b32 {self.word()}, {{{self.half()}, {self.half()}}};")
        elif kind == 2:
            self.out(f"{g}mov.b64 {self.wide()}, {{{self.word()}, {self.word()}}};")
        elif kind == 3:
            first = self.random.randrange(WORDS)
            self.out(f"{g}mov.b64 {{%r{first}, %r{(first + 1) % WORDS}}}, {self.wide()};")
        elif kind == 4:
            self.out(
                f"{g}{pick(('add.u16', 'sub.s16', 'mul.lo.u16', 'and.b16', 'min.s16'))} {self.half()}, {self.half()}, {pick((self.half(), '3', '300'))};"
            )
        elif kind == 5:
            self.out(f"{g}cvt.u16.u32 {self.half()}, {pick((self.word(), '%tid.x', '%tid.y'))};")
        else:
            self.out(
                f"{g}{pick(('shl.b16', 'shr.u16', 'shr.s16'))} {self.half()}, {self.half()}, {pick(('1', '4', '15', '16'))};"
            )

    def floating(self, g: str) -> None:
        pick = self.random.choice
        kind = self.random.randrange(8)
        if kind < 3:
            self.out(f"{g}{pick(('add', 'sub', 'mul'))}.rn.f32 {self.real()}, {self.real()}, {self.real()};")
        elif kind == 3:
            self.out(f"{g}setp.{pick(('lt', 'ge', 'eq', 'ne'))}.f32 {self.test()}, {self.real()}, {self.real()};")
        elif kind == 4:
            self.out(f"{g}mov.b32 {self.real()}, {self.word()};")
        elif kind == 5:
            self.out(f"{g}mov.b32 {self.word()}, {self.real()};")
        elif kind == 6:
            self.out(f"{g}selp.f32 {self.real()}, {self.real()}, {self.real()}, {self.test()};")
        else:
            self.out(f"{g}cvt.rn.f32.{pick(('s32', 'u32'))} {self.real()}, {self.word()};")

    def load(self, g: str) -> None:
        """From the data: at one place for all, at a step, at a place that was computed, or guarded by a bound."""
        kind = self.random.randrange(7)
        to, index = self.word(), self.word()
        if kind == 0:
            self.out(f"{g}ld.global.u32 {to}, [%a0+{4 * self.random.randrange(64)}];")
        elif kind == 1:
            self.out(
                f"{g}ld.global.{self.random.choice(('u32', 's16', 'u8'))} {to}, [%a5+{4 * self.random.randrange(64)}];"
            )
        elif kind == 2:
            self.out(f"and.b32 %x0, {index}, {DATA - 1};")
            self.out("mul.wide.u32 %b0, %x0, 4;")
            self.out("add.s64 %b1, %a0, %b0;")
            self.out(f"{g}ld.global.{self.random.choice(('u32', 's32'))} {to}, [%b1];")
        elif kind == 3:  # the address of other lanes may be far outside
            self.out(f"setp.lt.u32 %q0, {index}, {DATA};")
            self.out(f"mul.wide.s32 %b0, {index}, 4;")
            self.out("add.s64 %b1, %b0, %a0;")
            self.out(f"@%q0 ld.global.u32 {to}, [%b1];")
        elif kind == 4:
            first = self.random.randrange(WORDS)
            self.out(f"and.b32 %x0, {index}, {DATA // 2 - 2};")
            self.out("mad.wide.u32 %b1, %x0, 4, %a0;")
            self.out(f"{g}ld.global.v2.u32 {{%r{first}, %r{(first + 1) % WORDS}}}, [%b1];")
        elif kind == 5:
            self.out(f"{g}ld.global.f32 {self.real()}, [%a5+{4 * self.random.randrange(64)}];")
        else:
            self.local(g, index, to)

    def local(self, g: str, index: str, to: str) -> None:
        """An array of the thread's own, written and read at computed places."""
        self.out(f"and.b32 %x0, {index}, 7;")
        self.out("mul.wide.u32 %b0, %x0, 4;")
        self.out("add.u64 %b1, %a6, %b0;")
        if self.random.random() < 0.5:
            self.out(f"{g}st.local.u32 [%b1], {self.word()};")
        else:
            self.out(f"{g}ld.local.u32 {to}, [%b1];")

    def trace(self, g: str) -> None:
        """A note in the thread's own part of the output."""
        kind, at = self.random.randrange(5), 16 * self.random.randrange(TRACES)
        if kind == 0:
            self.out(f"{g}st.global.u32 [%a1+{at}], {self.word()};")
        elif kind == 1:  # one after the other from lane to lane
            self.out(f"{g}st.global.u32 [%a4], {self.word()};")
        elif kind == 2:
            self.out(f"and.b32 %x0, {self.word()}, {TRACES - 1};")
            self.out("mad.wide.u32 %b0, %x0, 16, %a1;")
            self.out(f"{g}st.global.{self.random.choice(('u32', 'u16', 'u8'))} [%b0+8], {self.word()};")
        elif kind == 3:
            self.out(f"{g}st.global.v2.u32 [%a1+{at}], {{{self.word()}, {self.word()}}};")
        else:
            self.out(f"{g}st.global.u64 [%a1+{at}], {self.wide()};")

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
        seeds = ["%x4", "%x7", "%n0", "%n1", "%tid.x", "%tid.y", "7", "%ctaid.x", "%ntid.x", "0", "-3"]
        for k in range(WORDS):
            if k in (2, 5):
                self.out(f"ld.global.u32 %r{k}, [%a5+{4 * k}];")
            else:
                self.out(f"mov.u32 %r{k}, {self.random.choice(seeds)};")
        for k in range(WIDE):
            self.out(f"cvt.{self.random.choice(('u64.u32', 's64.s32'))} %d{k}, %r{self.random.randrange(WORDS)};")
        self.lines += ["ld.global.f32 %f0, [%a5+512];", "mov.f32 %f1, 0f3FC00000;", "ld.global.f32 %f2, [%a0+64];"]
        self.lines += [f"cvt.u16.u32 %h{k}, %r{k};" for k in range(HALVES)]
        for k in range(TESTS):
            self.out(
                f"setp.lt.s32 %p{k}, {self.random.choice(('%r2', '%tid.x', '%n0', '%x4'))}, {self.random.choice(('3', '16', '%r5'))};"
            )
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
        for stem, count, op in (("%r", WORDS, "u32"), ("%f", REALS, "f32"), ("%h", HALVES, "u16")):
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
        scalars = (self.random.choice((1, 2, 3)), self.random.choice((0, 5, 33, 0xFFFFFFFE)))
        return Kernel(
            wrapped(self.lines, self.counters, self.chained), self.random.choice((1, 1, 2, 3)), block, scalars
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
